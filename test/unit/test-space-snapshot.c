// SPDX-License-Identifier: LGPL-2.1-or-later
/* Snapshots of the kernel's maps: DEFINE and CHECK. */
#include <check.h>
#include <sys/mman.h>

#include "support/suite.h"
#include "support/space-calls.h"
#include "support/space-valid.h"

#define RW (PROT_READ | PROT_WRITE)

#ifndef MREMAP_DONTUNMAP
#define MREMAP_DONTUNMAP 4
#endif

static const struct space_attributes anonymous = {.protection = RW};
static const struct space_attributes heap = {.protection = RW, .heap = true};
static struct driver driver;

static void setup(void)
{
	driver_init(&driver);
}

static void setup_unknown(void)
{
	driver_init_unknown(&driver);
}

static void teardown(void)
{
	driver_deinit(&driver);
}

static void begin(enum space_snapshot_mode mode, uint32_t allocation)
{
	ck_assert_ptr_null(space_snapshot_begin(driver.space, mode, allocation, driver.now_ns));
}

static void end(void)
{
	const char *why = "";

	ck_assert_ptr_null(space_snapshot_end(driver.space, driver.now_ns += 1000));
	ck_assert_msg(space_valid(driver.space, &why), "%s", why);
}

/* Without checking the complete address space after each call. */
static void apply_unmap(uint64_t page)
{
	const struct space_call call = {.kind = CALL_MUNMAP,
					.arguments = {page * PAGE, PAGE},
					.time_ns = driver.now_ns += 100,
					.thread = 1,
					.allocation = ALLOCATION_FIRST};

	ck_assert_ptr_null(space_apply(driver.space, &call));
}

START_TEST(first_snapshot_defines_memory_without_calls)
{
	driver_map(&driver, 20, 4, RW, 0);
	begin(SPACE_SNAPSHOT_DEFINE, ALLOCATION_BEFORE);
	driver_line(&driver, 10, 4, anonymous);
	driver_line(&driver, 20, 6, anonymous);
	end();
	ck_assert_str_eq(driver_show(&driver), "10-14 rw b, 20-24 rw #3, 24-26 rw b");
	ck_assert_uint_eq(space_counts(driver.space).before_bytes, 6 * PAGE);
	ck_assert_uint_eq(space_counts(driver.space).reconciled_bytes, 0);
}
END_TEST

START_TEST(call_later_than_its_line_wins)
{
	begin(SPACE_SNAPSHOT_DEFINE, ALLOCATION_BEFORE);
	driver_line(&driver, 10, 6, anonymous);
	driver_line(&driver, 20, 4, anonymous);
	driver_unmap(&driver, 12, 2);
	driver_map(&driver, 20, 2, PROT_READ, MAP_FIXED);
	end();
	ck_assert_str_eq(driver_show(&driver), "10-12 rw b, 14-16 rw b, 20-22 r #4, 22-24 rw b");
}
END_TEST

/* The line may show a call in flight; if no call resolves it, the kernel is right in the end. */
START_TEST(line_later_than_a_call_wins_unless_a_call_resolves_it)
{
	begin(SPACE_SNAPSHOT_DEFINE, ALLOCATION_BEFORE);
	driver_map(&driver, 20, 2, PROT_READ, 0);
	driver_line(&driver, 20, 2, anonymous);
	end();
	ck_assert_str_eq(driver_show(&driver), "20-22 r #3");
	driver.now_ns += 4000000000;
	driver_map(&driver, 50, 1, RW, 0);
	ck_assert_str_eq(driver_show(&driver), "20-22 rw #3, 50-51 rw #4");
	ck_assert_uint_eq(space_counts(driver.space).reconciled_bytes, 2 * PAGE);
}
END_TEST

