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

#define RANDOM_RANGES 200
#define ADDRESSES 64

static uint32_t random_below(uint32_t limit)
{
	static uint32_t state = 1;

	state = state * 1664525 + 1013904223;
	return (state >> 8) % limit;
}

/* Looks at all ranges. */
static uint32_t slow_find(const struct timed_range *of, uint64_t address, uint64_t time_ns)
{
	uint32_t first = CODE_TIMELINE_NONE, latest = CODE_TIMELINE_NONE;

	for (uint32_t i = 0; i < RANDOM_RANGES; i++) {
		if (address < of[i].start || address >= of[i].end)
			continue;
		first = first == CODE_TIMELINE_NONE ? i : first;
		latest = of[i].from_ns <= time_ns ? i : latest;
	}
	return latest == CODE_TIMELINE_NONE ? first : latest;
}

/* Ranges that overlap in any way, several of which have one time. Where the epoch stays, so do all answers that belong
 * to ranges that exist. */
START_TEST(test_any_ranges)
{
	struct timed_range of[RANDOM_RANGES];
	struct code_timeline *random;
	uint64_t epoch, last = 0;
	uint32_t before[ADDRESSES];

	for (uint64_t i = 0; i < RANDOM_RANGES; i++) {
		uint64_t start = random_below(ADDRESSES - 1);

		of[i] = (struct timed_range){start, start + 1 + random_below(i % 2 ? 3 : ADDRESSES), i / 3 + 1};
	}
	ck_assert_ptr_null(code_timeline_create(of, RANDOM_RANGES, &random));
	for (uint64_t time_ns = 0; time_ns <= RANDOM_RANGES / 3 + 1; time_ns++) {
		epoch = code_timeline_epoch(random, time_ns);
		ck_assert_uint_ge(epoch, last);
		for (uint64_t address = 0; address < ADDRESSES; address++) {
			uint32_t found = code_timeline_find(random, address, time_ns);

			ck_assert_uint_eq(found, slow_find(of, address, time_ns));
			ck_assert(!time_ns || epoch != last || found == before[address]);
			before[address] = found;
		}
		last = epoch;
	}
	code_timeline_destroy(random);
}
END_TEST

/* Without any range, nothing is found. */
START_TEST(test_no_ranges)
{
	struct code_timeline *empty;

	ck_assert_ptr_null(code_timeline_create(NULL, 0, &empty));
	ck_assert_uint_eq(code_timeline_find(empty, 0x1000, 10), CODE_TIMELINE_NONE);
	ck_assert_uint_eq(code_timeline_epoch(empty, 10), 0);
	code_timeline_destroy(empty);
}
END_TEST

Suite *test_suite(void)
{
	Suite *suite = suite_create("code-timeline");
	TCase *tests = add_tcase(suite, "code-timeline");

	tcase_add_checked_fixture(tests, set_up, tear_down);
	tcase_add_tests(tests, test_code_is_found_by_time, test_time_may_go_back, test_any_ranges, test_no_ranges);
	return suite;
}
