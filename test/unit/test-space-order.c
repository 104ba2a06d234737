// SPDX-License-Identifier: LGPL-2.1-or-later
/* Calls that return in an order other than that in which they took effect. */
#include <check.h>
#include <sys/mman.h>

#include "support/suite.h"
#include "support/space-calls.h"

#define RW (PROT_READ | PROT_WRITE)

static struct driver driver;

static void setup(void)
{
	driver_init(&driver);
}

static void teardown(void)
{
	driver_deinit(&driver);
}

static uint64_t ambiguous(void)
{
	return space_counts(driver.space).ambiguous;
}

START_TEST(release_in_flight_spares_a_new_mapping_at_its_address)
{
	uint32_t old = driver_map(&driver, 10, 4, RW, 0), new;

	driver.thread = 2;
	new = driver_map(&driver, 10, 4, RW, 0);
	driver.thread = 1;
	ck_assert_uint_eq(driver.observed.released[old], 0);
	driver_unmap(&driver, 10, 4);
	ck_assert_str_eq(driver_show(&driver), "10-14 rw #4");
	ck_assert_uint_eq(driver.observed.released[old], 4 * PAGE);
	ck_assert_uint_eq(driver.observed.released[new], 0);
	ck_assert_int_eq(driver.observed.last_thread, 1);
	ck_assert_uint_eq(ambiguous(), 0);
	driver.thread = 3;
	driver_unmap(&driver, 10, 4);
	ck_assert_str_eq(driver_show(&driver), "");
}
END_TEST

START_TEST(release_in_flight_removes_the_rest_of_its_range)
{
	driver_map(&driver, 10, 10, RW, 0);
	driver.thread = 2;
	driver_map(&driver, 14, 2, PROT_READ, 0);
	driver.thread = 1;
	driver_unmap(&driver, 10, 10);
	ck_assert_str_eq(driver_show(&driver), "14-16 r #4");
}
END_TEST

START_TEST(mapping_beyond_the_pending_unmap_is_spared)
{
	driver_map(&driver, 10, 4, RW, 0);
	driver.thread = 2;
	driver_map(&driver, 8, 10, PROT_READ, 0);
	driver.thread = 1;
	driver_unmap(&driver, 6, 14);
	ck_assert_str_eq(driver_show(&driver), "8-18 r #4");
}
END_TEST

START_TEST(thread_that_returned_since_was_not_in_flight)
{
	driver_map(&driver, 10, 4, RW, 0);
	driver.thread = 2;
	driver_map(&driver, 10, 4, PROT_READ, 0);
	driver.thread = 3;
	driver_map(&driver, 50, 1, RW, 0);
	driver_unmap(&driver, 10, 4);
	ck_assert_str_eq(driver_show(&driver), "50-51 rw #5");
	/* The earlier call returns later, and the range is in use again. */
	driver_map(&driver, 12, 4, PROT_EXEC, 0);
	driver.thread = 1;
	driver_unmap(&driver, 10, 4);
	ck_assert_str_eq(driver_show(&driver), "12-16 x #7, 50-51 rw #5");
	ck_assert_uint_eq(ambiguous(), 0);
}
END_TEST

START_TEST(creator_may_release_before_the_release_in_flight_returns)
{
	driver_map(&driver, 10, 4, RW, 0);
	driver.thread = 2;
	driver_map(&driver, 10, 4, PROT_READ, 0);
	driver_unmap(&driver, 10, 4);
	ck_assert_str_eq(driver_show(&driver), "");
	driver_map(&driver, 10, 2, RW, 0);
	driver.thread = 1;
	driver_unmap(&driver, 10, 4);
	ck_assert_str_eq(driver_show(&driver), "10-12 rw #6");
}
END_TEST

START_TEST(two_releases_in_flight_over_the_same_range)
{
	driver_map(&driver, 10, 4, RW, 0);
	driver.thread = 3;
	driver_map(&driver, 10, 4, PROT_READ, 0);
	driver_map(&driver, 10, 4, PROT_EXEC, 0);
	driver.thread = 1;
	driver_unmap(&driver, 10, 4);
	ck_assert_uint_eq(driver.observed.released[3], 4 * PAGE);
	ck_assert_uint_eq(driver.observed.released[4], 0);
	driver.thread = 2;
	driver_unmap(&driver, 10, 4);
	ck_assert_uint_eq(driver.observed.released[4], 4 * PAGE);
	ck_assert_str_eq(driver_show(&driver), "10-14 x #5");
	ck_assert_uint_eq(ambiguous(), 0);
}
END_TEST

START_TEST(move_in_flight_carries_pending_bytes)
{
	driver_map(&driver, 10, 4, RW, 0);
	driver.thread = 2;
	driver_map(&driver, 10, 4, PROT_READ, 0);
	driver.thread = 1;
	driver_remap(&driver, 10, 4, 4, MREMAP_MAYMOVE, 30);
	ck_assert_str_eq(driver_show(&driver), "10-14 r #4, 30-34 rw #3");
	ck_assert_uint_eq(driver.observed.released[3], 0);
}
END_TEST

START_TEST(fixed_mapping_is_no_release_in_flight)
{
	driver_map(&driver, 10, 4, RW, 0);
	driver.thread = 2;
	driver_map(&driver, 10, 4, PROT_READ, 0);
	driver.thread = 1;
	driver_map(&driver, 10, 4, PROT_EXEC, MAP_FIXED);
	ck_assert_str_eq(driver_show(&driver), "10-14 x #5");
	ck_assert_uint_eq(driver.observed.released[4], 4 * PAGE);
}
END_TEST

