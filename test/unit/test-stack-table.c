// SPDX-License-Identifier: LGPL-2.1-or-later
#include <check.h>

#include "analysis/resolver/resolver-state.h"
#include "support/suite.h"

START_TEST(equal_stacks_have_equal_numbers)
{
	const uint32_t frames[] = {1, 2, 3}, others[] = {1, 2, 4};
	struct intern stacks = {0};
	const uint32_t *got;
	size_t count;
	uint32_t end;

	ck_assert_uint_eq(stacks_put(&stacks, frames, 3, 7), 0);
	ck_assert_uint_eq(stacks_put(&stacks, others, 3, 7), 1);
	ck_assert_uint_eq(stacks_put(&stacks, frames, 2, 7), 2);
	ck_assert_uint_eq(stacks_put(&stacks, frames, 3, 8), 3);
	ck_assert_uint_eq(stacks_put(&stacks, frames, 3, 7), 0);
	ck_assert_uint_eq(stacks.count, 4);
	got = stacks_get(&stacks, 3, &count, &end);
	ck_assert_uint_eq(count, 3);
	ck_assert_uint_eq(end, 8);
	ck_assert_mem_eq(got, frames, sizeof(frames));
	intern_deinit(&stacks);
}
END_TEST

START_TEST(empty_and_very_deep_stacks)
{
	uint32_t frames[1000];
	struct intern stacks = {0};
	const uint32_t *got;
	size_t count;

	for (uint32_t i = 0; i < 1000; i++)
		frames[i] = i * 3;
	ck_assert_uint_eq(stacks_put(&stacks, NULL, 0, 1), 0);
	ck_assert_uint_eq(stacks_put(&stacks, frames, 1000, 1), 1);
	stacks_get(&stacks, 0, &count, NULL);
	ck_assert_uint_eq(count, 0);
	got = stacks_get(&stacks, 1, &count, NULL);
	ck_assert_uint_eq(count, 1000);
	ck_assert_mem_eq(got, frames, sizeof(frames));
	intern_deinit(&stacks);
}
END_TEST

Suite *test_suite(void)
{
	Suite *suite = suite_create("stack-table");
	TCase *interned = add_tcase(suite, "interned");

	tcase_add_tests(interned, equal_stacks_have_equal_numbers, empty_and_very_deep_stacks);
	return suite;
}