START_TEST(moved_from_unread_to_read_stays_unknown_until_a_snapshot)
{
	begin(SPACE_SNAPSHOT_DEFINE, ALLOCATION_BEFORE);
	driver_line(&driver, 10, 1, anonymous);
	driver_line(&driver, 30, 1, anonymous);
	driver_remap(&driver, 40, 4, 4, MREMAP_MAYMOVE, 20);
	driver_line(&driver, 50, 1, anonymous);
	end();
	ck_assert_str_eq(driver_show(&driver), "10-11 rw b, 20-24 -? b, 30-31 rw b, 50-51 rw b");
	ck_assert_uint_eq(space_counts(driver.space).unknown_bytes, 4 * PAGE);
	begin(SPACE_SNAPSHOT_DEFINE, ALLOCATION_BEFORE);
	driver_line(&driver, 10, 1, anonymous);
	driver_line(&driver, 20, 4, (struct space_attributes){.protection = PROT_READ});
	driver_line(&driver, 30, 1, anonymous);
	driver_line(&driver, 50, 1, anonymous);
	end();
	ck_assert_str_eq(driver_show(&driver), "10-11 rw b, 20-24 r b, 30-31 rw b, 50-51 rw b");
	ck_assert_uint_eq(space_counts(driver.space).unknown_bytes, 0);
}
END_TEST

/* Its target was read before it moved, its source after; it returns after both. */
/* A check distinguishes races of the first reading from its own. */
START_TEST(snapshot_races_of_the_first_and_of_the_last_reading)
{
	begin(SPACE_SNAPSHOT_DEFINE, ALLOCATION_BEFORE);
	driver_line(&driver, 30, 1, anonymous);
	driver_remap(&driver, 40, 4, 4, MREMAP_MAYMOVE, 20);
	end();
	begin(SPACE_SNAPSHOT_CHECK, 0);
	driver_line(&driver, 20, 4, anonymous);
	driver_line(&driver, 30, 3, anonymous);
	end();
	driver_map(&driver, 31, 2, RW, 0);
	ck_assert_uint_eq(space_check_result(driver.space).mismatch_bytes, 0);
	ck_assert_uint_eq(space_check_result(driver.space).unverifiable_bytes, 6 * PAGE);
	ck_assert_uint_eq(space_check_result(driver.space).unread_bytes, 4 * PAGE);
	ck_assert_uint_eq(space_check_result(driver.space).compared_bytes, 7 * PAGE);
}
END_TEST

START_TEST(move_in_flight_from_read_to_unread_in_a_known_space)
{
	driver_map(&driver, 40, 4, RW, 0);
	begin(SPACE_SNAPSHOT_DEFINE, ALLOCATION_KERNEL);
	driver_line(&driver, 10, 1, anonymous);
	driver_line(&driver, 30, 1, anonymous);
	driver_line(&driver, 50, 1, anonymous);
	driver_remap(&driver, 40, 4, 4, MREMAP_MAYMOVE, 20);
	end();
	ck_assert_str_eq(driver_show(&driver), "10-11 rw k, 20-24 rw #3, 30-31 rw k, 50-51 rw k");
	space_finish(driver.space);
	ck_assert_str_eq(driver_show(&driver), "10-11 rw k, 20-24 rw #3, 30-31 rw k, 50-51 rw k");
	ck_assert_uint_eq(space_counts(driver.space).reconciled_bytes, 0);
}
END_TEST

/* A copied address space is known; inherited mappings are moved as above. */
START_TEST(move_in_flight_of_older_memory)
{
	driver_mmap2(&driver, 40, 4, anonymous);
	ck_assert_ptr_null(space_mmap2(driver.space, &driver.mmap2_records[0]));
	driver.mmap2_count = 0;
	begin(SPACE_SNAPSHOT_DEFINE, ALLOCATION_BEFORE);
	driver_line(&driver, 10, 1, anonymous);
	driver_line(&driver, 50, 1, anonymous);
	ck_assert_str_eq(driver_show(&driver), "10-11 rw b, 50-51 rw b");
	driver_remap(&driver, 40, 4, 4, MREMAP_MAYMOVE, 20);
	end();
	ck_assert_str_eq(driver_show(&driver), "10-11 rw b, 20-24 rw k, 50-51 rw b");
}
END_TEST

