// SPDX-License-Identifier: LGPL-2.1-or-later
/* The accounts: births, releases, late stacks, trend. */
#include <check.h>
#include <stdlib.h>

#include "analysis/ledger.h"
#include "model/space.h"

static struct ledger ledger;

static void setup(void)
{
	ledger_init(&ledger, 1000);
}

static void teardown(void)
{
	ledger_deinit(&ledger);
}

static uint32_t open_birth(uint64_t time_ns)
{
	uint32_t birth = 0;

	ledger.now_ns = time_ns;
	ck_assert_ptr_null(ledger_open(&ledger, 0, 0, &birth));
	ck_assert_uint_ge(birth, BIRTH_FIRST);
	return birth;
}

static uint32_t map_bytes(uint64_t time_ns, uint64_t bytes, uint32_t stack)
{
	uint32_t birth = open_birth(time_ns);

	ledger_born(&ledger, birth, bytes);
	ck_assert_ptr_null(ledger_settle(&ledger, birth, stack));
	return birth;
}

static const struct account *account_of_stack(uint32_t stack)
{
	for (size_t i = 0; i < ledger.accounts.count; i++) {
		if (ledger.accounts.items[i].stack == stack)
			return &ledger.accounts.items[i];
	}
	ck_abort_msg("no account for stack %u", stack);
	return NULL;
}

START_TEST(partial_release_is_not_a_free)
{
	uint32_t birth = map_bytes(2000, 12288, 7);

	ledger_released(&ledger, birth, 4096);
	ck_assert_uint_eq(account_of_stack(7)->freed_bytes, 4096);
	ck_assert_uint_eq(account_of_stack(7)->freed_count, 0);
	ledger_released(&ledger, birth, 8192);
	ck_assert_uint_eq(account_of_stack(7)->freed_bytes, 12288);
	ck_assert_uint_eq(account_of_stack(7)->freed_count, 1);
	ck_assert_ptr_null(ledger_birth(&ledger, birth));
}
END_TEST

START_TEST(release_before_the_stack_is_known)
{
	uint32_t birth = open_birth(2000);

	ledger_born(&ledger, birth, 8192);
	ledger_released(&ledger, birth, 8192);
	ck_assert_ptr_nonnull(ledger_birth(&ledger, birth));
	ck_assert_ptr_null(ledger_settle(&ledger, birth, 3));
	ck_assert_uint_eq(account_of_stack(3)->allocated_bytes, 8192);
	ck_assert_uint_eq(account_of_stack(3)->allocated_count, 1);
	ck_assert_uint_eq(account_of_stack(3)->freed_bytes, 8192);
	ck_assert_uint_eq(account_of_stack(3)->freed_count, 1);
	ck_assert_ptr_null(ledger_birth(&ledger, birth));
}
END_TEST

START_TEST(dropped_births_leave_no_account)
{
	uint32_t birth = open_birth(2000);

	ledger_drop(&ledger, birth);
	ck_assert_uint_eq(ledger.accounts.count, 0);
	ck_assert_ptr_null(ledger_birth(&ledger, birth));
}
END_TEST

START_TEST(memory_follows_what_is_alive)
{
	for (unsigned i = 0; i < 100000; i++)
		ledger_released(&ledger, map_bytes(2000 + i, 4096, i % 3), 4096);
	ck_assert_uint_le(ledger.births.count, 2);
	ck_assert_uint_eq(ledger.accounts.count, 3);
	ck_assert_uint_eq(account_of_stack(0)->allocated_count, 33334);
	ck_assert_uint_eq(account_of_stack(0)->freed_count, 33334);
}
END_TEST

START_TEST(same_stack_in_two_processes_is_two_accounts)
{
	uint32_t birth = 0;

	map_bytes(2000, 4096, 5);
	ck_assert_ptr_null(ledger_open(&ledger, 1, 0, &birth));
	ledger_born(&ledger, birth, 4096);
	ck_assert_ptr_null(ledger_settle(&ledger, birth, 5));
	ck_assert_uint_eq(ledger.accounts.count, 2);
	ck_assert_uint_ne(ledger.accounts.items[0].process, ledger.accounts.items[1].process);
}
END_TEST

START_TEST(births_of_the_kernel_are_ignored)
{
	ledger_born(&ledger, BIRTH_BEFORE, 4096);
	ledger_released(&ledger, BIRTH_KERNEL, 4096);
	ck_assert_uint_eq(ledger.births.count, 0);
}
END_TEST

/* One mapping a second for as long as `seconds`; the trend must rise steadily whatever the width of the buckets became. */
START_TEST(trend_rises_steadily)
{
	const unsigned seconds[] = {8, 100, 5000};
	uint64_t trend[10];
	uint64_t second = 1000000000;

	for (unsigned i = 0; i < seconds[_i]; i++)
		map_bytes(1000 + i * second, 4096, 1);
	ledger_trend(&ledger, account_of_stack(1), 1000 + seconds[_i] * second, trend, 10);
	ck_assert_uint_eq(trend[9], seconds[_i] * 4096ULL);
	for (unsigned i = 1; i < 10; i++)
		ck_assert_uint_ge(trend[i], trend[i - 1]);
	ck_assert_uint_ge(trend[4], seconds[_i] * 4096ULL * 3 / 8);
	ck_assert_uint_le(trend[4], seconds[_i] * 4096ULL * 5 / 8);
}
END_TEST

START_TEST(trend_falls_when_memory_is_released)
{
	uint64_t trend[4];
	uint32_t birth = map_bytes(1000, 4096, 1);

	ledger.now_ns = 3000001000;
	ledger_released(&ledger, birth, 4096);
	ledger_trend(&ledger, account_of_stack(1), 4000001000, trend, 4);
	ck_assert_uint_eq(trend[0], 4096);
	ck_assert_uint_eq(trend[1], 4096);
	ck_assert_uint_eq(trend[3], 0);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("ledger");
	TCase *tcase = tcase_create("ledger");
	SRunner *runner;
	int failed;

	tcase_add_checked_fixture(tcase, setup, teardown);
	tcase_add_test(tcase, partial_release_is_not_a_free);
	tcase_add_test(tcase, release_before_the_stack_is_known);
	tcase_add_test(tcase, dropped_births_leave_no_account);
	tcase_add_test(tcase, memory_follows_what_is_alive);
	tcase_add_test(tcase, same_stack_in_two_processes_is_two_accounts);
	tcase_add_test(tcase, births_of_the_kernel_are_ignored);
	tcase_add_loop_test(tcase, trend_rises_steadily, 0, 3);
	tcase_add_test(tcase, trend_falls_when_memory_is_released);
	suite_add_tcase(suite, tcase);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
