// SPDX-License-Identifier: LGPL-2.1-or-later
/* The accounts: allocations, releases, commits, trend. */
#include <check.h>
#include <stdlib.h>

#include "analysis/replay/ledger.h"
#include "model/space/space.h"
#include "support/suite.h"

static struct ledger ledger;

static void setup(void)
{
	ledger_init(&ledger, &(struct ledger_options){.from_ns = 1000, .allocations_to_ns = UINT64_MAX});
}

static void teardown(void)
{
	ledger_deinit(&ledger);
}

static uint32_t open_allocation(uint64_t time_ns, uint32_t stack)
{
	uint32_t allocation = 0;

	ledger.now_ns = time_ns;
	ck_assert_ptr_null(ledger_open(&ledger, 0, 0, stack, &allocation));
	ck_assert_uint_ge(allocation, ALLOCATION_FIRST);
	return allocation;
}

static uint32_t map_bytes(uint64_t time_ns, uint64_t bytes, uint32_t stack)
{
	uint32_t allocation = open_allocation(time_ns, stack);

	ck_assert_ptr_null(ledger_born(&ledger, allocation, 0, bytes));
	ledger_close(&ledger, allocation);
	return allocation;
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
	uint32_t allocation = map_bytes(2000, 12288, 7);

	ledger_released(&ledger, allocation, 4096, 0);
	ck_assert_uint_eq(account_of_stack(7)->freed_bytes, 4096);
	ck_assert_uint_eq(account_of_stack(7)->freed_count, 0);
	ledger_released(&ledger, allocation, 8192, 0);
	ck_assert_uint_eq(account_of_stack(7)->freed_bytes, 12288);
	ck_assert_uint_eq(account_of_stack(7)->freed_count, 1);
	ck_assert_ptr_null(ledger_allocation(&ledger, allocation));
}
END_TEST

START_TEST(release_within_its_own_call)
{
	uint32_t allocation = open_allocation(2000, 3);

	ck_assert_ptr_null(ledger_born(&ledger, allocation, 0, 8192));
	ledger_released(&ledger, allocation, 8192, 0);
	ck_assert_ptr_nonnull(ledger_allocation(&ledger, allocation));
	ck_assert(ledger_close(&ledger, allocation));
	ck_assert_uint_eq(account_of_stack(3)->allocated_bytes, 8192);
	ck_assert_uint_eq(account_of_stack(3)->allocated_count, 1);
	ck_assert_uint_eq(account_of_stack(3)->freed_bytes, 8192);
	ck_assert_uint_eq(account_of_stack(3)->freed_count, 1);
	ck_assert_ptr_null(ledger_allocation(&ledger, allocation));
}
END_TEST

START_TEST(empty_allocations_leave_no_account)
{
	uint32_t allocation = open_allocation(2000, 3);

	ck_assert(!ledger_close(&ledger, allocation));
	ck_assert_uint_eq(ledger.accounts.count, 0);
	ck_assert_ptr_null(ledger_allocation(&ledger, allocation));
}
END_TEST

START_TEST(memory_depends_on_live_allocations)
{
	for (unsigned i = 0; i < 100000; i++)
		ledger_released(&ledger, map_bytes(2000 + i, 4096, i % 3), 4096, 0);
	ck_assert_uint_le(ledger.allocations.count, 2);
	ck_assert_uint_eq(ledger.accounts.count, 3);
	ck_assert_uint_eq(account_of_stack(0)->allocated_count, 33334);
	ck_assert_uint_eq(account_of_stack(0)->freed_count, 33334);
}
END_TEST

START_TEST(same_stack_in_two_processes_is_two_accounts)
{
	uint32_t allocation = 0;

	map_bytes(2000, 4096, 5);
	ck_assert_ptr_null(ledger_open(&ledger, 1, 0, 5, &allocation));
	ck_assert_ptr_null(ledger_born(&ledger, allocation, 0, 4096));
	ck_assert_uint_eq(ledger.accounts.count, 2);
	ck_assert_uint_ne(ledger.accounts.items[0].process, ledger.accounts.items[1].process);
}
END_TEST

