// SPDX-License-Identifier: LGPL-2.1-or-later
#include "code/names/demangle.h"

#include <check.h>

#include "support/suite.h"

/* However often it is requested. */
START_TEST(each_name_is_made_once)
{
	static const char mangled[] = "_ZN5outer5innerEi", plain[] = "main", symbol[] = "mmap@@GLIBC_2.2.5";
	static const char directory[] = "/build", other[] = "/elsewhere", file[] = "source/a.c";
	struct synthesized_names names = {0};
	const char *demangled = synthesized_names_demangle(&names, mangled),
		   *path = synthesized_names_path(&names, directory, file);
	const char *name = synthesized_names_without_version(&names, symbol, symbol + 4);

	ck_assert_str_eq(demangled, "outer::inner(int)");
	ck_assert_str_eq(path, "/build/source/a.c");
	ck_assert_str_eq(name, "mmap");
	ck_assert_ptr_null(synthesized_names_demangle(&names, plain));
	ck_assert_str_eq(synthesized_names_path(&names, other, file), "/elsewhere/source/a.c");
	for (unsigned i = 0; i < 1000; i++) {
		ck_assert_ptr_eq(synthesized_names_demangle(&names, mangled), demangled);
		ck_assert_ptr_eq(synthesized_names_path(&names, directory, file), path);
		ck_assert_ptr_eq(synthesized_names_without_version(&names, symbol, symbol + 4), name);
		ck_assert_ptr_null(synthesized_names_demangle(&names, plain));
	}
	ck_assert_uint_eq(names.texts.count, 5);
	synthesized_names_deinit(&names);
}
END_TEST

Suite *test_suite(void)
{
	Suite *suite = suite_create("synthesized-names");
	TCase *tests = add_tcase(suite, "synthesized names");

	tcase_add_test(tests, each_name_is_made_once);
	return suite;
}
