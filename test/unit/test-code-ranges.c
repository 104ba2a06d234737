// SPDX-License-Identifier: LGPL-2.1-or-later
/* Ranges are added and removed, compared with a model that has a cell for each address. */
#include <check.h>
#include <string.h>

#include "base/limits.h"
#include "capture/jit-code/code-pages.h"
#include "support/suite.h"

static void expect_ranges(const struct code_ranges *ranges, size_t count, const struct code_range *expected)
{
	const struct code_range *range = NULL;

	ck_assert_uint_eq(ranges->count, count);
	for (size_t i = 0; i < count; i++) {
		range = code_ranges_from(ranges, range ? range->end : 0);
		ck_assert_ptr_nonnull(range);
		ck_assert_uint_eq(range->start, expected[i].start);
		ck_assert_uint_eq(range->end, expected[i].end);
		ck_assert_uint_eq(range->noted_ns, expected[i].noted_ns);
	}
	ck_assert_ptr_null(code_ranges_from(ranges, range ? range->end : 0));
}

START_TEST(ranges_are_added_and_removed)
{
	struct code_ranges ranges = {0};

	ck_assert(code_ranges_add(&ranges, 30, 40, 5) && code_ranges_add(&ranges, 10, 20, 5));
	expect_ranges(&ranges, 2, (struct code_range[]){{10, 20, 5}, {30, 40, 5}});
	ck_assert(code_ranges_add(&ranges, 15, 35, 6));
	expect_ranges(&ranges, 3, (struct code_range[]){{10, 15, 5}, {15, 35, 6}, {35, 40, 5}});
	ck_assert(code_ranges_add(&ranges, 10, 40, 7) && code_ranges_remove(&ranges, 40, 50, 7));
	expect_ranges(&ranges, 1, (struct code_range[]){{10, 40, 7}});
	ck_assert(code_ranges_remove(&ranges, 15, 25, 8));
	expect_ranges(&ranges, 2, (struct code_range[]){{10, 15, 7}, {25, 40, 7}});
	ck_assert(code_ranges_remove(&ranges, 12, 30, 8) && code_ranges_remove(&ranges, 5, 11, 7));
	expect_ranges(&ranges, 2, (struct code_range[]){{11, 12, 7}, {30, 40, 7}});
	ck_assert(code_ranges_remove(&ranges, 0, 100, 8) && code_ranges_remove(&ranges, 1, 2, 8));
	expect_ranges(&ranges, 0, NULL);
	code_ranges_deinit(&ranges);
}
END_TEST

/* A late record of another ring describes a range that has been replaced since. */
START_TEST(late_records_do_not_replace_newer_ranges)
{
	struct code_ranges ranges = {0};

	ck_assert(code_ranges_add(&ranges, 20, 30, 9) && code_ranges_add(&ranges, 40, 50, 5));
	ck_assert(code_ranges_remove(&ranges, 0, 100, 8));
	expect_ranges(&ranges, 1, (struct code_range[]){{20, 30, 9}});
	ck_assert(code_ranges_remove(&ranges, 25, 26, 8));
	expect_ranges(&ranges, 1, (struct code_range[]){{20, 30, 9}});
	ck_assert(code_ranges_add(&ranges, 10, 40, 6));
	expect_ranges(&ranges, 3, (struct code_range[]){{10, 20, 6}, {20, 30, 9}, {30, 40, 6}});
	ck_assert(code_ranges_remove(&ranges, 15, 35, 8));
	expect_ranges(&ranges, 3, (struct code_range[]){{10, 15, 6}, {20, 30, 9}, {35, 40, 6}});
	ck_assert(code_ranges_add(&ranges, 22, 28, 7));
	expect_ranges(&ranges, 3, (struct code_range[]){{10, 15, 6}, {20, 30, 9}, {35, 40, 6}});
	code_ranges_forget(&ranges, 6);
	expect_ranges(&ranges, 1, (struct code_range[]){{20, 30, 9}});
	code_ranges_deinit(&ranges);
}
END_TEST

START_TEST(number_of_ranges_is_limited)
{
	struct code_ranges ranges = {0};

	for (uint64_t i = 0; i < LIMIT_CODE_RANGES + 5; i++)
		ck_assert(code_ranges_add(&ranges, 10 * i, 10 * i + 1, i));
	ck_assert_uint_eq(ranges.count, LIMIT_CODE_RANGES);
	ck_assert(ranges.cut);
	/* A range whose middle is removed becomes two. */
	ranges.cut = false;
	ck_assert(code_ranges_add(&ranges, 0, 8, LIMIT_CODE_RANGES));
	ck_assert(!ranges.cut);
	ck_assert(code_ranges_remove(&ranges, 3, 5, LIMIT_CODE_RANGES));
	ck_assert_uint_eq(ranges.count, LIMIT_CODE_RANGES);
	ck_assert_uint_eq(code_ranges_from(&ranges, 0)->end, 3);
	ck_assert_uint_eq(code_ranges_from(&ranges, 3)->start, 10);
	ck_assert(ranges.cut);
	ck_assert(code_ranges_remove(&ranges, 0, 8, LIMIT_CODE_RANGES));
	code_ranges_forget(&ranges, LIMIT_CODE_RANGES - 3);
	expect_ranges(&ranges, 2,
		      (struct code_range[]){
			  {10 * (LIMIT_CODE_RANGES - 2), 10 * (LIMIT_CODE_RANGES - 2) + 1, LIMIT_CODE_RANGES - 2},
			  {10 * (LIMIT_CODE_RANGES - 1), 10 * (LIMIT_CODE_RANGES - 1) + 1, LIMIT_CODE_RANGES - 1}});
	code_ranges_deinit(&ranges);
}
END_TEST