START_TEST(allocations_of_the_kernel_are_ignored)
{
	ck_assert_ptr_null(ledger_born(&ledger, ALLOCATION_BEFORE, 0, 4096));
	ledger_released(&ledger, ALLOCATION_KERNEL, 4096, 0);
	ck_assert_uint_eq(ledger.allocations.count, 0);
}
END_TEST

/* One mapping a second for `seconds`; the trend must rise steadily whatever the width of the buckets became. */
START_TEST(trend_rises_steadily)
{
	const unsigned seconds[] = {8, 100, 5000};
	uint64_t trend[10];
	uint64_t second = 1000000000;

	for (unsigned i = 0; i < seconds[_i]; i++)
		map_bytes(1000 + i * second, 4096, 1);
	ledger_trend(&ledger, 1, 1000 + seconds[_i] * second, trend, 10);
	ck_assert_uint_eq(trend[9], seconds[_i] * 4096ULL);
	for (unsigned i = 1; i < 10; i++)
		ck_assert_uint_ge(trend[i], trend[i - 1]);
	ck_assert_uint_ge(trend[4], seconds[_i] * 4096ULL * 3 / 8);
	ck_assert_uint_le(trend[4], seconds[_i] * 4096ULL * 5 / 8);
}
END_TEST

/* Times near the maximum have a bucket too, which the next change can still use. */
START_TEST(trend_reaches_the_last_time)
{
	const uint64_t last = UINT64_MAX - 1; /* the window is open below UINT64_MAX */
	uint64_t trend[4];

	map_bytes(1000, 4096, 1);
	map_bytes(last - 1, 8192, 1);
	map_bytes(last, 16384, 1);
	ledger_trend(&ledger, 1, last, trend, 4);
	ck_assert_uint_eq(trend[0], 4096);
	ck_assert_uint_eq(trend[3], 4096 + 8192 + 16384);
}
END_TEST

START_TEST(trend_falls_when_memory_is_released)
{
	uint64_t trend[4];
	uint32_t allocation = map_bytes(1000, 4096, 1);

	ledger.now_ns = 3000001000;
	ledger_released(&ledger, allocation, 4096, 0);
	ledger_trend(&ledger, 1, 4000001000, trend, 4);
	ck_assert_uint_eq(trend[0], 4096);
	ck_assert_uint_eq(trend[1], 4096);
	ck_assert_uint_eq(trend[3], 0);
}
END_TEST

/* Growth of an allocation counts from its call, whatever happened in between. */
START_TEST(trend_accepts_older_changes)
{
	uint64_t trend[4];
	uint32_t allocation = map_bytes(1000, 4096, 1);

	map_bytes(3000001000, 16384, 1);
	ck_assert_ptr_null(ledger_born(&ledger, allocation, 0, 8192));
	map_bytes(3900001000, 65536, 1);
	ledger_trend(&ledger, 1, 4000001000, trend, 4);
	ck_assert_uint_eq(trend[0], 4096 + 8192);
	ck_assert_uint_eq(trend[1], 4096 + 8192);
	ck_assert_uint_eq(trend[3], 4096 + 8192 + 16384 + 65536);
}
END_TEST

/* allocated - freed - unfreed = 0 in accounts, rows, threads and the total. */
static void check_balance(void)
{
	uint64_t accounts[3] = {0}, threads[3] = {0}, alive = 0;

	for (size_t i = 0; i < ledger.accounts.count; i++) {
		accounts[0] += ledger.accounts.items[i].allocated_bytes;
		accounts[1] += ledger.accounts.items[i].freed_bytes;
		ck_assert_uint_ge(ledger.accounts.items[i].allocated_bytes, ledger.accounts.items[i].freed_bytes);
	}
	for (size_t i = 0; i < ledger.threads.count; i++) {
		const struct thread_account *thread = &ledger.threads.items[i];

		threads[0] += thread->allocated_bytes;
		threads[1] += thread->freed_by_itself_bytes + thread->freed_by_others_bytes;
		threads[2] += thread->released_bytes;
	}
	for (size_t i = 0; i < ledger.allocations.count; i++) {
		const struct allocation *allocation = &ledger.allocations.items[i];

		if (allocation->in_use && allocation->side == LEDGER_INSIDE)
			alive += allocation->live_bytes;
	}
	ck_assert_uint_eq(accounts[0] - accounts[1], alive);
	ck_assert_uint_eq(threads[0], accounts[0]);
	ck_assert_uint_eq(threads[1], accounts[1]);
	ck_assert_uint_le(threads[2], threads[1]);
	if (ledger.rows.count) {
		ck_assert_uint_eq(ledger.rows.items[LEDGER_ROW_TOTAL].unfreed_bytes, alive);
		ck_assert_uint_eq(ledger.rows.items[1].unfreed_bytes, alive);
		ck_assert_uint_ge(ledger.rows.items[1].peak_bytes, alive);
	}
}

