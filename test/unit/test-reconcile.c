// SPDX-License-Identifier: LGPL-2.1-or-later
/* What the kernel's maps show to be wrong or lost is reconciled and counted as such. */
#include <check.h>
#include <sys/mman.h>

#include "support/suite.h"
#include "support/space-calls.h"
#include "support/space-valid.h"

#define RW (PROT_READ | PROT_WRITE)

static const struct space_attributes anonymous = {.protection = RW};
static struct driver driver;

static void setup(void)
{
	driver_init(&driver);
}

static void teardown(void)
{
	driver_deinit(&driver);
}

static void begin_check(void)
{
	ck_assert_ptr_null(space_snapshot_begin(driver.space, SPACE_SNAPSHOT_CHECK, 0, driver.now_ns));
}

static void end(void)
{
	const char *why = "";

	ck_assert_ptr_null(space_snapshot_end(driver.space, driver.now_ns += 1000));
	ck_assert_msg(space_valid(driver.space, &why), "%s", why);
}

static uint64_t reconciled(void)
{
	return space_counts(driver.space).reconciled_bytes;
}

static void expect_model_of_the_kernel(const char *text)
{
	const char *why = "";

	ck_assert_str_eq(driver_show(&driver), text);
	ck_assert_msg(space_valid(driver.space, &why), "%s", why);
}

START_TEST(finish_makes_the_model_what_the_last_check_read)
{
	driver_map(&driver, 10, 4, RW, 0);
	driver_map(&driver, 20, 4, RW, 0);
	driver_map_file(&driver, 30, 4, PROT_READ, 7, 0);
	begin_check();
	driver_line(&driver, 11, 5, anonymous);			   /* 10 is gone, 14 and 15 are new */
	driver_line(&driver, 20, 2, (struct space_attributes){0}); /* other protections */
	driver_line(&driver, 22, 2, (struct space_attributes){.protection = PROT_READ});
	driver_line(
	    &driver, 30, 4,
	    (struct space_attributes){
		.protection = PROT_READ, .device_major = 8, .device_minor = 1, .inode = 77, .file_offset = 9 * PAGE});
	end();
	ck_assert_uint_eq(reconciled(), 0);
	space_finish(driver.space);
	expect_model_of_the_kernel("11-14 rw #3, 14-16 rw u, 20-22 - #4, 22-24 r #4, 30-34 r+9 u");
	ck_assert_uint_eq(reconciled(), 11 * PAGE);
	ck_assert_uint_eq(space_check_result(driver.space).mismatch_bytes, 11 * PAGE);
	ck_assert_uint_eq(space_check_result(driver.space).first_wrong, 10 * PAGE);
	/* 10 and the file's four pages. */
	ck_assert_uint_eq(driver.observed.released_by_none, 5 * PAGE);
	ck_assert_uint_eq(driver.observed.allocated[ALLOCATION_UNKNOWN], 6 * PAGE);
	space_finish(driver.space);
	ck_assert_uint_eq(reconciled(), 11 * PAGE);
}
END_TEST

START_TEST(reconcile_waits_for_calls_in_flight)
{
	driver_map(&driver, 10, 4, RW, 0);
	begin_check();
	driver_line(&driver, 20, 4, anonymous);
	driver_line(&driver, 30, 1, anonymous);
	end();
	/* Both took effect before the maps were read. */
	driver.now_ns += 20000000;
	driver_unmap(&driver, 10, 4);
	driver_map(&driver, 20, 4, RW, 0);
	expect_model_of_the_kernel("20-24 rw #5");
	ck_assert_uint_eq(reconciled(), 0);
	ck_assert_uint_eq(space_check_result(driver.space).mismatch_bytes, PAGE);
	ck_assert_uint_eq(space_check_result(driver.space).unverifiable_bytes, 8 * PAGE);
	driver.now_ns += 3100000000;
	driver_map(&driver, 50, 1, RW, 0);
	expect_model_of_the_kernel("20-24 rw #5, 30-31 rw u, 50-51 rw #6");
	ck_assert_uint_eq(reconciled(), PAGE);
	ck_assert_uint_eq(space_check_result(driver.space).mismatch_bytes, PAGE);
}
END_TEST