/* The piece that contains an address; 0: none. */
struct cell {
	uint64_t noted_ns;
	size_t piece;
};

#define CELLS 6000

static struct cell cells[CELLS];
static size_t pieces;
static uint64_t random_state;

static uint64_t below(uint64_t limit)
{
	random_state = random_state * 6364136223846793005ULL + 1442695040888963407ULL;
	return (random_state >> 33) % limit;
}

static void set_cells(uint64_t start, uint64_t end, struct cell value)
{
	for (uint64_t i = start; i < end; i++) {
		if (!cells[i].piece || cells[i].noted_ns <= value.noted_ns)
			cells[i] = value;
	}
}

/* The range at or after each address equals that of the cells. */
static bool is_as_cells(const struct code_ranges *ranges)
{
	uint64_t start = 0, end;
	size_t count = 0;

	for (; start < CELLS; start = end) {
		const struct code_range *range;

		for (end = start + 1; end < CELLS && cells[end].piece == cells[start].piece;)
			end++;
		range = code_ranges_from(ranges, start + below(end - start));
		count += cells[start].piece != 0;
		if (cells[start].piece &&
		    !(range && range->start == start && range->end == end && range->noted_ns == cells[start].noted_ns))
			return false;
		if (!cells[start].piece && range && range->start < end)
			return false;
	}
	return ranges->count == count && !ranges->cut;
}

/* An insertion moves few ranges, and there are few blocks. */
static bool has_good_blocks(const struct code_ranges *ranges)
{
	size_t before = CODE_RANGES_BLOCK, count = 0;

	for (size_t i = 0; i < ranges->blocks.count; i++) {
		size_t block = ranges->blocks.items[i].items.count;

		if (!block || block > CODE_RANGES_BLOCK || before + block <= CODE_RANGES_BLOCK / 2)
			return false;
		count += block;
		before = block;
	}
	return ranges->count == count;
}

/* Phases with more additions and phases with more removals; mostly of a few addresses, sometimes of many; not all in
 * time order. */
static bool change(struct code_ranges *ranges, size_t step)
{
	uint64_t length = 1 + below(below(20) ? 3 : 400), start = below(CELLS - length);
	uint64_t time_ns = 1 + step + (below(4) ? 200 : below(200));
	bool more = below(10) < (step / 5000 % 2 ? 2 : 8);

	if (more && length > 3)
		length = 3;
	set_cells(start, start + length, (struct cell){time_ns, more ? ++pieces : 0});
	return more ? code_ranges_add(ranges, start, start + length, time_ns)
		    : code_ranges_remove(ranges, start, start + length, time_ns);
}

static void forget(struct code_ranges *ranges, uint64_t until_ns)
{
	for (size_t i = 0; i < CELLS; i++) {
		if (cells[i].noted_ns <= until_ns)
			cells[i].piece = 0;
	}
	code_ranges_forget(ranges, until_ns);
}

START_TEST(random_ranges_match_a_model)
{
	struct code_ranges ranges = {0};
	size_t most = 0;
	bool done = true;

	random_state = (uint64_t)_i;
	memset(cells, 0, sizeof(cells));
	for (size_t step = 0; step < 30000; step++) {
		done = done && change(&ranges, step);
		if (step % 7000 == 6999)
			forget(&ranges, step - below(4000));
		if (step == 24999) {
			memset(cells, 0, sizeof(cells));
			code_ranges_clear(&ranges);
		}
		if (step % 100 == 99 || step == 0) {
			ck_assert(has_good_blocks(&ranges));
			ck_assert(is_as_cells(&ranges));
		}
		if (ranges.count > most)
			most = ranges.count;
	}
	ck_assert(done);
	/* It covered more than a few blocks. */
	ck_assert_uint_gt(most, 10 * CODE_RANGES_BLOCK);
	code_ranges_deinit(&ranges);
}
END_TEST

/* The order in which a snapshot reports them. */
START_TEST(ascending_ranges_fill_blocks)
{
	struct code_ranges ranges = {0};

	for (uint64_t i = 0; i < LIMIT_CODE_RANGES; i++)
		ck_assert(code_ranges_add(&ranges, 2 * i, 2 * i + 1, 1));
	ck_assert_uint_eq(ranges.count, LIMIT_CODE_RANGES);
	ck_assert_uint_eq(ranges.blocks.count, LIMIT_CODE_RANGES / CODE_RANGES_BLOCK);
	ck_assert(has_good_blocks(&ranges));
	ck_assert(code_ranges_remove(&ranges, 100, 2 * LIMIT_CODE_RANGES - 100, 1));
	ck_assert_uint_eq(ranges.count, 100);
	ck_assert(has_good_blocks(&ranges));
	code_ranges_deinit(&ranges);
}
END_TEST

Suite *test_suite(void)
{
	Suite *suite = suite_create("code ranges");
	TCase *tests = add_tcase(suite, "code ranges");

	tcase_add_tests(tests, ranges_are_added_and_removed, late_records_do_not_replace_newer_ranges,
			number_of_ranges_is_limited);
	tcase_add_loop_test(tests, random_ranges_match_a_model, 1, 5);
	tcase_add_test(tests, ascending_ranges_fill_blocks);
	return suite;
}