/* The test's own figures for all allocations of the window: their bytes count from their call. */
static uint64_t alive_now, alive_most;

static void change_alive(uint64_t bytes)
{
	alive_now += bytes;
	if (alive_now > alive_most)
		alive_most = alive_now;
}

/* The test's own figures for one allocation. */
struct slot {
	bool inside;
	uint32_t allocation, part;
	uint64_t left, part_left;
};

static void start_slot(struct slot *slot, unsigned thread)
{
	*slot = (struct slot){.inside = ledger.now_ns >= 3000 && ledger.now_ns < 7000,
			      .left = 4096 * (1 + (uint64_t)rand() % 8)};
	ck_assert_ptr_null(ledger_open(&ledger, 0, thread, (uint32_t)rand() % 7, &slot->allocation));
	ck_assert_ptr_null(ledger_born(&ledger, slot->allocation, (uint32_t)rand() % 3, slot->left));
	change_alive(slot->inside ? slot->left : 0);
	if (rand() % 4 == 0) {
		ledger_released(&ledger, slot->allocation, 4096, (thread + 1) % 5);
		slot->left -= 4096;
		change_alive(slot->inside ? -4096ull : 0);
	}
}

/* Some of it, or all of it, becomes code. */
static void split_slot(struct slot *slot)
{
	uint64_t bytes = rand() % 2 ? slot->left : 4096;
	uint32_t part;

	ck_assert_ptr_null(ledger_split(&ledger, slot->allocation, 6, bytes, &part));
	ck_assert(!slot->part_left || part == slot->part);
	ck_assert_uint_ne(part, slot->allocation);
	slot->part = part;
	slot->part_left += bytes;
	slot->left -= bytes;
}

static void release_slot(struct slot *slot, unsigned thread)
{
	uint64_t *left = slot->left ? &slot->left : &slot->part_left;
	uint64_t bytes = rand() % 2 ? *left : 4096;

	ledger_released(&ledger, slot->left ? slot->allocation : slot->part, bytes,
			rand() % 8 ? thread : LEDGER_NO_THREAD);
	*left -= bytes;
	change_alive(slot->inside ? -bytes : 0);
}

/* Random allocations and releases by several threads, across both ends of a window; some are released, or become
 * code, while their call is applied. */
START_TEST(sums_agree_at_any_timestamp)
{
	struct slot slots[64] = {0};

	srand((unsigned)_i + 1);
	alive_now = alive_most = 0;
	ledger.options.from_ns = 3000;
	ledger.options.allocations_to_ns = 7000;
	for (unsigned step = 0; step < 10000; step++) {
		struct slot *slot = &slots[(unsigned)rand() % 64];
		unsigned thread = (unsigned)rand() % 5;

		ledger.now_ns = step;
		if (slot->left && rand() % 4 == 0) {
			split_slot(slot);
		} else if (slot->left || slot->part_left) {
			release_slot(slot, thread);
		} else {
			start_slot(slot, thread);
			if (slot->left && rand() % 4 == 0)
				split_slot(slot);
			ledger_close(&ledger, slot->allocation);
		}
		if (step % 100 == 0)
			check_balance();
	}
	for (unsigned i = 0; i < 64; i++) {
		while (slots[i].left || slots[i].part_left)
			release_slot(&slots[i], 0);
	}
	check_balance();
	ck_assert_uint_gt(alive_most, 0);
	ck_assert_uint_eq(ledger.rows.items[LEDGER_ROW_TOTAL].peak_bytes, alive_most);
	ck_assert_uint_eq(ledger.rows.items[LEDGER_ROW_TOTAL].unfreed_bytes, 0);
	for (size_t i = 0; i < ledger.accounts.count; i++) {
		ck_assert_uint_eq(ledger.accounts.items[i].allocated_bytes, ledger.accounts.items[i].freed_bytes);
		ck_assert_uint_eq(ledger.accounts.items[i].allocated_count, ledger.accounts.items[i].freed_count);
	}
	for (size_t i = 0; i < ledger.threads.count; i++)
		ck_assert_uint_eq(ledger.threads.items[i].allocated_count, ledger.threads.items[i].freed_count);
}
END_TEST