/* A thread that waits for a CPU returns long after; snapshots follow every 240 ms. */
START_TEST(release_in_flight_over_several_checks)
{
	uint32_t allocation = driver_map(&driver, 10, 4, RW, 0);

	for (int i = 0; i < 4; i++) {
		begin_check();
		driver_line(&driver, 50, 1, anonymous);
		end();
		driver.now_ns += 240000000;
		driver.thread = 2;
		driver_map(&driver, 60 + i, 1, PROT_READ, 0);
		driver_unmap(&driver, 60 + i, 1);
	}
	expect_model_of_the_kernel("10-14 rw #3");
	driver.thread = 1;
	driver_unmap(&driver, 10, 4);
	driver_map(&driver, 50, 1, RW, 0);
	expect_model_of_the_kernel("50-51 rw #13");
	ck_assert_uint_eq(driver.observed.released[allocation], 4 * PAGE);
	ck_assert_uint_eq(driver.observed.released_by_none, 0);
	ck_assert_uint_eq(reconciled(), 0);
	ck_assert_uint_eq(space_check_result(driver.space).mismatch_bytes, 0);
}
END_TEST

START_TEST(difference_of_several_checks_is_reconciled_in_time)
{
	driver_map(&driver, 10, 4, RW, 0);
	for (int i = 0; i < 6; i++) {
		begin_check();
		driver_line(&driver, 10, 2, anonymous);
		end();
		ck_assert_uint_eq(space_check_result(driver.space).mismatch_bytes, 2 * PAGE);
		expect_model_of_the_kernel("10-14 rw #3");
		driver.now_ns += 510000000;
	}
	begin_check();
	expect_model_of_the_kernel("10-12 rw #3");
	driver_line(&driver, 10, 2, anonymous);
	end();
	ck_assert_uint_eq(space_check_result(driver.space).mismatch_bytes, 0);
	ck_assert_uint_eq(reconciled(), 2 * PAGE);
}
END_TEST

START_TEST(next_check_that_agrees_resolves_a_difference)
{
	driver_map(&driver, 10, 4, RW, 0);
	begin_check();
	driver_line(&driver, 10, 2, anonymous);
	end();
	begin_check();
	driver_line(&driver, 10, 4, anonymous);
	end();
	space_finish(driver.space);
	expect_model_of_the_kernel("10-14 rw #3");
	ck_assert_uint_eq(reconciled(), 0);
}
END_TEST

START_TEST(call_that_returns_after_its_effect_was_reconciled_is_not_counted)
{
	begin_check();
	driver_line(&driver, 20, 4, anonymous);
	end();
	driver.now_ns += 3100000000;
	driver_map(&driver, 50, 1, RW, 0);
	ck_assert_uint_eq(reconciled(), 4 * PAGE);
	driver.now_ns += 100000000;
	driver.thread = 2;
	driver_map(&driver, 20, 4, RW, 0);
	expect_model_of_the_kernel("20-24 rw #4, 50-51 rw #3");
	ck_assert_uint_eq(reconciled(), 0);
	ck_assert_uint_eq(space_counts(driver.space).ambiguous, 0);
	driver.thread = 1;
	driver_unmap(&driver, 20, 4);
	expect_model_of_the_kernel("50-51 rw #3");
}
END_TEST