/* Moved, and the range mapped again, before the line was read: both calls return later. */
START_TEST(moved_from_where_the_line_shows_the_next_mapping)
{
	const struct space_attributes readable = {.protection = PROT_READ};

	begin(SPACE_SNAPSHOT_DEFINE, ALLOCATION_BEFORE);
	driver_line(&driver, 10, 1, anonymous);
	driver_line(&driver, 20, 4, readable); /* in the place of pages that were rw */
	driver_remap(&driver, 20, 4, 4, MREMAP_MAYMOVE | MREMAP_FIXED, 40);
	driver_map(&driver, 20, 4, PROT_READ, MAP_FIXED);
	driver_line(&driver, 40, 4, anonymous);
	end();
	ck_assert_str_eq(driver_show(&driver), "10-11 rw b, 20-24 r #4, 40-44 rw b");
	ck_assert_uint_eq(space_counts(driver.space).unknown_bytes, 0);
}
END_TEST

START_TEST(move_of_a_returned_thread_applies_to_the_snapshot)
{
	const struct space_attributes readable = {.protection = PROT_READ};

	begin(SPACE_SNAPSHOT_DEFINE, ALLOCATION_BEFORE);
	driver_line(&driver, 20, 4, readable);
	driver_line(&driver, 50, 1, anonymous);
	driver_map(&driver, 70, 1, RW, 0);
	driver_remap(&driver, 20, 4, 4, MREMAP_MAYMOVE, 30);
	ck_assert_str_eq(driver_show(&driver), "30-34 r b, 50-51 rw b, 70-71 rw #3");
	/* No call is later than a reading in progress. */
	driver_remap(&driver, 50, 1, 1, MREMAP_MAYMOVE, 10);
	ck_assert_str_eq(driver_show(&driver), "10-11 -? b, 30-34 r b, 70-71 rw #3");
	end();
}
END_TEST

/* The source stays, so its line shows what the call copied, whichever came first. */
START_TEST(move_in_flight_that_keeps_its_source)
{
	begin(SPACE_SNAPSHOT_DEFINE, ALLOCATION_BEFORE);
	driver_line(&driver, 20, 4, anonymous);
	driver_remap(&driver, 20, 4, 4, MREMAP_MAYMOVE | MREMAP_DONTUNMAP, 40);
	driver_line(&driver, 40, 4, anonymous);
	end();
	ck_assert_str_eq(driver_show(&driver), "20-24 rw b, 40-44 rw #3");
	begin(SPACE_SNAPSHOT_CHECK, 0);
	driver_line(&driver, 20, 4, anonymous);
	driver_line(&driver, 40, 4, anonymous);
	end();
	ck_assert_uint_eq(space_check_result(driver.space).unread_bytes, 0);
	ck_assert_uint_eq(space_check_result(driver.space).mismatch_bytes, 0);
}
END_TEST

START_TEST(protection_changed_in_flight_keeps_the_rest_of_the_line)
{
	begin(SPACE_SNAPSHOT_DEFINE, ALLOCATION_BEFORE);
	driver_line(&driver, 20, 4, anonymous);
	driver_protect(&driver, 20, 2, PROT_READ);
	ck_assert_str_eq(driver_show(&driver), "20-22 r b, 22-24 rw b");
	end();
}
END_TEST

/* A reading takes time: it may show a newer state than a copy made in between. */
START_TEST(fork_while_a_line_is_read)
{
	struct driver child = driver;

	driver_mmap2(&driver, 40, 4, anonymous);
	ck_assert_ptr_null(space_mmap2(driver.space, &driver.mmap2_records[0]));
	driver.mmap2_count = 0;
	begin(SPACE_SNAPSHOT_DEFINE, ALLOCATION_BEFORE);
	driver_line(&driver, 10, 1, anonymous);
	driver_line(&driver, 50, 1, anonymous);
	ck_assert_str_eq(driver_show(&driver), "10-11 rw b, 50-51 rw b");
	ck_assert_ptr_null(space_fork(driver.space, &child.space));
	ck_assert_str_eq(driver_show(&child), "10-11 rw b, 40-44 rw b");
	space_destroy(child.space);
	end();
}
END_TEST