/* Part of a mapping is made executable, twice; then the remainder. */
START_TEST(parts_may_become_code)
{
	uint32_t allocation = map_bytes(2000, 40960, 7), part, again;

	ck_assert_ptr_null(ledger_split(&ledger, allocation, 6, 4096, &part));
	ck_assert_ptr_null(ledger_split(&ledger, allocation, 6, 8192, &again));
	ck_assert_uint_eq(part, again);
	ck_assert_uint_eq(ledger.accounts.count, 2);
	ck_assert_uint_eq(ledger.accounts.items[0].allocated_bytes, 28672);
	ck_assert_uint_eq(ledger.accounts.items[0].allocated_count, 1);
	ck_assert_uint_eq(ledger.accounts.items[1].kind, 6);
	ck_assert_uint_eq(ledger.accounts.items[1].stack, 7);
	ck_assert_uint_eq(ledger.accounts.items[1].allocated_bytes, 12288);
	ck_assert_uint_eq(ledger.accounts.items[1].allocated_count, 1);
	ck_assert_uint_eq(ledger_allocation(&ledger, part)->time_ns, 2000);
	ck_assert_uint_eq(ledger.threads.items[0].allocated_bytes, 40960);
	ck_assert_ptr_null(ledger_split(&ledger, allocation, 6, 28672, &again));
	ck_assert_ptr_null(ledger_allocation(&ledger, allocation));
	ck_assert_uint_eq(ledger.accounts.items[0].allocated_bytes, 0);
	ck_assert_uint_eq(ledger.accounts.items[0].allocated_count, 0);
	ck_assert_uint_eq(ledger.accounts.items[1].allocated_bytes, 40960);
	ck_assert_uint_eq(ledger.threads.items[0].allocated_count, 1);
	/* Already code. */
	ck_assert_ptr_null(ledger_split(&ledger, part, 6, 4096, &again));
	ck_assert_uint_eq(again, part);
	ck_assert_uint_eq(ledger.accounts.items[1].allocated_bytes, 40960);
}
END_TEST

/* Until it became code it belonged to the earlier class. */
START_TEST(all_of_it_may_become_code)
{
	uint64_t from_ns = ledger.options.from_ns, unfreed[4], reserved[4];
	uint32_t allocation, part;

	ledger.options.every_ns = 1000;
	allocation = map_bytes(from_ns + 1100, 8192, 7);
	ledger_reserved(&ledger, allocation, 8192);
	ledger.now_ns = from_ns + 2100;
	ledger_reserved(&ledger, allocation, -8192);
	ck_assert_ptr_null(ledger_split(&ledger, allocation, 6, 8192, &part));
	ledger.now_ns = from_ns + 3100;
	ledger_released(&ledger, part, 4096, 0);
	steps_of_rows_get(&ledger.steps, LEDGER_ROW_TOTAL, unfreed, 4);
	steps_of_rows_get(&ledger.reserved_steps, LEDGER_ROW_TOTAL, reserved, 4);
	ck_assert_uint_eq(unfreed[0], 0);
	ck_assert_uint_eq(unfreed[1], 8192);
	ck_assert_uint_eq(reserved[1], 8192);
	ck_assert_uint_eq(unfreed[2], 8192);
	ck_assert_uint_eq(reserved[2], 0);
	ck_assert_uint_eq(unfreed[3], 4096);
	ck_assert_uint_eq(ledger.accounts.count, 2);
	ck_assert_uint_eq(ledger.accounts.items[0].allocated_count, 0);
	ck_assert_uint_eq(ledger.accounts.items[1].allocated_bytes, 8192);
	ck_assert_uint_eq(ledger.accounts.items[1].allocated_count, 1);
}
END_TEST