START_TEST(last_check_waits_for_calls_as_long_as_the_recorder_did)
{
	driver_map(&driver, 10, 4, RW, 0);
	driver_map(&driver, 20, 4, RW, 0);
	begin_check();
	space_snapshot_is_last(driver.space);
	driver_line(&driver, 50, 1, anonymous);
	end();
	ck_assert_uint_eq(space_check_result(driver.space).mismatch_bytes, 9 * PAGE);
	driver.now_ns += 1900000000;
	driver_map(&driver, 50, 1, RW, 0);
	driver_unmap(&driver, 10, 4);
	expect_model_of_the_kernel("20-24 rw #4, 50-51 rw #5");
	ck_assert_uint_eq(reconciled(), 0);
	ck_assert_uint_eq(space_check_result(driver.space).mismatch_bytes, 4 * PAGE);
	ck_assert_uint_eq(space_check_result(driver.space).unverifiable_bytes, 5 * PAGE);
	space_finish(driver.space);
	expect_model_of_the_kernel("50-51 rw #5");
	ck_assert_uint_eq(reconciled(), 4 * PAGE);
}
END_TEST

START_TEST(pending_unmap_over_a_page_that_is_reconciled_keeps_its_release)
{
	/* Thread 1's munmap is in flight: thread 2 has mapped the same range already, and the check shows that it is
	 * right. */
	uint32_t old = driver_map(&driver, 10, 4, RW, 0);

	driver.thread = 2;
	driver_map(&driver, 10, 4, PROT_READ, 0);
	begin_check();
	driver_line(&driver, 10, 3, (struct space_attributes){.protection = PROT_READ});
	end();
	driver.now_ns += 3100000000;
	driver_map(&driver, 50, 1, RW, 0);
	expect_model_of_the_kernel("10-13 r #4, 50-51 rw #5");
	driver.thread = 1;
	driver_unmap(&driver, 10, 4);
	expect_model_of_the_kernel("10-13 r #4, 50-51 rw #5");
	ck_assert_uint_eq(driver.observed.released[old], 4 * PAGE);
	ck_assert_uint_eq(space_counts(driver.space).ambiguous, 0);
	ck_assert_uint_eq(reconciled(), PAGE);
}
END_TEST

START_TEST(move_and_mprotect_of_a_mapping_whose_call_was_lost)
{
	begin_check();
	driver_line(&driver, 10, 4, anonymous);
	driver_line(&driver, 20, 4, anonymous);
	end();
	driver_remap(&driver, 10, 4, 4, MREMAP_MAYMOVE, 30);
	driver_protect(&driver, 21, 1, PROT_READ);
	space_finish(driver.space);
	expect_model_of_the_kernel("20-21 rw u, 21-22 r u, 22-24 rw u, 30-34 rw u");
	ck_assert_uint_eq(reconciled(), 8 * PAGE);
	ck_assert_uint_eq(space_check_result(driver.space).mismatch_bytes, 8 * PAGE);
}
END_TEST

START_TEST(reconcile_of_protection_keeps_the_allocation)
{
	driver_map(&driver, 10, 4, PROT_NONE, 0);
	driver_protect(&driver, 10, 2, RW);
	begin_check();
	driver_line(&driver, 10, 1, (struct space_attributes){.protection = PROT_READ});
	driver_line(&driver, 11, 1, (struct space_attributes){0});
	driver_line(&driver, 12, 2, anonymous);
	end();
	space_finish(driver.space);
	expect_model_of_the_kernel("10-11 r #3/#4, 11-12 - #3, 12-14 rw #3");
	ck_assert_uint_eq(space_counts(driver.space).peaking_bytes, 3 * PAGE);
	ck_assert_uint_eq(driver.observed.released_by_none, 0);
}
END_TEST

START_TEST(unfinished_check_reconciles_nothing)
{
	driver_map(&driver, 10, 4, RW, 0);
	begin_check();
	driver_line(&driver, 10, 4, anonymous);
	end();
	begin_check();
	driver_line(&driver, 50, 4, anonymous);
	ck_assert(space_check_result(driver.space).done);
	ck_assert_uint_eq(space_check_result(driver.space).mismatch_bytes, 0);
	ck_assert_uint_eq(space_check_result(driver.space).mappings, 1);
	space_finish(driver.space);
	expect_model_of_the_kernel("10-14 rw #3");
	ck_assert_uint_eq(reconciled(), 0);
}
END_TEST

