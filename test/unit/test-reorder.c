// SPDX-License-Identifier: LGPL-2.1-or-later
#include <check.h>
#include <stdlib.h>

#include "base/limits.h"
#include "support/suite.h"
#include "trace/read/reorder.h"

#define RECORD_BYTES 64
#define LATE_NS (5000 * ORDER_JUMP_NS)
#define LONG_NS (10 * ORDER_IN_FLIGHT_NS)

static struct order *order;
static struct record_block block; /* in which all records lie: of each only its first byte, the name */
static uint8_t names[256];
static uint16_t record_bytes;

static void create(void)
{
	ck_assert_ptr_null(reorder_create(UINT32_MAX, &order));
	block = (struct record_block){0};
	record_bytes = RECORD_BYTES;
	for (unsigned i = 0; i < 256; i++)
		names[i] = (uint8_t)i;
}

static void destroy(void)
{
	reorder_destroy(order);
}

static void push_from(bool from_ring, uint64_t time_ns, uint8_t name)
{
	const struct reorder_item item = {
	    .time_ns = time_ns, .record = &names[name], .block = &block, .attribute = name, .size = record_bytes};

	ck_assert_ptr_null(reorder_push(order, &item, from_ring));
}

static void push(uint64_t time_ns, uint8_t name)
{
	push_from(true, time_ns, name);
}

/* 0: nothing may be returned. */
static uint8_t pop(void)
{
	struct record_block *done = NULL;
	struct reorder_item item;

	if (!reorder_take(order, &item, &done))
		return 0;
	ck_assert_ptr_null(done);
	ck_assert_uint_eq(item.size, record_bytes);
	ck_assert_uint_eq(item.attribute, *item.record);
	return *item.record;
}

/* Of the records that wait, with the memory for sorting them. */
static size_t waiting_bytes(void)
{
	return block.pending * (record_bytes + 2 * sizeof(struct reorder_item));
}

static void end_round(void)
{
	ck_assert_ptr_null(reorder_end_round(order));
}

static void end(void)
{
	ck_assert_ptr_null(reorder_end(order));
}

/*
 * ring 0:  a10        c30 | d35     f50 |
 * ring 1:       b20       |    e40      |
 * round:        1         |      2      | 3
 * Behind round 2 everything up to 30, the youngest of round 1, may go out.
 */
START_TEST(a_round_returns_records_of_the_preceding_one)
{
	push(10, 'a');
	push(30, 'c');
	push(20, 'b');
	ck_assert_uint_eq(pop(), 0);
	end_round();
	ck_assert_uint_eq(pop(), 0);
	push(35, 'd');
	push(50, 'f');
	push(40, 'e');
	end_round();
	ck_assert_uint_eq(pop(), 'a');
	ck_assert_uint_eq(pop(), 'b');
	ck_assert_uint_eq(pop(), 'c');
	ck_assert_uint_eq(pop(), 0);
	end_round();
	ck_assert_uint_eq(pop(), 'd');
	ck_assert_uint_eq(pop(), 'e');
	ck_assert_uint_eq(pop(), 'f');
	ck_assert_uint_eq(pop(), 0);
	ck_assert_uint_eq(order->violations, 0);
}
END_TEST

START_TEST(the_end_returns_all_records)
{
	push(3, 'c');
	push(1, 'a');
	push(2, 'b');
	end();
	ck_assert_uint_eq(pop(), 'a');
	ck_assert_uint_eq(pop(), 'b');
	ck_assert_uint_eq(pop(), 'c');
	ck_assert_uint_eq(pop(), 0);
}
END_TEST

START_TEST(equal_times_keep_their_order)
{
	for (uint8_t i = 1; i <= 200; i++)
		push(7, i);
	end();
	for (uint8_t i = 1; i <= 200; i++)
		ck_assert_uint_eq(pop(), i);
}
END_TEST