START_TEST(missing_release_is_ambiguous)
{
	driver_map(&driver, 10, 4, RW, 0);
	driver.thread = 2;
	driver_map(&driver, 10, 4, PROT_READ, 0);
	driver.now_ns += 10100000000;
	driver.thread = 1;
	driver_unmap(&driver, 10, 4);
	ck_assert_str_eq(driver_show(&driver), "");
	ck_assert_uint_eq(ambiguous(), 1);
	ck_assert_uint_eq(driver.observed.released_unseen, 4 * PAGE);
}
END_TEST

/* io_destroy() unmaps the ring first, and then waits for readers and requests. */
START_TEST(release_may_return_seconds_later)
{
	driver_map(&driver, 10, 4, RW, 0);
	driver.thread = 2;
	driver_map(&driver, 10, 4, PROT_READ, 0);
	driver.now_ns += 9000000000;
	driver.thread = 3;
	driver_map(&driver, 50, 1, RW, 0);
	driver.thread = 1;
	driver_unmap(&driver, 10, 4);
	ck_assert_str_eq(driver_show(&driver), "10-14 r #4, 50-51 rw #5");
	ck_assert_uint_eq(ambiguous(), 0);
}
END_TEST

START_TEST(end_of_the_recording_reports_calls_in_flight)
{
	uint32_t old = driver_map(&driver, 10, 4, RW, 0), new;

	driver.thread = 2;
	new = driver_map(&driver, 10, 4, RW, 0);
	ck_assert_uint_eq(driver.observed.released[old], 0);
	space_finish(driver.space);
	ck_assert_uint_eq(driver.observed.released[old], 4 * PAGE);
	ck_assert_uint_eq(driver.observed.released[new], 0);
	ck_assert_str_eq(driver_show(&driver), "10-14 rw #4");
}
END_TEST

START_TEST(grown_break_and_mapping_replace_pending_unmaps)
{
	driver_call(&driver, CALL_BRK, 20 * PAGE, 0, 0, 0, 0, 0, 0);
	driver_map(&driver, 20, 4, RW, 0);
	driver_map(&driver, 40, 4, RW, 0);
	driver_map(&driver, 44, 4, PROT_READ, 0);
	driver.thread = 2;
	driver_call(&driver, CALL_BRK, 22 * PAGE, 22 * PAGE, 0, 0, 0, 0, 0);
	driver_remap(&driver, 40, 4, 6, 0, 40);
	ck_assert_str_eq(driver_show(&driver), "20-22 rw #7, 22-24 rw #4, 40-44 rw #5, 44-46 rw #8, 46-48 r #6");
	driver.thread = 1;
	driver_unmap(&driver, 20, 4);
	driver.thread = 3;
	driver_unmap(&driver, 44, 4);
	ck_assert_str_eq(driver_show(&driver), "20-22 rw #7, 40-44 rw #5, 44-46 rw #8");
	ck_assert_uint_eq(ambiguous(), 0);
}
END_TEST

static void snapshot_of_four_pages(void)
{
	ck_assert_ptr_null(space_snapshot_begin(driver.space, SPACE_SNAPSHOT_DEFINE, ALLOCATION_BEFORE, driver.now_ns));
	driver_line(&driver, 10, 4, (struct space_attributes){.protection = RW});
	ck_assert_ptr_null(space_snapshot_end(driver.space, driver.now_ns));
	ck_assert_str_eq(driver_show(&driver), "10-14 rw b");
}

START_TEST(snapshot_that_saw_the_effect_early_is_no_conflict)
{
	snapshot_of_four_pages();
	driver_map(&driver, 10, 4, RW, 0);
	ck_assert_str_eq(driver_show(&driver), "10-14 rw #3");
	driver.thread = 2;
	driver_unmap(&driver, 10, 4);
	ck_assert_str_eq(driver_show(&driver), "");
}
END_TEST

START_TEST(old_snapshot_bytes_in_the_way_are_a_conflict)
{
	snapshot_of_four_pages();
	driver.now_ns += 2000000000;
	driver_map(&driver, 10, 4, RW, 0);
	driver.thread = 2;
	driver_unmap(&driver, 10, 4);
	ck_assert_str_eq(driver_show(&driver), "10-14 rw #3");
}
END_TEST

START_TEST(snapshot_bytes_in_the_way_of_a_later_call_are_a_conflict)
{
	snapshot_of_four_pages();
	driver_map(&driver, 20, 1, RW, 0);
	/* The thread has returned since the reading: this call started after it. */
	driver_map(&driver, 10, 4, RW, 0);
	driver.thread = 2;
	driver_unmap(&driver, 10, 4);
	ck_assert_str_eq(driver_show(&driver), "10-14 rw #4, 20-21 rw #3");
}
END_TEST

Suite *test_suite(void)
{
	Suite *suite = suite_create("space: order");
	TCase *known = add_tcase(suite, "known");

	tcase_add_checked_fixture(known, setup, teardown);
	tcase_add_tests(known, release_in_flight_spares_a_new_mapping_at_its_address,
			release_in_flight_removes_the_rest_of_its_range, mapping_beyond_the_pending_unmap_is_spared,
			thread_that_returned_since_was_not_in_flight,
			creator_may_release_before_the_release_in_flight_returns,
			two_releases_in_flight_over_the_same_range, move_in_flight_carries_pending_bytes,
			fixed_mapping_is_no_release_in_flight, missing_release_is_ambiguous,
			release_may_return_seconds_later,
			end_of_the_recording_reports_calls_in_flight, grown_break_and_mapping_replace_pending_unmaps,
			snapshot_that_saw_the_effect_early_is_no_conflict, old_snapshot_bytes_in_the_way_are_a_conflict,
			snapshot_bytes_in_the_way_of_a_later_call_are_a_conflict);
	return suite;
}