START_TEST(end_of_the_process_is_no_difference_to_reconcile)
{
	driver_map(&driver, 10, 4, RW, 0);
	begin_check();
	end();
	space_end(driver.space, driver.now_ns + 1000000);
	space_finish(driver.space);
	expect_model_of_the_kernel("10-14 rw #3");
	/* Long before the end it is one. */
	begin_check();
	end();
	space_end(driver.space, driver.now_ns + 300000000);
	expect_model_of_the_kernel("");
	ck_assert_uint_eq(reconciled(), 4 * PAGE);
}
END_TEST

/* The maps of a program are valid until those of the next program are read. */
START_TEST(check_outlives_exec)
{
	driver_map(&driver, 10, 4, RW, 0);
	begin_check();
	driver_line(&driver, 10, 3, anonymous);
	end();
	space_exec(driver.space);
	ck_assert(space_check_result(driver.space).done);
	ck_assert(space_check_result(driver.space).earlier_program);
	ck_assert_uint_eq(space_check_result(driver.space).mismatch_bytes, PAGE);
	space_finish(driver.space);
	ck_assert_uint_eq(reconciled(), 0);
	begin_check();
	end();
	ck_assert(space_check_result(driver.space).done);
	ck_assert(!space_check_result(driver.space).earlier_program);
	ck_assert_uint_eq(space_check_result(driver.space).mismatch_bytes, 0);
	space_exec(driver.space);
	space_exec(driver.space);
	ck_assert(space_check_result(driver.space).earlier_program);
}
END_TEST

START_TEST(check_fills_in_what_the_model_could_not_know)
{
	const struct space_attributes stack = {.protection = RW, .stack = true};

	driver_mmap2(&driver, 30, 2, stack);
	ck_assert_ptr_null(space_mmap2(driver.space, &driver.mmap2_records[0]));
	driver.mmap2_count = 0;
	driver_call(&driver, CALL_MMAP, 10 * PAGE, 0, 2 * PAGE, PROT_READ, MAP_PRIVATE, 3, 3 * PAGE);
	begin_check();
	driver_line(
	    &driver, 10, 2,
	    (struct space_attributes){.protection = PROT_READ, .device_major = 8, .inode = 5, .file_offset = 3 * PAGE});
	driver_line(&driver, 25, 7, stack);
	end();
	space_finish(driver.space);
	expect_model_of_the_kernel("10-12 r+3 #3, 25-32 rw k");
	ck_assert_uint_eq(space_find(driver.space, 10 * PAGE)->attributes.inode, 5);
	ck_assert_uint_eq(reconciled(), 0);
	ck_assert_uint_eq(space_check_result(driver.space).mismatch_bytes, 0);
}
END_TEST

static void mmap2_alone(uint64_t page, uint64_t pages, struct space_attributes attributes)
{
	driver_mmap2(&driver, page, pages, attributes);
	ck_assert_ptr_null(space_mmap2(driver.space, &driver.mmap2_records[0]));
	driver.mmap2_count = 0;
}

START_TEST(mmap2_record_of_a_lost_call_is_not_a_kernel_mapping)
{
	const struct space_attributes stack = {.protection = RW, .stack = true};

	mmap2_alone(10, 4, anonymous);
	mmap2_alone(40, 2, stack);
	driver.losses++;
	driver_mmap2(&driver, 20, 4, anonymous);
	driver_mmap2(&driver, 38, 2, stack);
	driver_map(&driver, 30, 1, PROT_READ, 0);
	expect_model_of_the_kernel("10-14 rw k, 20-24 rw u, 30-31 r #3, 38-42 rw k");
	ck_assert_uint_eq(reconciled(), 4 * PAGE);
	ck_assert_uint_eq(driver.observed.allocated[ALLOCATION_UNKNOWN], 4 * PAGE);
	/* The kernel maps the next program. */
	space_exec(driver.space);
	mmap2_alone(20, 4, anonymous);
	expect_model_of_the_kernel("20-24 rw k");
}
END_TEST

