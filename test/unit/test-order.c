// SPDX-License-Identifier: LGPL-2.1-or-later
#include <check.h>

#include "support/run-suite.h"
#include "trace/order.h"

static struct order *order;

static void create(void)
{
	ck_assert_ptr_null(order_create(&order));
}

static void destroy(void)
{
	order_destroy(order);
}

/* The record's content is its name. */
static void push(uint64_t time_ns, uint8_t name)
{
	ck_assert_ptr_null(order_push(order, time_ns, name, &name, 1));
}

/* 0: nothing may go out. */
static uint8_t pop(void)
{
	struct order_item item;

	if (!order_pop(order, &item))
		return 0;
	ck_assert_uint_eq(item.size, 1);
	ck_assert_uint_eq(item.file_offset, *item.record);
	return *item.record;
}

/*
 * ring 0:  a10        c30 | d35     f50 |
 * ring 1:       b20       |    e40      |
 * round:        1         |      2      | 3
 * Behind round 2 everything up to 30, the youngest of round 1, may go out.
 */
START_TEST(a_round_releases_what_the_one_before_had)
{
	push(10, 'a');
	push(30, 'c');
	push(20, 'b');
	ck_assert_uint_eq(pop(), 0);
	order_end_round(order);
	ck_assert_uint_eq(pop(), 0);
	push(35, 'd');
	push(50, 'f');
	push(40, 'e');
	order_end_round(order);
	ck_assert_uint_eq(pop(), 'a');
	ck_assert_uint_eq(pop(), 'b');
	ck_assert_uint_eq(pop(), 'c');
	ck_assert_uint_eq(pop(), 0);
	order_end_round(order);
	ck_assert_uint_eq(pop(), 'd');
	ck_assert_uint_eq(pop(), 'e');
	ck_assert_uint_eq(pop(), 'f');
	ck_assert_uint_eq(pop(), 0);
	ck_assert_uint_eq(order_violations(order), 0);
}
END_TEST

START_TEST(the_end_releases_all)
{
	push(3, 'c');
	push(1, 'a');
	push(2, 'b');
	order_end(order);
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
	order_end(order);
	for (uint8_t i = 1; i <= 200; i++)
		ck_assert_uint_eq(pop(), i);
}
END_TEST

START_TEST(late_records_are_counted)
{
	push(10, 'a');
	order_end_round(order);
	order_end_round(order);
	ck_assert_uint_eq(pop(), 'a');
	push(5, 'b');
	order_end(order);
	ck_assert_uint_eq(pop(), 'b');
	ck_assert_uint_eq(order_violations(order), 1);
}
END_TEST

START_TEST(memory_is_bounded_by_the_rounds)
{
	size_t most = 0;
	uint64_t popped = 0;

	for (uint64_t round = 0; round < 1000; round++) {
		for (uint64_t i = 0; i < 100; i++)
			push(1 + round * 1000 + (i * 37) % 100, 'x');
		order_end_round(order);
		while (pop())
			popped++;
		if (order_bytes(order) > most)
			most = order_bytes(order);
	}
	order_end(order);
	while (pop())
		popped++;
	ck_assert_uint_eq(popped, 100000);
	ck_assert_uint_lt(most, 64 * 1024);
	ck_assert_uint_eq(order_violations(order), 0);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("order");
	TCase *cases = tcase_create("rounds");

	tcase_add_checked_fixture(cases, create, destroy);
	tcase_add_test(cases, a_round_releases_what_the_one_before_had);
	tcase_add_test(cases, the_end_releases_all);
	tcase_add_test(cases, equal_times_keep_their_order);
	tcase_add_test(cases, late_records_are_counted);
	tcase_add_test(cases, memory_is_bounded_by_the_rounds);
	suite_add_tcase(suite, cases);
	return run_suite(suite);
}