/* The line is from after the copy; the calls that have returned are from before it. */
START_TEST(fork_while_a_changed_line_is_read)
{
	const struct space_attributes readable = {.protection = PROT_READ};
	struct driver child = driver;

	driver_mmap2(&driver, 40, 8, anonymous);
	ck_assert_ptr_null(space_mmap2(driver.space, &driver.mmap2_records[0]));
	driver.mmap2_count = 0;
	begin(SPACE_SNAPSHOT_DEFINE, ALLOCATION_BEFORE);
	driver_line(&driver, 40, 8, readable);
	driver_protect(&driver, 42, 2, PROT_EXEC);
	driver_call(&driver, CALL_MADVISE, 0, 46 * PAGE, PAGE, MADV_DONTFORK, 0, 0, 0);
	ck_assert_str_eq(driver_show(&driver), "40-42 r b, 42-44 x b, 44-46 r b, 46-47 r b, 47-48 r b");
	ck_assert_ptr_null(space_fork(driver.space, &child.space));
	ck_assert_str_eq(driver_show(&child), "40-42 rw b, 42-44 x b, 44-46 rw b, 47-48 rw b");
	ck_assert_uint_eq(space_counts(child.space).unknown_bytes, 0);
	space_destroy(child.space);
	end();
}
END_TEST

/* More calls within one snapshot than can be listed separately: none is forgotten. */
START_TEST(many_calls_while_a_line_is_read)
{
	const struct space_attributes readable = {.protection = PROT_READ};

	begin(SPACE_SNAPSHOT_DEFINE, ALLOCATION_BEFORE);
	driver_line(&driver, 1000, 200000, readable);
	driver_remap(&driver, 1000, 1, 1, MREMAP_MAYMOVE, 10);
	for (uint64_t i = 1; i < 70000; i++)
		apply_unmap(1000 + 2 * i);
	driver_remap(&driver, 1001, 1, 1, MREMAP_MAYMOVE, 20);
	driver_line(&driver, 300000, 1, readable);
	end();
	ck_assert(space_find(driver.space, 10 * PAGE)->attributes.unknown);
	ck_assert(space_find(driver.space, 20 * PAGE)->attributes.unknown);
	ck_assert_uint_eq(space_counts(driver.space).unknown_bytes, 2 * PAGE);
	ck_assert_ptr_null(space_find(driver.space, 1002 * PAGE));
	ck_assert_ptr_nonnull(space_find(driver.space, 1003 * PAGE));
}
END_TEST

START_TEST(exec_snapshot_removes_what_the_loader_unmapped)
{
	const struct space_attributes image = {.protection = PROT_READ, .device_major = 8, .inode = 5};
	struct space_attributes tail = image;

	driver_mmap2(&driver, 100, 20, image);
	ck_assert_ptr_null(space_mmap2(driver.space, &driver.mmap2_records[0]));
	driver.mmap2_count = 0;
	driver_map(&driver, 10, 1, RW, 0);
	ck_assert_str_eq(driver_show(&driver), "10-11 rw #3, 100-120 r+0 k");
	begin(SPACE_SNAPSHOT_DEFINE, ALLOCATION_KERNEL);
	driver_line(&driver, 10, 1, anonymous);
	driver_line(&driver, 100, 2, image);
	tail.file_offset = 18 * PAGE;
	driver_line(&driver, 118, 2, tail);
	driver_line(&driver, 200, 1, anonymous);
	end();
	ck_assert_str_eq(driver_show(&driver), "10-11 rw #3, 100-102 r+0 k, 118-120 r+18 k, 200-201 rw k");
	ck_assert_uint_eq(space_counts(driver.space).reconciled_bytes, 0);
}
END_TEST