/* A hostile recording can have more bytes than a difference in double precision has as an integer. */
START_TEST(steps_have_no_more_than_a_difference_can_have)
{
	struct steps_of_rows steps = {0};
	uint64_t bytes[2];

	ck_assert(steps_of_rows_add(&steps, 0, 0, INT64_MAX));
	steps_of_rows_get(&steps, 0, bytes, 2);
	ck_assert((double)bytes[1] < 0x1p63);
	steps_of_rows_deinit(&steps);
}
END_TEST

START_TEST(window_excludes_earlier_and_later_allocations)
{
	uint32_t older, inside, younger;

	ledger.options.from_ns = 2000;
	ledger.options.allocations_to_ns = 3000;
	older = map_bytes(1999, 4096, 1);
	inside = map_bytes(2000, 8192, 1);
	younger = map_bytes(3000, 16384, 1);
	ck_assert_uint_eq(account_of_stack(1)->allocated_bytes, 8192);
	ck_assert_int_eq(ledger_allocation(&ledger, older)->side, LEDGER_BEFORE);
	ck_assert_int_eq(ledger_allocation(&ledger, younger)->side, LEDGER_YOUNGER);
	ledger.now_ns = 9000;
	ledger_released(&ledger, inside, 4096, 0);
	ledger_released(&ledger, older, 4096, 0);
	ledger_released(&ledger, younger, 4096, 0);
	ck_assert_uint_eq(account_of_stack(1)->freed_bytes, 4096);
	ck_assert_ptr_null(ledger_allocation(&ledger, older));
	ck_assert_uint_eq(ledger_allocation(&ledger, younger)->live_bytes, 12288);
	ck_assert_uint_eq(ledger.rows.items[LEDGER_ROW_TOTAL].unfreed_bytes, 4096);
}
END_TEST

START_TEST(who_released_whose_memory)
{
	uint32_t allocation = 0;
	const uint64_t *bytes;

	ck_assert_ptr_null(ledger_open(&ledger, 0, 3, 1, &allocation));
	ck_assert_ptr_null(ledger_born(&ledger, allocation, 0, 12288));
	ledger_close(&ledger, allocation);
	ledger_released(&ledger, allocation, 4096, 5);
	ledger_released(&ledger, allocation, 4096, 3);
	ledger_released(&ledger, allocation, 4096, LEDGER_NO_THREAD);
	ck_assert_uint_eq(ledger.threads.items[3].allocated_bytes, 12288);
	ck_assert_uint_eq(ledger.threads.items[3].freed_by_itself_bytes, 4096);
	ck_assert_uint_eq(ledger.threads.items[3].freed_by_others_bytes, 8192);
	ck_assert_uint_eq(ledger.threads.items[3].freed_count, 1);
	ck_assert_uint_eq(ledger.threads.items[5].released_bytes, 4096);
	bytes = map_get(&ledger.releases, 3ULL << 32 | 5);
	ck_assert_ptr_nonnull(bytes);
	ck_assert_uint_eq(*bytes, 4096);
}
END_TEST

START_TEST(commits_of_one_account_have_one_number)
{
	uint32_t first, again, other, outside;

	ledger.now_ns = 2000;
	ck_assert_ptr_null(ledger_commit(&ledger, 0, 0, 0, 1, &first));
	ck_assert_ptr_null(ledger_commit(&ledger, 0, 0, 0, 1, &again));
	ck_assert_ptr_null(ledger_commit(&ledger, 0, 0, 0, 2, &other));
	ck_assert_uint_ge(first, COMMIT_FIRST);
	ck_assert_uint_eq(first, again);
	ck_assert_uint_ne(first, other);
	ck_assert_uint_eq(ledger_commit_account(&ledger, other), 1);
	ledger.now_ns = 500;
	ck_assert_ptr_null(ledger_commit(&ledger, 0, 0, 0, 1, &outside));
	ck_assert_uint_ne(outside, first);
	ck_assert_uint_eq(ledger_commit_account(&ledger, outside), LEDGER_NO_ACCOUNT);
}
END_TEST

