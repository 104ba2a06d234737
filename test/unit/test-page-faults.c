/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "model/page-faults.h"
#include "support/suite.h"

#define PAGES 64
#define PAGE 4096ull

static struct page_faults faults;

static void touch(uint64_t start, uint64_t end, uint32_t stack, uint32_t weight)
{
	const struct page_fault fault = {
	    .start = start * PAGE, .end = end * PAGE, .stack = stack, .weight = weight, .time_ns = 7};

	ck_assert(page_faults_add(&faults, &fault));
}

/* What is expected of each page: its stack, 0 for none. */
static void expect(const uint32_t stacks[PAGES])
{
	uint32_t found[PAGES] = {0};
	uint64_t position = 0;
	struct page_fault part;

	while (page_faults_next(&faults, &position, UINT64_MAX, &part)) {
		for (uint64_t page = part.start / PAGE; page < part.end / PAGE; page++) {
			ck_assert_uint_lt(page, PAGES);
			found[page] = part.stack;
		}
	}
	ck_assert_mem_eq(found, stacks, sizeof(found));
}

START_TEST(the_last_fault_of_a_page_counts)
{
	touch(1, 4, 1, 1);
	touch(2, 3, 2, 1);
	expect((uint32_t[PAGES]){[1] = 1, [2] = 2, [3] = 1});
	ck_assert_uint_eq(faults.runs.count, 3);
	intervals_deinit(&faults.runs);
}
END_TEST

START_TEST(neighbours_merge_unless_they_are_samples)
{
	touch(1, 2, 1, 1);
	touch(3, 4, 1, 1);
	touch(2, 3, 1, 1);
	ck_assert_uint_eq(faults.runs.count, 1);
	touch(4, 5, 1, 97);
	touch(5, 6, 1, 97);
	touch(6, 7, 2, 1);
	ck_assert_uint_eq(faults.runs.count, 4);
	/* A huge page replaces all. */
	touch(0, 32, 3, 1);
	ck_assert_uint_eq(faults.runs.count, 1);
	intervals_deinit(&faults.runs);
}
END_TEST

START_TEST(ranges_that_overlap_are_not_moved)
{
	touch(1, 4, 1, 1);
	ck_assert(page_faults_move(&faults, PAGE, 2 * PAGE, 3 * PAGE));
	ck_assert(page_faults_move(&faults, PAGE, UINT64_MAX - PAGE + 1, 3 * PAGE));
	expect((uint32_t[PAGES]){[1] = 1, [2] = 1, [3] = 1});
	intervals_deinit(&faults.runs);
}
END_TEST

/* Compares with an array of pages. */
START_TEST(random_programs_agree_with_an_array)
{
	uint32_t stacks[PAGES];

	srand((unsigned)_i);
	memset(stacks, 0, sizeof(stacks));
	for (unsigned step = 0; step < 300; step++) {
		uint64_t length = 1 + (unsigned)rand() % 8, start = (unsigned)rand() % (PAGES - length);
		uint64_t to = (unsigned)rand() % (PAGES - length);
		uint32_t stack = 1 + (unsigned)rand() % 3, moved[8];
		unsigned what = (unsigned)rand() % 10;

		if (what < 6) {
			touch(start, start + length, stack, what < 4 ? 1 : 97);
			for (uint64_t i = 0; i < length; i++)
				stacks[start + i] = stack;
		} else if (what < 8) {
			ck_assert(page_faults_forget(&faults, start * PAGE, (start + length) * PAGE));
			memset(stacks + start, 0, length * sizeof(*stacks));
		} else if (start + length <= to || to + length <= start) {
			ck_assert(page_faults_move(&faults, start * PAGE, to * PAGE, length * PAGE));
			memcpy(moved, stacks + start, length * sizeof(*stacks));
			memset(stacks + start, 0, length * sizeof(*stacks));
			memcpy(stacks + to, moved, length * sizeof(*stacks));
		}
		expect(stacks);
	}
	intervals_deinit(&faults.runs);
}
END_TEST

Suite *test_suite(void)
{
	Suite *suite = suite_create("page-faults");
	TCase *tests = add_tcase(suite, "page-faults");

	tcase_add_tests(tests, the_last_fault_of_a_page_counts, neighbours_merge_unless_they_are_samples,
			ranges_that_overlap_are_not_moved);
	tcase_add_loop_test(tests, random_programs_agree_with_an_array, 0, 50);
	return suite;
}
