/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A unit test defines its suite; main.c, which is linked into each unit test, runs it. */
#pragma once

#include <stdlib.h>

#include "support/marks.h"

enum { EXIT_SKIP = 77 };

/* The suite of the program, which main() frees. */
Suite *test_suite(void);

/* The program's operands, up to a NULL. */
extern char **test_operands;

/* Prints why the whole program is skipped, and ends it with EXIT_SKIP. For test_suite(). */
_Noreturn void skip_suite(const char *why);

/*
 * Prints that a test is skipped and why. The test counts as passed; but if every test of the program is skipped, the
 * program exits with EXIT_SKIP. `test` is its name, or that of its function.
 */
void skip_test(const char *test, const char *why);

/* In the body of a test, not in a fixture: skips it, and returns from it. */
#define SKIP_TEST(why)                                                                                                 \
	do {                                                                                                           \
		skip_test(__func__, why);                                                                              \
		return;                                                                                                \
	} while (0)

/* A new test case at the end of the suite. */
TCase *add_tcase(Suite *suite, const char *name);

/* Adds the tests to the test case, in this order. */
#define tcase_add_tests(tcase, ...)                                                                                    \
	do {                                                                                                           \
		const TTest *const tests_to_add[] = {__VA_ARGS__};                                                     \
		for (size_t test_to_add = 0; test_to_add < sizeof(tests_to_add) / sizeof(*tests_to_add);               \
		     test_to_add++)                                                                                    \
			tcase_add_test(tcase, tests_to_add[test_to_add]);                                              \
	} while (0)
