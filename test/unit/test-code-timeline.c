// SPDX-License-Identifier: LGPL-2.1-or-later
#include "code/jit/code-timeline.h"

#include <check.h>

#include "support/suite.h"

/* One method, and later a second one at its address; then one after them that stays. */
static const struct timed_range ranges[] = {
    {.start = 0x1000, .end = 0x2000, .from_ns = 10},
    {.start = 0x1800, .end = 0x2000, .from_ns = 20},
    {.start = 0x3000, .end = 0x4000, .from_ns = 30},
};
enum { FIRST, SECOND, LATE };

static struct code_timeline *timeline;

static void set_up(void)
{
	ck_assert_ptr_null(code_timeline_create(ranges, sizeof(ranges) / sizeof(*ranges), &timeline));
}

static void tear_down(void)
{
	code_timeline_destroy(timeline);
}

START_TEST(test_code_is_found_by_time)
{
	ck_assert_uint_eq(code_timeline_find(timeline, 0x1800, 5), FIRST);
	ck_assert_uint_eq(code_timeline_find(timeline, 0x1800, 19), FIRST);
	ck_assert_uint_eq(code_timeline_find(timeline, 0x1800, 20), SECOND);
	ck_assert_uint_eq(code_timeline_find(timeline, 0x17ff, 20), FIRST);
	ck_assert_uint_eq(code_timeline_find(timeline, 0x3000, 20), LATE);
	ck_assert_uint_eq(code_timeline_find(timeline, 0x2000, 40), CODE_TIMELINE_NONE);
	ck_assert_uint_eq(code_timeline_find(timeline, 0xfff, 40), CODE_TIMELINE_NONE);
}
END_TEST

START_TEST(test_time_may_go_back)
{
	for (int i = 0; i < 1000; i++) {
		ck_assert_uint_eq(code_timeline_find(timeline, 0x1800, 40), SECOND);
		ck_assert_uint_eq(code_timeline_find(timeline, 0x1800, 15), FIRST);
	}
}
END_TEST

/* However often an earlier time is requested: the work is bounded, and no result belongs to another time. */
START_TEST(test_going_back_is_bounded)
{
	uint64_t epoch;

	for (int i = 0; i < 1 << 20; i++) {
		(void)code_timeline_epoch(timeline, 40);
		(void)code_timeline_epoch(timeline, 15);
	}
	epoch = code_timeline_epoch(timeline, 40);
	ck_assert_uint_eq(code_timeline_find(timeline, 0x1800, 40), SECOND);
	ck_assert_uint_eq(code_timeline_find(timeline, 0x1800, 15), CODE_TIMELINE_NONE);
	ck_assert_uint_eq(code_timeline_find(timeline, 0x17ff, 15), FIRST);
	ck_assert_uint_eq(code_timeline_find(timeline, 0x3000, 15), LATE);
	ck_assert_uint_ne(code_timeline_epoch(timeline, 15), epoch);
	epoch = code_timeline_epoch(timeline, 15);
	ck_assert_uint_ne(code_timeline_epoch(timeline, 40), epoch);
	ck_assert_uint_eq(code_timeline_find(timeline, 0x1800, 40), SECOND);
}
END_TEST

Suite *test_suite(void)
{
	Suite *suite = suite_create("code-timeline");
	TCase *tests = add_tcase(suite, "code-timeline");

	tcase_add_checked_fixture(tests, set_up, tear_down);
	tcase_add_tests(tests, test_code_is_found_by_time, test_time_may_go_back, test_going_back_is_bounded);
	return suite;
}