START_TEST(late_records_are_counted)
{
	push(10, 'a');
	end_round();
	end_round();
	ck_assert_uint_eq(pop(), 'a');
	push(5, 'b');
	end();
	ck_assert_uint_eq(pop(), 'b');
	ck_assert_uint_eq(order->violations, 1);
}
END_TEST

START_TEST(memory_is_bounded_by_the_rounds)
{
	size_t most = 0;
	uint64_t popped = 0;

	for (uint64_t round = 0; round < 1000; round++) {
		for (uint64_t i = 0; i < 100; i++)
			push(1 + round * 1000 + (i * 37) % 100, 'x');
		end_round();
		while (pop())
			popped++;
		if (waiting_bytes() > most)
			most = waiting_bytes();
	}
	end();
	while (pop())
		popped++;
	ck_assert_uint_eq(popped, 100000);
	ck_assert_uint_lt(most, 64 * 1024);
	ck_assert_uint_eq(order->violations, 0);
}
END_TEST

/* Three rings whose records alternate, some with equal times. */
START_TEST(runs_of_any_length_are_merged)
{
	uint64_t times[256], last = 0;
	size_t taken = 0;

	for (unsigned i = 1; i < 256; i++) {
		times[i] = 1 + (i % 3) * 7 + i / (1 + i % 5);
		push(times[i], (uint8_t)i);
	}
	end();
	for (uint8_t name = pop(), before = 0; name; before = name, name = pop(), taken++) {
		ck_assert_uint_ge(times[name], last);
		if (times[name] == last)
			ck_assert_uint_gt(name, before);
		last = times[name];
	}
	ck_assert_uint_eq(taken, 255);
}
END_TEST

/* Rounds of one ring, two rings and so on, each starting a little earlier than the preceding one ended. */
START_TEST(rounds_of_any_number_of_runs_are_merged)
{
	uint64_t times[256], last = 0;
	uint8_t name = 0, before = 0;
	size_t taken = 0;

	for (unsigned runs = 1; runs < 8; runs++) {
		for (unsigned i = 0; i < runs * 9; i++) {
			times[++name] = 1 + runs * 20 + i % 9 * 3 + i / 9 % 2;
			push(times[name], name);
		}
		end_round();
		if (runs % 3 == 0)
			continue;
		for (uint8_t next; (next = pop()); before = next, taken++) {
			ck_assert_uint_ge(times[next], last);
			ck_assert(times[next] > last || next > before);
			last = times[next];
		}
	}
	end();
	for (uint8_t next; (next = pop()); before = next, taken++) {
		ck_assert(times[next] > last || (times[next] == last && next > before));
		last = times[next];
	}
	ck_assert_uint_eq(taken, 252);
}
END_TEST

/* A record without a time takes that of the last returned one. */
START_TEST(a_record_without_a_time_keeps_its_place)
{
	push(10, 'a');
	end_round();
	end_round();
	ck_assert_uint_eq(pop(), 'a');
	push(20, 'c');
	push_from(false, 0, 'b');
	end();
	ck_assert_uint_eq(pop(), 'b');
	ck_assert_uint_eq(pop(), 'c');
}
END_TEST

/* Ends of rounds are missing: the older half is returned when the window is full, in order. */
START_TEST(without_rounds_memory_is_bounded)
{
	size_t records = 3 * (size_t)LIMIT_ORDER_WINDOW_BYTES / 4096, taken = 0;

	record_bytes = 4096;
	for (size_t i = 0; i < records; i++) {
		push(1000 + (i ^ 1), 'x');
		while (pop())
			taken++;
		ck_assert_uint_le(waiting_bytes(), 2 * (size_t)LIMIT_ORDER_WINDOW_BYTES);
	}
	ck_assert_uint_gt(taken, records / 2);
	push(1, 'l');
	end();
	while (pop())
		taken++;
	ck_assert_uint_eq(taken, records + 1);
	/* The last one was late. */
	ck_assert_uint_eq(order->violations, 1);
}
END_TEST