/* One number serves all address spaces, copies too; each compares it with the number at its own exec. */
START_TEST(losses_are_counted_for_all_spaces)
{
	struct space *copy;

	driver.losses = 3;
	space_exec(driver.space);
	mmap2_alone(10, 4, anonymous);
	expect_model_of_the_kernel("10-14 rw k");
	ck_assert_ptr_null(space_fork(driver.space, &copy));
	driver.losses++;
	mmap2_alone(20, 4, anonymous);
	expect_model_of_the_kernel("10-14 rw k, 20-24 rw u");
	space_exec(driver.space);
	mmap2_alone(20, 4, anonymous);
	expect_model_of_the_kernel("20-24 rw k");
	space_destroy(driver.space);
	driver.space = copy;
	mmap2_alone(20, 4, anonymous);
	expect_model_of_the_kernel("10-14 rw b, 20-24 rw u");
	space_destroy(driver.space);
	ck_assert_ptr_null(space_create(&(struct space_options){.page_bytes = PAGE}, &driver.space));
}
END_TEST

static uint32_t number_of_found(void *context, const struct space_interval *interval)
{
	(void)context;
	ck_assert_uint_eq(interval->allocation, ALLOCATION_UNKNOWN);
	return 77;
}

/* Memory found by a snapshot has the number that its observer assigned, and remains known as found. */
START_TEST(found_bytes_keep_their_assigned_number)
{
	const struct space_observer observer = {.found = number_of_found};
	const struct space_interval *interval;
	struct space *space, *copy;
	uint64_t losses = 0;

	ck_assert_ptr_null(space_create(
	    &(struct space_options){.observer = &observer, .page_bytes = PAGE, .losses = &losses}, &space));
	space_exec(space);
	losses++;
	ck_assert_ptr_null(
	    space_mmap2(space, &(struct space_mmap2){.start = 20 * PAGE, .end = 24 * PAGE, .attributes = anonymous}));
	ck_assert_ptr_null(
	    space_mmap2(space, &(struct space_mmap2){.start = 24 * PAGE, .end = 26 * PAGE, .attributes = anonymous}));
	interval = space_next(space, 0);
	ck_assert_uint_eq(interval->allocation, 77);
	ck_assert_uint_eq(interval->end - interval->start, 6 * PAGE);
	ck_assert(interval->reconciled);
	ck_assert_uint_eq(space_counts(space).reconciled_bytes, 6 * PAGE);
	ck_assert_ptr_null(space_fork(space, &copy));
	ck_assert_uint_eq(space_next(copy, 0)->allocation, ALLOCATION_BEFORE);
	ck_assert(!space_next(copy, 0)->reconciled);
	space_destroy(copy);
	space_destroy(space);
}
END_TEST

START_TEST(mapping_below_a_stack_of_a_thread_is_no_growth)
{
	driver_map(&driver, 14, 2, RW, MAP_STACK);
	driver_map(&driver, 44, 2, RW, MAP_STACK);
	driver.losses++;
	driver_mmap2(&driver, 10, 4, anonymous);
	driver_map(&driver, 30, 1, PROT_READ, 0);
	expect_model_of_the_kernel("10-14 rw u, 14-16 rw #3, 30-31 r #5, 44-46 rw #4");
	begin_check();
	driver_line(&driver, 10, 6, anonymous);
	driver_line(&driver, 30, 1, (struct space_attributes){.protection = PROT_READ});
	driver_line(&driver, 40, 6, anonymous);
	end();
	space_finish(driver.space);
	expect_model_of_the_kernel("10-14 rw u, 14-16 rw #3, 30-31 r #5, 40-44 rw u, 44-46 rw #4");
	ck_assert_uint_eq(space_check_result(driver.space).mismatch_bytes, 4 * PAGE);
	ck_assert_uint_eq(reconciled(), 8 * PAGE);
}
END_TEST