START_TEST(reconcile_is_counted)
{
	driver_map(&driver, 10, 4, RW, 0);
	driver_map(&driver, 20, 4, RW, 0);
	begin(SPACE_SNAPSHOT_CHECK, 0);
	driver_line(&driver, 12, 4, anonymous);
	driver_line(&driver, 20, 4, (struct space_attributes){.protection = PROT_READ});
	end();
	space_finish(driver.space);
	ck_assert_str_eq(driver_show(&driver), "12-14 rw #3, 14-16 rw u, 20-24 r #4");
	ck_assert_uint_eq(space_counts(driver.space).reconciled_bytes, 8 * PAGE);
}
END_TEST

START_TEST(snapshot_names_a_file_without_an_mmap2_record)
{
	const struct space_attributes file = {
	    .protection = PROT_READ, .device_major = 8, .inode = 5, .file_offset = 3 * PAGE, .path = 9};

	driver_call(&driver, CALL_MMAP, 10 * PAGE, 0, 2 * PAGE, PROT_READ, MAP_PRIVATE, 3, 3 * PAGE);
	ck_assert_str_eq(driver_show(&driver), "10-12 r!+3 #3");
	begin(SPACE_SNAPSHOT_CHECK, 0);
	driver_line(&driver, 10, 2, file);
	end();
	ck_assert_uint_eq(space_check_result(driver.space).mismatch_bytes, 0);
	begin(SPACE_SNAPSHOT_DEFINE, ALLOCATION_BEFORE);
	driver_line(&driver, 10, 2, file);
	end();
	ck_assert_str_eq(driver_show(&driver), "10-12 r+3 #3");
	ck_assert_uint_eq(space_find(driver.space, 11 * PAGE)->attributes.path, 9);
}
END_TEST

START_TEST(check_finds_missing_extra_and_different_pages)
{
	driver_map(&driver, 10, 4, RW, 0);
	driver_map_file(&driver, 20, 4, PROT_READ, 7, 0);
	begin(SPACE_SNAPSHOT_CHECK, 0);
	driver_line(&driver, 11, 5, anonymous); /* 10 is extra, 14 and 15 are missing */
	driver_line(
	    &driver, 20, 4,
	    (struct space_attributes){
		.protection = PROT_READ, .device_major = 8, .device_minor = 1, .inode = 77, .file_offset = 8 * PAGE});
	end();
	ck_assert(space_check_result(driver.space).done);
	ck_assert_uint_eq(space_check_result(driver.space).mismatch_bytes, 7 * PAGE);
	ck_assert_uint_eq(space_check_result(driver.space).first_wrong, 10 * PAGE);
	ck_assert_uint_eq(space_check_result(driver.space).mappings, 2);
	ck_assert_str_eq(driver_show(&driver), "10-14 rw #3, 20-24 r+7 #4");
}
END_TEST

/* A read() of the maps may go on above what was mapped since the previous one, and does not show it. */
START_TEST(mapping_between_two_reads_stays)
{
	driver_map(&driver, 40, 1, RW, 0);
	begin(_i ? SPACE_SNAPSHOT_CHECK : SPACE_SNAPSHOT_DEFINE, ALLOCATION_BEFORE);
	if (_i < 2)
		driver_map(&driver, 20, 2, RW, 0);
	driver_line(&driver, 40, 1, anonymous);
	if (_i == 2)
		driver_map(&driver, 50, 2, RW, 0);
	end();
	ck_assert_uint_eq(space_check_result(driver.space).mismatch_bytes, 0);
	driver.now_ns += 2000000000;
	driver_map(&driver, 60, 1, RW, 0);
	ck_assert_uint_eq(space_counts(driver.space).reconciled_bytes, 0);
	ck_assert_str_eq(driver_show(&driver),
			 _i < 2 ? "20-22 rw #4, 40-41 rw #3, 60-61 rw #5" : "40-41 rw #3, 50-52 rw #4, 60-61 rw #5");
}
END_TEST

START_TEST(check_compares_pages)
{
	driver_map(&driver, 10, 4, RW, 0);
	begin(SPACE_SNAPSHOT_CHECK, 0);
	driver_line(&driver, 10, 1, anonymous);
	driver_line(&driver, 11, 3, anonymous);
	end();
	ck_assert_uint_eq(space_check_result(driver.space).mismatch_bytes, 0);
}
END_TEST