/* Committed bytes over time belong to the account. */
START_TEST(committed_over_time)
{
	uint64_t points[4] = {0}, end_ns = ledger.options.from_ns + 4000000000u;
	uint32_t commit;

	ledger.now_ns = ledger.options.from_ns + 100000000;
	ck_assert_ptr_null(ledger_commit(&ledger, 0, 0, 0, 1, &commit));
	ledger_committed(&ledger, commit, 8192);
	ledger.now_ns += 1000000000;
	ledger_committed(&ledger, commit, 4096);
	ledger.now_ns += 2000000000;
	ledger_committed(&ledger, commit, -(uint64_t)4096 - 2048);
	trends_sum(&ledger.commit_trends, ledger.accounts.items[0].trend, end_ns, 1, points, 4);
	ck_assert_uint_eq(points[0], 8192);
	ck_assert_uint_eq(points[1], 8192 + 4096);
	ck_assert_uint_eq(points[2], 8192 + 4096);
	ck_assert_uint_eq(points[3], 8192 - 2048);
	/* Calls outside the window have no account. */
	ledger.now_ns = ledger.options.from_ns - 1;
	ck_assert_ptr_null(ledger_commit(&ledger, 0, 0, 0, 1, &commit));
	ledger_committed(&ledger, commit, 4096);
	ck_assert_uint_eq(ledger.commit_trends.changes.count, LEDGER_COMMIT_BUCKETS);
}
END_TEST

START_TEST(failures_are_counted_by_stack_and_error)
{
	const struct failure failure = {
	    .stack = 4, .call = 1, .error = 12, .count = 1, .asked_bytes = 4096, .first_ns = 2000, .last_ns = 2000};
	struct failure other = failure, early = failure;

	other.error = 22;
	early.error = 99;
	early.first_ns = 500;
	ck_assert_ptr_null(ledger_fail(&ledger, &early));
	ck_assert_uint_eq(ledger.failures.count, 0);
	ck_assert_ptr_null(ledger_fail(&ledger, &failure));
	ck_assert_ptr_null(ledger_fail(&ledger, &other));
	ck_assert_ptr_null(ledger_fail(&ledger, &failure));
	ck_assert_uint_eq(ledger.failures.count, 2);
	ck_assert_uint_eq(ledger.failures.items[0].count, 2);
	ck_assert_uint_eq(ledger.failures.items[0].asked_bytes, 8192);
	other.asked_bytes = UINT64_MAX - 4095;
	ck_assert_ptr_null(ledger_fail(&ledger, &other));
	ck_assert_ptr_null(ledger_fail(&ledger, &other));
	ck_assert_uint_eq(ledger.failures.items[1].asked_bytes, UINT64_MAX);
	ck_assert_uint_eq(ledger.accounts.count, 0);
}
END_TEST

static uint32_t find_bytes(uint64_t time_ns, uint32_t kind, uint64_t bytes)
{
	uint32_t allocation = 0;

	ledger.now_ns = time_ns;
	ck_assert_ptr_null(ledger_found(&ledger, 0, kind, 9, &allocation));
	ck_assert_uint_ge(allocation, ALLOCATION_FIRST);
	ck_assert_ptr_null(ledger_born(&ledger, allocation, kind, bytes));
	return allocation;
}

START_TEST(found_bytes_have_an_account_of_their_own)
{
	uint32_t found, again;

	map_bytes(2000, 4096, 1);
	found = find_bytes(2000, 0, 8192);
	ledger_released(&ledger, found, 8192, 0);
	again = find_bytes(3000, 0, 4096);
	ck_assert_uint_eq(found, again);
	ck_assert_uint_eq(account_of_stack(9)->allocated_bytes, 12288);
	ck_assert_uint_eq(account_of_stack(9)->freed_bytes, 8192);
	ck_assert_uint_eq(account_of_stack(9)->allocated_count, 0);
	ck_assert_uint_eq(account_of_stack(9)->freed_count, 0);
	ck_assert_uint_eq(account_of_stack(1)->allocated_bytes, 4096);
	ck_assert_uint_eq(ledger.rows.items[LEDGER_ROW_TOTAL].unfreed_bytes, 8192);
	ck_assert_uint_eq(ledger.rows.items[LEDGER_ROW_TOTAL].peak_bytes, 12288);
	ck_assert_uint_eq(ledger.releases.count, 0);
}
END_TEST