START_TEST(move_of_what_a_lost_call_mapped_replaces_its_target)
{
	driver_map(&driver, 20, 4, RW, 0);
	driver.losses++;
	driver_call(&driver, CALL_MREMAP, 21 * PAGE, 10 * PAGE, 2 * PAGE, 2 * PAGE, MREMAP_MAYMOVE | MREMAP_FIXED,
		    21 * PAGE, 0);
	expect_model_of_the_kernel("20-21 rw #3, 23-24 rw #3");
	begin_check();
	driver_line(&driver, 20, 4, anonymous);
	end();
	space_finish(driver.space);
	expect_model_of_the_kernel("20-21 rw #3, 21-23 rw u, 23-24 rw #3");
	ck_assert_uint_eq(driver.observed.allocated[ALLOCATION_UNKNOWN], 2 * PAGE);
}
END_TEST

START_TEST(growth_of_the_break_after_a_loss_has_no_owner)
{
	driver_call(&driver, CALL_BRK, 10 * PAGE, 0, 0, 0, 0, 0, 0);
	driver_call(&driver, CALL_BRK, 12 * PAGE, 12 * PAGE, 0, 0, 0, 0, 0);
	driver.losses++;
	driver_call(&driver, CALL_BRK, 15 * PAGE, 15 * PAGE, 0, 0, 0, 0, 0);
	driver_call(&driver, CALL_BRK, 16 * PAGE, 16 * PAGE, 0, 0, 0, 0, 0);
	expect_model_of_the_kernel("10-12 rw #4, 12-15 rw u, 15-16 rw #6");
	ck_assert_uint_eq(reconciled(), 3 * PAGE);
	driver.losses++;
	driver_call(&driver, CALL_BRK, 14 * PAGE, 14 * PAGE, 0, 0, 0, 0, 0);
	driver_call(&driver, CALL_BRK, 15 * PAGE, 15 * PAGE, 0, 0, 0, 0, 0);
	expect_model_of_the_kernel("10-12 rw #4, 12-14 rw u, 14-15 rw #8");
}
END_TEST

/* The child's break is known since the call before the fork. */
START_TEST(growth_of_the_break_in_a_child_belongs_to_its_call)
{
	struct space *copy;

	driver_call(&driver, CALL_BRK, 10 * PAGE, 0, 0, 0, 0, 0, 0);
	driver_call(&driver, CALL_BRK, 12 * PAGE, 12 * PAGE, 0, 0, 0, 0, 0);
	driver.losses++;
	driver_call(&driver, CALL_BRK, 13 * PAGE, 13 * PAGE, 0, 0, 0, 0, 0);
	ck_assert_ptr_null(space_fork(driver.space, &copy));
	space_destroy(driver.space);
	driver.space = copy;
	driver_call(&driver, CALL_BRK, 15 * PAGE, 15 * PAGE, 0, 0, 0, 0, 0);
	expect_model_of_the_kernel("10-13 rw b, 13-15 rw #6");
	ck_assert_uint_eq(reconciled(), 0);
	space_destroy(driver.space);
	ck_assert_ptr_null(space_create(&(struct space_options){.page_bytes = PAGE}, &driver.space));
}
END_TEST

