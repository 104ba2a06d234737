// SPDX-License-Identifier: LGPL-2.1-or-later
#include <check.h>
#include <stdint.h>

#include "base/map.h"
#include "support/suite.h"
#include "trace/read/decode.h"

#define MANY 20000 /* more than are remembered */
#define LONGEST 256

static struct callchain_numbers *numbers;

static void create(void)
{
	ck_assert_ptr_null(callchain_numbers_create(&numbers));
}

static void destroy(void)
{
	callchain_numbers_destroy(numbers);
}

static uint64_t number_of(const uint64_t *callchain, size_t count)
{
	uint64_t hash = 0, number = callchain_numbers_find(numbers, callchain, count, &hash);

	return number ? number : callchain_numbers_add(numbers, callchain, count, hash);
}

START_TEST(test_equal_callchains_share_a_number)
{
	const uint64_t first[] = {1, 2, 3}, equal[] = {1, 2, 3, 4}, other[] = {1, 2, 4};
	uint64_t number = number_of(first, 3);

	ck_assert_uint_ne(number, 0);
	ck_assert_uint_eq(number_of(equal, 3), number);
	ck_assert_uint_ne(number_of(equal, 4), number);
	ck_assert_uint_ne(number_of(equal, 2), number);
	ck_assert_uint_ne(number_of(other, 3), number);
	ck_assert_uint_eq(number_of(first, 3), number);
	ck_assert_uint_eq(number_of(first, 0), 0);
}
END_TEST

/* Numbered callchains are copied; those that would take too much memory get no number. */
START_TEST(test_long_callchains_get_no_number)
{
	uint64_t callchain[LONGEST + 1] = {0}, number = number_of(callchain, LONGEST);

	ck_assert_uint_ne(number, 0);
	ck_assert_uint_eq(number_of(callchain, LONGEST + 1), 0);
	callchain[LONGEST - 1]++;
	ck_assert_uint_ne(number_of(callchain, LONGEST), number);
	callchain[LONGEST - 1]--;
	ck_assert_uint_eq(number_of(callchain, LONGEST), number);
}
END_TEST

/* A number belongs to one callchain, even if other callchains were forgotten. */
START_TEST(test_numbers_are_never_reused)
{
	struct map owners = {0};
	unsigned again = 0, wrong = 0;

	for (unsigned pass = 0; pass < 3; pass++) {
		for (uint64_t i = 0; i < MANY; i++) {
			const uint64_t callchain[] = {i, 4711, i * i};
			uint64_t number = number_of(callchain, 3);
			const uint64_t *owner = map_get(&owners, number);

			/* One assertion for all: separate ones cost far more than the comparison. */
			wrong += !number || (owner && *owner != i) || !map_put(&owners, number, i);
			again += owner != NULL;
		}
	}
	ck_assert_uint_eq(wrong, 0);
	ck_assert_uint_gt(again, 0);
	ck_assert_uint_lt(again, 2 * MANY);
	map_deinit(&owners);
}
END_TEST

Suite *test_suite(void)
{
	Suite *suite = suite_create("callchain-numbers");
	TCase *tests = add_tcase(suite, "callchain-numbers");

	tcase_add_checked_fixture(tests, create, destroy);
	tcase_set_timeout(tests, 600);
	tcase_add_tests(tests, test_equal_callchains_share_a_number, test_long_callchains_get_no_number,
			test_numbers_are_never_reused);
	return suite;
}