START_TEST(call_after_the_line_makes_a_difference_unverifiable)
{
	driver_map(&driver, 10, 4, RW, 0);
	begin(SPACE_SNAPSHOT_CHECK, 0);
	driver_line(&driver, 12, 2, anonymous);
	driver_unmap(&driver, 11, 1);
	end();
	ck_assert_uint_eq(space_check_result(driver.space).mismatch_bytes, PAGE);
	ck_assert_uint_eq(space_check_result(driver.space).unverifiable_bytes, PAGE);
	driver_unmap(&driver, 10, 1);
	ck_assert_uint_eq(space_check_result(driver.space).mismatch_bytes, 0);
	ck_assert_uint_eq(space_check_result(driver.space).unverifiable_bytes, 2 * PAGE);
}
END_TEST

START_TEST(call_long_after_the_line_explains_nothing)
{
	driver_map(&driver, 10, 4, RW, 0);
	begin(SPACE_SNAPSHOT_CHECK, 0);
	end();
	driver.now_ns += 2000000000;
	driver_unmap(&driver, 10, 4);
	ck_assert_uint_eq(space_check_result(driver.space).mismatch_bytes, 4 * PAGE);
}
END_TEST

START_TEST(stack_grows_unseen)
{
	const struct space_attributes stack = {.protection = RW, .stack = true};

	driver_mmap2(&driver, 30, 2, stack);
	ck_assert_ptr_null(space_mmap2(driver.space, &driver.mmap2_records[0]));
	driver.mmap2_count = 0;
	begin(SPACE_SNAPSHOT_CHECK, 0);
	driver_line(&driver, 25, 7, stack);
	end();
	ck_assert_uint_eq(space_check_result(driver.space).mismatch_bytes, 0);
	space_finish(driver.space);
	ck_assert_str_eq(driver_show(&driver), "25-32 rw k");
	ck_assert_uint_eq(space_counts(driver.space).reconciled_bytes, 0);
}
END_TEST

START_TEST(overlapping_lines)
{
	const struct space_attributes file = {.protection = RW, .device_major = 8, .inode = 5};

	begin(SPACE_SNAPSHOT_DEFINE, ALLOCATION_BEFORE);
	driver_line(&driver, 10, 4, file);
	driver_line(&driver, 10, 8, file); /* has grown since */
	driver_line(&driver, 12, 6, file); /* all of it is described already */
	driver_line(&driver, 20, 1, anonymous);
	end();
	ck_assert_str_eq(driver_show(&driver), "10-18 rw+0 b, 20-21 rw b");
	begin(SPACE_SNAPSHOT_CHECK, 0);
	driver_line(&driver, 10, 4, file);
	driver_line(&driver, 10, 8, file);
	driver_line(&driver, 20, 1, anonymous);
	end();
	ck_assert_uint_eq(space_check_result(driver.space).mismatch_bytes, 0);
}
END_TEST

START_TEST(heap_line_shows_the_break)
{
	begin(SPACE_SNAPSHOT_DEFINE, ALLOCATION_BEFORE);
	driver_line(&driver, 10, 4, heap);
	end();
	driver_call(&driver, CALL_BRK, 16 * PAGE, 16 * PAGE, 0, 0, 0, 0, 0);
	ck_assert_str_eq(driver_show(&driver), "10-14 rw b, 14-16 rw #3");
	driver_call(&driver, CALL_BRK, 13 * PAGE, 13 * PAGE, 0, 0, 0, 0, 0);
	ck_assert_str_eq(driver_show(&driver), "10-13 rw b");
}
END_TEST