/* Its bytes are unmapped, and reported once; what replaced them keeps its owner. */
START_TEST(lost_release_before_a_new_mapping)
{
	uint32_t old = driver_map(&driver, 10, 4, RW, 0), new;

	driver_map(&driver, 20, 4, RW, 0);
	driver.losses++;
	new = driver_map(&driver, 10, 4, RW, 0);
	driver.now_ns += 3100000000;
	begin_check();
	driver_line(&driver, 10, 4, anonymous);
	driver_line(&driver, 20, 4, anonymous);
	end();
	space_finish(driver.space);
	expect_model_of_the_kernel("10-14 rw #5, 20-24 rw #4");
	ck_assert_uint_eq(driver.observed.released[old], 4 * PAGE);
	ck_assert_uint_eq(driver.observed.released_unseen, 4 * PAGE);
	ck_assert_uint_eq(driver.observed.released[new], 0);
	ck_assert_uint_eq(space_check_result(driver.space).mismatch_bytes, 0);
	ck_assert_uint_eq(reconciled(), 0);
}
END_TEST

START_TEST(lost_release_move_and_replacement_are_reconciled)
{
	uint32_t released = driver_map(&driver, 10, 4, RW, 0), moved = driver_map(&driver, 20, 4, RW, 0);
	uint32_t replaced = driver_map(&driver, 30, 4, RW, 0), kept = driver_map(&driver, 40, 4, RW, 0);
	const struct space_attributes file = {.protection = RW, .device_major = 8, .inode = 5};

	driver.losses++;
	begin_check();
	driver_line(&driver, 31, 2, file);
	driver_line(&driver, 40, 4, anonymous);
	driver_line(&driver, 50, 4, anonymous); /* from 20 */
	end();
	/* Only those of the lost bytes are released that belonged to them. */
	driver.now_ns += 3100000000;
	driver_unmap(&driver, 50, 2);
	expect_model_of_the_kernel("31-33 rw+0 u, 40-44 rw #6, 52-54 rw u");
	ck_assert_uint_eq(driver.observed.released[released], 4 * PAGE);
	ck_assert_uint_eq(driver.observed.released[moved], 4 * PAGE);
	ck_assert_uint_eq(driver.observed.released[replaced], 4 * PAGE);
	ck_assert_uint_eq(driver.observed.released[kept], 0);
	ck_assert_uint_eq(driver.observed.released_by_none, 12 * PAGE);
	ck_assert_uint_eq(driver.observed.released[ALLOCATION_UNKNOWN], 2 * PAGE);
	ck_assert_uint_eq(space_check_result(driver.space).mismatch_bytes, 16 * PAGE);
	ck_assert_uint_eq(reconciled(), 16 * PAGE);
}
END_TEST

Suite *test_suite(void)
{
	Suite *suite = suite_create("space: repairs");
	TCase *known = add_tcase(suite, "known");

	tcase_add_checked_fixture(known, setup, teardown);
	tcase_add_tests(
	    known, finish_makes_the_model_what_the_last_check_read, reconcile_waits_for_calls_in_flight,
	    release_in_flight_over_several_checks, difference_of_several_checks_is_reconciled_in_time,
	    next_check_that_agrees_resolves_a_difference, last_check_waits_for_calls_as_long_as_the_recorder_did,
	    call_that_returns_after_its_effect_was_reconciled_is_not_counted,
	    pending_unmap_over_a_page_that_is_reconciled_keeps_its_release,
	    move_and_mprotect_of_a_mapping_whose_call_was_lost, reconcile_of_protection_keeps_the_allocation,
	    unfinished_check_reconciles_nothing, end_of_the_process_is_no_difference_to_reconcile, check_outlives_exec,
	    check_fills_in_what_the_model_could_not_know, mmap2_record_of_a_lost_call_is_not_a_kernel_mapping,
	    losses_are_counted_for_all_spaces, found_bytes_keep_their_assigned_number,
	    move_of_what_a_lost_call_mapped_replaces_its_target, mapping_below_a_stack_of_a_thread_is_no_growth,
	    growth_of_the_break_after_a_loss_has_no_owner, growth_of_the_break_in_a_child_belongs_to_its_call,
	    lost_release_before_a_new_mapping, lost_release_move_and_replacement_are_reconciled);
	return suite;
}