/* Memory found before the window, or too late for it, is in no account; each kind has a separate one. */
START_TEST(found_bytes_have_a_time_and_a_kind)
{
	uint32_t before, inside, other, younger, part;

	ledger.options.allocations_to_ns = 5000;
	before = find_bytes(500, 1, 4096);
	inside = find_bytes(2000, 1, 8192);
	other = find_bytes(3000, 2, 16384);
	younger = find_bytes(5000, 1, 32768);
	ck_assert_int_eq(ledger_allocation(&ledger, before)->side, LEDGER_BEFORE);
	ck_assert_int_eq(ledger_allocation(&ledger, younger)->side, LEDGER_YOUNGER);
	ck_assert_uint_ne(inside, other);
	ck_assert_uint_eq(ledger.accounts.count, 2);
	ck_assert_uint_eq(ledger.accounts.items[0].kind, 1);
	ck_assert_uint_eq(ledger.accounts.items[0].allocated_bytes, 8192);
	ck_assert_uint_eq(ledger.accounts.items[1].allocated_bytes, 16384);
	ck_assert_ptr_null(ledger_split(&ledger, inside, 3, 4096, &part));
	ck_assert_uint_eq(ledger.accounts.items[0].allocated_bytes, 4096);
	ck_assert_uint_eq(ledger.accounts.items[2].allocated_bytes, 4096);
	ck_assert_uint_eq(ledger.accounts.items[2].allocated_count, 0);
	ck_assert_uint_eq(ledger.rows.items[LEDGER_ROW_TOTAL].unfreed_bytes, 24576);
}
END_TEST

/* A stack that grew unseen, which a later call reveals: the bytes belong to that call. */
START_TEST(an_allocation_grows_after_its_call)
{
	uint32_t allocation = map_bytes(2000, 4096, 1);

	ledger.now_ns = 3000;
	ck_assert_ptr_null(ledger_born(&ledger, allocation, 0, 8192));
	ck_assert_uint_eq(account_of_stack(1)->allocated_bytes, 12288);
	ck_assert_uint_eq(account_of_stack(1)->allocated_count, 1);
	ck_assert_uint_eq(ledger.threads.items[0].allocated_bytes, 12288);
	ledger_released(&ledger, allocation, 12288, 0);
	ck_assert_uint_eq(account_of_stack(1)->freed_bytes, 12288);
	ck_assert_uint_eq(account_of_stack(1)->freed_count, 1);
}
END_TEST

Suite *test_suite(void)
{
	Suite *suite = suite_create("ledger");
	TCase *tcase = add_tcase(suite, "ledger");

	tcase_add_checked_fixture(tcase, setup, teardown);
	tcase_add_tests(tcase, partial_release_is_not_a_free, release_within_its_own_call,
			empty_allocations_leave_no_account, memory_depends_on_live_allocations,
			same_stack_in_two_processes_is_two_accounts, allocations_of_the_kernel_are_ignored);
	tcase_add_loop_test(tcase, trend_rises_steadily, 0, 3);
	tcase_add_tests(tcase, trend_reaches_the_last_time, trend_falls_when_memory_is_released,
			trend_accepts_older_changes);
	tcase_add_loop_test(tcase, sums_agree_at_any_timestamp, 0, 8);
	tcase_add_tests(tcase, parts_may_become_code, all_of_it_may_become_code,
			steps_have_no_more_than_a_difference_can_have, window_excludes_earlier_and_later_allocations, who_released_whose_memory,
			commits_of_one_account_have_one_number, committed_over_time,
			failures_are_counted_by_stack_and_error, found_bytes_have_an_account_of_their_own,
			found_bytes_have_a_time_and_a_kind, an_allocation_grows_after_its_call);
	return suite;
}
