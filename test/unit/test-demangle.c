// SPDX-License-Identifier: LGPL-2.1-or-later
#include "code/names/demangle.h"

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
	char name[2000] = "_D1a1bFS4wordZv", *text;

	expect("_D3app4leakFmZv", "app.leak(ulong)");
	expect("_Dmain", "D main");
	expect("_D3std5stdio__T7writelnTAyaZQnFNfQjZv",
	       "std.stdio.writeln!(immutable(char)[]).writeln(immutable(char)[])");
	expect("_Dunno", NULL);
	/* Each of these functions refers twice to the one before: the text doubles. */
	for (int i = 0; i < 40; i++)
		memcpy(name + 13 + 12 * i, i ? "PFQlQnZvPFZv" : "PFQgQiZvPFZv", 12);
	strcpy(name + 13 + 12 * 40, "Zv");
	expect(name, NULL);
	/* Pointers to pointers */
	memset(name, 'P', sizeof(name) - 1);
	memcpy(name, "_D1a1bF", 7);
	strcpy(name + sizeof(name) - 4, "vZv");
	expect(name, NULL);
	strcpy(name + 300, "vZv");
	text = demangle(name, false);
	ck_assert_ptr_nonnull(text);
	free(text);
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

static void append_reference(char *name, unsigned number)
{
	static const char digits[] = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ";
	char reference[] = {'S', digits[number % 36], '_', '\0'};

	ck_assert_uint_lt(number, 36);
	strcat(name, reference);
}

/* Each pair consists of two of the preceding pair: five more bytes double the text. */
START_TEST(doubling_names)
{
	char name[512] = "_Z1fI1AIiiE";

	for (unsigned level = 0; level < 33; level++) {
		append_reference(name, 0);
		strcat(name, "I");
		append_reference(name, 1 + level);
		append_reference(name, 1 + level);
		strcat(name, "E");
	}
	strcat(name, "EvT_");
	expect(name, NULL);
}
END_TEST

/* A reference to what starts at this offset after "_R", in base 62. */
static void append_rust_reference(char *name, size_t place)
{
	static const char digits[] = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
	char reference[] = {'B', digits[(place - 1) / 62], digits[(place - 1) % 62], '_', '\0'};

	ck_assert_uint_lt(place, 62 * 62);
	strcat(name, reference);
}

/* The same in Rust's v0 mangling: each tuple consists of two of the preceding tuple. */
START_TEST(doubling_rust_names)
{
	char name[1024] = "_RINvC1a1fTllE";
	size_t place = strlen("INvC1a1f");

	for (unsigned level = 0; level < 40; level++) {
		size_t next = strlen(name) - 2;

		strcat(name, "T");
		append_rust_reference(name, place);
		append_rust_reference(name, place);
		strcat(name, "E");
		place = next;
	}
	strcat(name, "E");
	expect(name, NULL);
}
END_TEST

START_TEST(long_names)
{
	static char name[40000] = "_Z";

	memset(name + 2, '9', sizeof(name) - 3);
	expect(name, NULL);
}
END_TEST

/* Nothing is printed before these have taken twice as long for each level. */
START_TEST(doubling_time_is_bounded)
{
	char conversion[512] = "_ZN1Acv", pack[512] = "_Z1fIiEDpFv1AIiiE";

	for (unsigned level = 0; level < 50; level++)
		strcat(conversion, "T_I");
	strcat(conversion, "i");
	for (unsigned level = 0; level < 50; level++)
		strcat(conversion, "E");
	strcat(conversion, "Ev");
	expect(conversion, NULL);
	for (unsigned level = 0; level < 33; level++) {
		append_reference(pack, 0);
		strcat(pack, "I");
		append_reference(pack, 1 + level);
		append_reference(pack, 1 + level);
		strcat(pack, "E");
	}
	strcat(pack, "Ev");
	expect(pack, NULL);
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

	tcase_add_tests(tests, names_are_demangled, names_of_ada, names_of_d, doubling_names, doubling_time_is_bounded,
			conversions_and_packs, doubling_rust_names, long_names);
	return suite;
}
