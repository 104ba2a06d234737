// SPDX-License-Identifier: LGPL-2.1-or-later
#include "code/names/symbols.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/suite.h"

static void expect(const char *mangled, const char *expected)
{
	char *text = demangle(mangled, false);

	ck_assert_pstr_eq(text, expected);
	free(text);
}

static void expect_ada(const char *mangled, const char *expected)
{
	char *text = demangle(mangled, true);

	ck_assert_pstr_eq(text, expected);
	free(text);
}

START_TEST(names_of_ada)
{
	expect_ada("leaks__inner__twice", "leaks.inner.twice");
	expect_ada("_ada_main", "main");
	expect_ada("main__workerTKB", "main.worker");
	expect_ada("__gnat_malloc", NULL);
	expect_ada("_ZN3foo3barEi", "foo::bar(int)");
	expect("leaks__inner__twice", NULL);
}
END_TEST

START_TEST(names_of_d)
{
	expect("_D3app4leakFmZv", "app.leak(ulong)");
	expect("_Dmain", "D main");
	expect("_D3std5stdio__T7writelnTAyaZQnFNfQjZv",
	       "std.stdio.writeln!(immutable(char)[]).writeln(immutable(char)[])");
	expect("_Dunno", NULL);
}
END_TEST

START_TEST(names_are_demangled)
{
	expect("_ZN3foo3barEiPKc", "foo::bar(int, char const*)");
	expect("_Z3maxIiET_S0_S0_", "int max<int>(int, int)");
	expect("_ZN4core3fmt5Write9write_fmt17h0123456789abcdefE", "core::fmt::Write::write_fmt");
	expect("_RNvCs1234_7mycrate3foo", "mycrate::foo");
	expect("_RNvC7mycrateu8gdel_5qa", "mycrate::g\xc3\xb6"
					  "del");
	expect("main", NULL);
	expect("_Z", NULL);
	expect("", NULL);
}
END_TEST

/* Names that look mangled but are not. */
START_TEST(conversions_and_packs)
{
	expect("_ZN1AcvT_IiEEv", "A::operator int<int>()");
	expect("_ZN1AcvT_IiEIiEEv", "A::operator int<int><int>()");
	expect("_Z1fIJidEEvDpT_", "void f<int, double>(int, double)");
	expect("_Z6setDpiIJidEEvDpRKT_", "void setDpi<int, double>(int const&, double const&)");
	expect("_Z1fIJidEEDTcl1gspfp_EEDpT_", "decltype (g({parm#1}...)) f<int, double>(int, double)");
}
END_TEST

Suite *test_suite(void)
{
	Suite *suite = suite_create("demangle");
	TCase *tests = add_tcase(suite, "demangle");

	tcase_add_tests(tests, names_are_demangled, names_of_ada, names_of_d, conversions_and_packs);
	return suite;
}