/* Of each block one record stays, whose time is far ahead. */
START_TEST(blocks_that_few_records_keep_are_bounded)
{
	struct record_block *blocks = calloc(100, sizeof(*blocks)), *done = NULL;
	struct reorder_item taken;
	size_t kept, k;

	ck_assert_ptr_nonnull(blocks);
	for (size_t i = 0; i < 100; i++) {
		struct reorder_item item = {.time_ns = LATE_NS + i, .record = names, .block = &blocks[i], .size = 64};

		blocks[i].left = true;
		blocks[i].content.capacity = LIMIT_FRAME_BYTES;
		ck_assert_ptr_null(reorder_push(order, &item, false));
		push(i + 1, 'x');
		while (reorder_take(order, &taken, &done))
			;
		for (kept = 0, k = 0; k <= i; k++)
			kept += blocks[k].pending ? LIMIT_FRAME_BYTES : 0;
		ck_assert_uint_le(waiting_bytes() + kept, LIMIT_ORDER_WINDOW_BYTES + 4 * (size_t)LIMIT_FRAME_BYTES);
	}
	ck_assert_ptr_nonnull(done);
	end();
	while (reorder_take(order, &taken, &done))
		;
	ck_assert_uint_eq(order->violations > 0, true);
	for (k = 0; k < 100; k++)
		ck_assert_uint_eq(blocks[k].pending, 0);
	free(blocks);
}
END_TEST

/* The smallest records need more room for sorting than for themselves. Assertions are slow, so there are few. */
START_TEST(small_records_are_bounded_too)
{
	struct record_block *done = NULL;
	struct reorder_item item = {.record = names, .block = &block, .size = 8}, taken;
	size_t most = 0, failures = 0;

	record_bytes = item.size;
	for (item.time_ns = 1; item.time_ns <= 4000000; item.time_ns++) {
		failures += reorder_push(order, &item, true) != NULL;
		while (reorder_take(order, &taken, &done))
			;
		if (waiting_bytes() > most)
			most = waiting_bytes();
	}
	ck_assert_uint_eq(failures, 0);
	ck_assert_uint_le(most, 2 * (size_t)LIMIT_ORDER_WINDOW_BYTES);
	end();
	while (reorder_take(order, &taken, &done))
		;
	ck_assert_uint_eq(order->violations, 0);
}
END_TEST

/* A block is returned with its last record, but not while it may still contain records. */
START_TEST(blocks_are_returned_with_their_last_record)
{
	struct record_block other = {0}, *done = NULL;
	struct reorder_item item = {.time_ns = 2, .record = &names[1], .block = &other}, taken;

	push(1, 'a');
	ck_assert_ptr_null(reorder_push(order, &item, true));
	push(3, 'c');
	other.left = true;
	end();
	ck_assert(reorder_take(order, &taken, &done));
	ck_assert_ptr_null(done);
	ck_assert(reorder_take(order, &taken, &done) && reorder_take(order, &taken, &done));
	ck_assert(!reorder_take(order, &taken, &done));
	ck_assert_ptr_eq(done, &other);
	ck_assert_ptr_null(other.next);
	ck_assert_uint_eq(block.pending, 0);
}
END_TEST

/* The end of its round is missing. A block without remaining records is returned, as when its records are. Just
 * before the latest record of the preceding round, another ring may have had a record that was not read yet. */
START_TEST(records_of_an_unfinished_round_are_discarded)
{
	struct record_block other = {.left = true}, *done = NULL;
	struct reorder_item item = {.time_ns = 5 * LONG_NS, .record = &names['e'], .attribute = 'e', .block = &other};
	struct reorder_unfinished unfinished;

	item.size = record_bytes;
	push(LONG_NS, 'a');
	push(2 * LONG_NS, 'b');
	end_round();
	ck_assert_ptr_null(reorder_push(order, &item, true));
	push(3 * LONG_NS, 'd');
	push(2 * LONG_NS - ORDER_IN_FLIGHT_NS, 'c');
	ck_assert_ptr_null(reorder_end_early(order, &unfinished, &done));
	ck_assert_uint_eq(unfinished.records, 3);
	ck_assert_uint_eq(unfinished.span_ns, 3 * LONG_NS + ORDER_IN_FLIGHT_NS);
	ck_assert_ptr_eq(done, &other);
	ck_assert_uint_eq(block.pending, 2);
	ck_assert_uint_eq(pop(), 'a');
	ck_assert_uint_eq(pop(), 'c');
	ck_assert_uint_eq(pop(), 0);
	ck_assert_uint_eq(block.pending, 0);
}
END_TEST