/* A call lost before the line was read has not moved the break since. */
START_TEST(growth_of_a_break_shown_by_a_line_belongs_to_its_call)
{
	driver.losses++;
	begin(SPACE_SNAPSHOT_DEFINE, ALLOCATION_BEFORE);
	driver_line(&driver, 10, 4, heap);
	if (_i) {
		driver.losses++;
		driver_line(&driver, 14, 1, heap);
	}
	end();
	driver_call(&driver, CALL_BRK, 16 * PAGE, 16 * PAGE, 0, 0, 0, 0, 0);
	ck_assert_str_eq(driver_show(&driver), _i ? "10-15 rw b, 15-16 rw #3" : "10-14 rw b, 14-16 rw #3");
	ck_assert_uint_eq(space_counts(driver.space).reconciled_bytes, 0);
}
END_TEST

/* A call lost after the line was read may have moved the break. */
START_TEST(growth_of_a_break_lost_since_its_line_has_no_owner)
{
	begin(SPACE_SNAPSHOT_DEFINE, ALLOCATION_BEFORE);
	driver_line(&driver, 10, 4, heap);
	driver.losses++;
	driver_line(&driver, 30, 1, anonymous);
	end();
	driver_call(&driver, CALL_BRK, 16 * PAGE, 16 * PAGE, 0, 0, 0, 0, 0);
	ck_assert_str_eq(driver_show(&driver), "10-14 rw b, 14-16 rw u, 30-31 rw b");
}
END_TEST

/* The break moves to `page`. The MMAP2 record covers the mapping that grew, which begins at page `from`. */
static void grow_heap(uint64_t from, uint64_t page)
{
	driver_mmap2(&driver, from, page - from, heap);
	driver_call(&driver, CALL_BRK, (int64_t)(page * PAGE), page * PAGE, 0, 0, 0, 0, 0);
}

static void expect_check(uint64_t mismatch_pages, uint64_t unverifiable_pages)
{
	const struct space_check check = space_check_result(driver.space);

	ck_assert_uint_eq(check.mismatch_bytes, mismatch_pages * PAGE);
	ck_assert_uint_eq(check.unverifiable_bytes, unverifiable_pages * PAGE);
}

/* The MMAP2 record of the first call shows all of the heap; how much is new is known only to the page of the break that
 * was read before. */
START_TEST(heap_that_grows_before_its_line_is_older)
{
	if (_i)
		space_break_before(driver.space, 14 * PAGE);
	grow_heap(10, 16);
	grow_heap(10, 17);
	begin(SPACE_SNAPSHOT_DEFINE, ALLOCATION_BEFORE);
	driver_line(&driver, 10, 7, heap);
	driver_line(&driver, 30, 1, anonymous);
	grow_heap(10, 19);
	end();
	ck_assert_str_eq(driver_show(&driver), "10-16 rw b, 16-17 rw #4, 17-19 rw #5, 30-31 rw b");
	expect_check(0, _i ? 2 : 6);
}
END_TEST

START_TEST(heap_that_grows_between_its_lines_is_older)
{
	begin(SPACE_SNAPSHOT_DEFINE, ALLOCATION_BEFORE);
	driver_line(&driver, 10, 4, heap);
	grow_heap(18, 20);
	driver_line(&driver, 14, 4, heap);
	driver_line(&driver, 18, 2, heap);
	driver_line(&driver, 30, 1, anonymous);
	end();
	grow_heap(18, 21);
	ck_assert_str_eq(driver_show(&driver), "10-20 rw b, 20-21 rw #4, 30-31 rw b");
	expect_check(0, 2);
}
END_TEST

START_TEST(heap_that_begins_after_the_snapshot_is_new)
{
	begin(SPACE_SNAPSHOT_DEFINE, ALLOCATION_BEFORE);
	driver_line(&driver, 30, 1, anonymous);
	end();
	grow_heap(10, 16);
	ck_assert_str_eq(driver_show(&driver), "10-16 rw #3, 30-31 rw b");
	expect_check(0, 0);
}
END_TEST

/* A fork applies the MMAP2 record of a call in flight. */
START_TEST(heap_shown_by_a_call_in_flight_is_older)
{
	const struct space_mmap2 seen = {.start = 10 * PAGE, .end = 16 * PAGE, .attributes = heap};

	ck_assert_ptr_null(space_mmap2(driver.space, &seen));
	grow_heap(10, 16);
	ck_assert_str_eq(driver_show(&driver), "10-16 rw b");
}
END_TEST

