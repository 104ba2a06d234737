// SPDX-License-Identifier: LGPL-2.1-or-later
#include <check.h>

#include "model/space/intervals.h"
#include "support/suite.h"

static void insert(struct intervals *intervals, uint64_t start)
{
	const struct space_interval interval = {.start = start, .end = start + 4096};

	ck_assert_ptr_nonnull(intervals_insert(intervals, &interval, 0));
}

/* The root's earlier content is not used while the directory is empty. */
START_TEST(an_empty_map_is_not_searched)
{
	struct intervals intervals = {0};

	for (uint64_t i = 1; i <= 100; i++) {
		insert(&intervals, i * 8192);
		ck_assert_uint_eq(intervals.count, 1);
		ck_assert_uint_eq(intervals.found, 0);
		ck_assert_uint_eq(intervals_next(&intervals, 0)->interval.start, i * 8192);
		intervals_remove(&intervals, i * 8192);
		ck_assert_ptr_null(intervals_next(&intervals, 0));
	}
	intervals_deinit(&intervals);
}
END_TEST

static void check_found(const struct intervals *intervals, uint64_t first, uint64_t count)
{
	for (uint64_t i = first; i <= count; i++) {
		ck_assert_uint_eq(intervals_next(intervals, i * 8192 + 4095)->interval.start, i * 8192);
		ck_assert_uint_eq(intervals_next(intervals, i * 8192 - 1)->interval.start, i * 8192);
		ck_assert_uint_eq(intervals_before(intervals, i * 8192 + 1)->interval.start, i * 8192);
	}
	ck_assert_ptr_null(intervals_next(intervals, count * 8192 + 4096));
	ck_assert_ptr_null(intervals_next(intervals, UINT64_MAX));
}

/* However many chunks there are, growing and shrinking. */
START_TEST(each_interval_is_found)
{
	struct intervals intervals = {0};
	const uint64_t most = 6000;

	for (uint64_t i = 1; i <= most; i++) {
		insert(&intervals, i * 8192);
		if (i % 97 == 0)
			check_found(&intervals, 1, i);
	}
	check_found(&intervals, 1, most);
	for (uint64_t i = 1; i < most; i++) {
		intervals_remove(&intervals, i * 8192);
		if (i % 97 == 0)
			check_found(&intervals, i + 1, most);
	}
	intervals_deinit(&intervals);
}
END_TEST

/* A mapping at a released address is found there without a search. */
START_TEST(removed_addresses_are_found_without_a_search)
{
	struct intervals intervals = {0};
	size_t found;

	for (uint64_t i = 1; i <= 20; i++)
		insert(&intervals, i * 8192);
	for (uint64_t i = 2; i < 20; i++) {
		intervals_remove(&intervals, i * 8192);
		found = intervals.found;
		ck_assert_uint_eq(intervals_next(&intervals, i * 8192)->interval.start, (i + 1) * 8192);
		ck_assert_uint_eq(intervals.found, found);
		insert(&intervals, i * 8192);
	}
	intervals_deinit(&intervals);
}
END_TEST

Suite *test_suite(void)
{
	Suite *suite = suite_create("intervals");
	TCase *cases = add_tcase(suite, "ranges");

	tcase_add_tests(cases, an_empty_map_is_not_searched, each_interval_is_found,
			removed_addresses_are_found_without_a_search);
	return suite;
}