/* The recorder writes its own records before it drains; records of an earlier round are older. */
START_TEST(complete_records_of_an_unfinished_round_stay)
{
	struct reorder_unfinished unfinished;
	struct record_block *done = NULL;

	push(LONG_NS, 'a');
	push_from(false, LONG_NS + 5, 'b');
	end_round();
	if (_i) {
		push(LONG_NS + 6, 'c');
		end_round();
	}
	push(LONG_NS + 7, 'd');
	ck_assert_ptr_null(reorder_end_early(order, &unfinished, &done));
	ck_assert_uint_eq(unfinished.records, 1 + _i);
	ck_assert_uint_eq(unfinished.span_ns, 2);
	ck_assert_uint_eq(pop(), 'a');
	ck_assert_uint_eq(pop(), 'b');
	ck_assert_uint_eq(pop(), 0);
}
END_TEST

/* A quiet ring has no record in a round: what the earlier rounds had is complete. */
START_TEST(a_quiet_round_completes_the_one_before)
{
	struct reorder_unfinished unfinished;
	struct record_block *done = NULL;

	push(LONG_NS, 'a');
	end_round();
	end_round();
	push(2 * LONG_NS, 'b');
	ck_assert_ptr_null(reorder_end_early(order, &unfinished, &done));
	ck_assert_uint_eq(unfinished.records, 1);
	ck_assert_uint_eq(unfinished.span_ns, LONG_NS);
	ck_assert_uint_eq(pop(), 'a');
	ck_assert_uint_eq(pop(), 0);
}
END_TEST

/* Files of recorders that did not write rounds yet, and one that was truncated in its first round: a mark at the
 * start of the data ends nothing. */
START_TEST(without_rounds_an_early_end_returns_all)
{
	struct reorder_unfinished unfinished;
	struct record_block *done = NULL;

	if (_i)
		end_round();
	push(20, 'b');
	push(10, 'a');
	ck_assert_ptr_null(reorder_end_early(order, &unfinished, &done));
	ck_assert_uint_eq(unfinished.records, 0);
	ck_assert_ptr_null(done);
	ck_assert_uint_eq(pop(), 'a');
	ck_assert_uint_eq(pop(), 'b');
}
END_TEST

Suite *test_suite(void)
{
	Suite *suite = suite_create("reorder");
	TCase *cases = add_tcase(suite, "rounds");

	tcase_add_checked_fixture(cases, create, destroy);
	tcase_add_tests(cases, a_round_returns_records_of_the_preceding_one, the_end_returns_all_records,
			records_of_an_unfinished_round_are_discarded);
	tcase_add_loop_test(cases, complete_records_of_an_unfinished_round_stay, 0, 2);
	tcase_add_test(cases, a_quiet_round_completes_the_one_before);
	tcase_add_loop_test(cases, without_rounds_an_early_end_returns_all, 0, 2);
	tcase_add_tests(cases, equal_times_keep_their_order, late_records_are_counted,
			a_record_without_a_time_keeps_its_place, memory_is_bounded_by_the_rounds,
			runs_of_any_length_are_merged, rounds_of_any_number_of_runs_are_merged,
			without_rounds_memory_is_bounded, blocks_that_few_records_keep_are_bounded,
			small_records_are_bounded_too, blocks_are_returned_with_their_last_record);
	return suite;
}