/* The kernel shows no such line: the model is wrong. */
START_TEST(heap_from_calls_below_every_break_is_a_mismatch)
{
	grow_heap(10, 16);
	grow_heap(10, 18);
	driver_remap(&driver, 16, 2, 2, MREMAP_MAYMOVE, 7);
	begin(SPACE_SNAPSHOT_DEFINE, ALLOCATION_BEFORE);
	driver_line(&driver, 7, 2, _i ? heap : anonymous);
	driver_line(&driver, 10, 6, heap);
	end();
	expect_check(_i ? 2 : 0, 6);
	space_exec(driver.space);
	expect_check(_i ? 2 : 0, 6);
}
END_TEST

/* The record of a new mapping may cover older neighbours, which no snapshot has shown yet. */
START_TEST(mapping_of_a_file_below_an_unread_one_is_not_of_huge_pages)
{
	const struct space_attributes file = {.protection = RW, .device_major = 8, .device_minor = 1, .inode = 77};

	driver_mmap2(&driver, 512, 512, file);
	driver_call(&driver, CALL_MMAP, 512 * PAGE, 0, 4 * PAGE, RW, MAP_PRIVATE, 3, 0);
	ck_assert_str_eq(driver_show(&driver), "512-516 rw+0 #3");
}
END_TEST

Suite *test_suite(void)
{
	Suite *suite = suite_create("space: snapshots");
	TCase *known = add_tcase(suite, "known");
	TCase *attached = add_tcase(suite, "attached");

	tcase_add_checked_fixture(known, setup, teardown);
	tcase_add_checked_fixture(attached, setup_unknown, teardown);
	tcase_set_timeout(attached, 600);
	tcase_add_tests(attached, first_snapshot_defines_memory_without_calls, call_later_than_its_line_wins,
			line_later_than_a_call_wins_unless_a_call_resolves_it,
			moved_from_unread_to_read_stays_unknown_until_a_snapshot,
			snapshot_races_of_the_first_and_of_the_last_reading);
	tcase_add_tests(known, move_in_flight_from_read_to_unread_in_a_known_space, move_in_flight_of_older_memory);
	tcase_add_tests(attached, moved_from_where_the_line_shows_the_next_mapping,
			move_in_flight_that_keeps_its_source, move_of_a_returned_thread_applies_to_the_snapshot,
			protection_changed_in_flight_keeps_the_rest_of_the_line);
	tcase_add_tests(known, fork_while_a_line_is_read, fork_while_a_changed_line_is_read);
	tcase_add_test(attached, many_calls_while_a_line_is_read);
	tcase_add_tests(known, exec_snapshot_removes_what_the_loader_unmapped, reconcile_is_counted,
			snapshot_names_a_file_without_an_mmap2_record, check_finds_missing_extra_and_different_pages,
			check_compares_pages, call_after_the_line_makes_a_difference_unverifiable,
			call_long_after_the_line_explains_nothing, stack_grows_unseen);
	tcase_add_loop_test(known, mapping_between_two_reads_stays, 0, 3);
	tcase_add_tests(attached, overlapping_lines, heap_line_shows_the_break);
	tcase_add_loop_test(attached, growth_of_a_break_shown_by_a_line_belongs_to_its_call, 0, 2);
	tcase_add_loop_test(attached, heap_that_grows_before_its_line_is_older, 0, 2);
	tcase_add_loop_test(attached, heap_from_calls_below_every_break_is_a_mismatch, 0, 2);
	tcase_add_tests(attached, growth_of_a_break_lost_since_its_line_has_no_owner,
			heap_that_grows_between_its_lines_is_older, heap_that_begins_after_the_snapshot_is_new,
			heap_shown_by_a_call_in_flight_is_older,
			mapping_of_a_file_below_an_unread_one_is_not_of_huge_pages);
	return suite;
}
