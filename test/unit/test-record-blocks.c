// SPDX-License-Identifier: LGPL-2.1-or-later
/* Which memory a block of records gets: new memory costs a page fault for every page. */
#include <check.h>

#include "support/suite.h"
#include "trace/read/recording-file.h"

#define MAXIMUM (8u << 20)

static struct record_block *make_block(struct record_blocks *blocks, size_t size)
{
	struct record_block *block = record_blocks_take(blocks, size, MAXIMUM);

	ck_assert_ptr_nonnull(block);
	ck_assert_ptr_nonnull(buffer_extend(&block->content, size));
	return block;
}

START_TEST(blocks_are_reused_by_size)
{
	struct record_block *small, *large, *middle;
	struct record_blocks pool = {0}, *blocks = &pool;

	small = make_block(blocks, 1 << 10);
	large = make_block(blocks, 4 << 20);
	middle = make_block(blocks, 64 << 10);
	record_blocks_give_back(blocks, small);
	record_blocks_give_back(blocks, large);
	record_blocks_give_back(blocks, middle);
	ck_assert_ptr_eq(make_block(blocks, 60 << 10), middle);
	ck_assert_ptr_eq(make_block(blocks, 100), small);
	ck_assert_ptr_eq(make_block(blocks, 100), large);
	record_blocks_give_back(blocks, small);
	record_blocks_give_back(blocks, large);
	record_blocks_give_back(blocks, middle);
	record_blocks_deinit(blocks);
}
END_TEST

/* A small block would have to grow: it stays available for small records. */
START_TEST(records_that_do_not_fit_get_a_new_block)
{
	struct record_block *small, *large;
	struct record_blocks pool = {0}, *blocks = &pool;

	small = make_block(blocks, 1 << 10);
	record_blocks_give_back(blocks, small);
	large = make_block(blocks, 1 << 20);
	ck_assert_ptr_ne(large, small);
	ck_assert_ptr_eq(make_block(blocks, 1 << 10), small);
	ck_assert_uint_eq(small->content.size, 1 << 10);
	record_blocks_give_back(blocks, small);
	record_blocks_give_back(blocks, large);
	record_blocks_deinit(blocks);
}
END_TEST

START_TEST(unknown_sizes_get_the_last_block)
{
	struct record_block *small, *large;
	struct record_blocks pool = {0}, *blocks = &pool;

	small = make_block(blocks, 1 << 10);
	large = make_block(blocks, 1 << 20);
	record_blocks_give_back(blocks, small);
	record_blocks_give_back(blocks, large);
	ck_assert_ptr_eq(record_blocks_take(blocks, 0, MAXIMUM), large);
	ck_assert_uint_eq(large->content.size, 0);
	record_blocks_give_back(blocks, large);
	record_blocks_deinit(blocks);
}
END_TEST

/* In a file of tiny frames, each would look through those of all earlier ones. */
START_TEST(number_of_free_blocks_is_limited)
{
	struct record_block *list = NULL, *block;
	struct record_blocks pool = {0}, *blocks = &pool;
	unsigned kept = 0;

	for (unsigned i = 0; i < 1000; i++) {
		block = make_block(blocks, 1 << 10);
		block->next = list;
		list = block;
	}
	record_blocks_give_back(blocks, list);
	list = NULL;
	for (unsigned i = 0; i < 1000; i++) {
		block = record_blocks_take(blocks, 1 << 10, MAXIMUM);
		ck_assert_ptr_nonnull(block);
		kept += block->content.capacity > 0;
		block->next = list;
		list = block;
	}
	ck_assert_uint_gt(kept, 0);
	ck_assert_uint_le(kept, 64);
	record_blocks_give_back(blocks, list);
	record_blocks_deinit(blocks);
}
END_TEST

Suite *test_suite(void)
{
	Suite *suite = suite_create("record-blocks");
	TCase *tests = add_tcase(suite, "record-blocks");

	tcase_add_tests(tests, blocks_are_reused_by_size, records_that_do_not_fit_get_a_new_block,
			unknown_sizes_get_the_last_block, number_of_free_blocks_is_limited);
	return suite;
}
