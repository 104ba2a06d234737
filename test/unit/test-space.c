// SPDX-License-Identifier: LGPL-2.1-or-later
/* The ordinary life of mappings: mmap, munmap, mprotect, brk, exec, fork. */
#include <check.h>
#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/shm.h>

#include "support/suite.h"
#include "support/space-calls.h"
#include "support/space-valid.h"

#define RW (PROT_READ | PROT_WRITE)
#ifndef PROT_GROWSDOWN
#define PROT_GROWSDOWN 0x01000000
#endif
#ifndef MREMAP_DONTUNMAP
#define MREMAP_DONTUNMAP 4
#endif

static struct driver driver;

static void setup(void)
{
	driver_init(&driver);
}

static void teardown(void)
{
	driver_deinit(&driver);
}

START_TEST(mmap_allocates_and_munmap_releases)
{
	driver_map(&driver, 10, 4, RW, 0);
	ck_assert_str_eq(driver_show(&driver), "10-14 rw #3");
	ck_assert_uint_eq(space_counts(driver.space).mapped_bytes, 4 * PAGE);
	driver_unmap(&driver, 10, 4);
	ck_assert_str_eq(driver_show(&driver), "");
	ck_assert_uint_eq(driver.observed.released[3], 4 * PAGE);
}
END_TEST

START_TEST(munmap_of_head_middle_and_tail_splits_the_mapping)
{
	driver_map(&driver, 10, 10, RW, 0);
	driver_unmap(&driver, 10, 1);
	driver_unmap(&driver, 19, 1);
	driver_unmap(&driver, 14, 2);
	ck_assert_str_eq(driver_show(&driver), "11-14 rw #3, 16-19 rw #3");
}
END_TEST

START_TEST(munmap_crosses_mappings_and_holes)
{
	driver_map(&driver, 10, 4, RW, 0);
	driver_map(&driver, 16, 4, PROT_READ, 0);
	driver_map(&driver, 30, 4, RW, 0);
	driver_unmap(&driver, 12, 20);
	ck_assert_str_eq(driver_show(&driver), "10-12 rw #3, 32-34 rw #5");
}
END_TEST

START_TEST(fixed_mapping_replaces)
{
	driver_map(&driver, 10, 10, RW, 0);
	driver_map(&driver, 12, 2, PROT_READ, MAP_FIXED);
	ck_assert_str_eq(driver_show(&driver), "10-12 rw #3, 12-14 r #4, 14-20 rw #3");
	ck_assert_uint_eq(driver.observed.released[3], 2 * PAGE);
}
END_TEST

START_TEST(failed_calls_change_nothing)
{
	driver_map(&driver, 10, 4, RW, 0);
	driver_call(&driver, CALL_MMAP, -ENOMEM, 10 * PAGE, PAGE, RW, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED,
		    UINT64_MAX, 0);
	driver_call(&driver, CALL_MMAP, -EEXIST, 10 * PAGE, PAGE, RW, MAP_PRIVATE | MAP_ANONYMOUS | 0x100000,
		    UINT64_MAX, 0);
	driver_call(&driver, CALL_MMAP, -EINVAL, 10 * PAGE, PAGE, RW, MAP_PRIVATE | MAP_FIXED, 3, 5);
	driver_call(&driver, CALL_MUNMAP, -EINVAL, 10 * PAGE + 1, PAGE, 0, 0, 0, 0);
	driver_call(&driver, CALL_MUNMAP, -EPERM, 10 * PAGE, PAGE, 0, 0, 0, 0);
	driver_call(&driver, CALL_MPROTECT, -EACCES, 10 * PAGE, PAGE, PROT_READ, 0, 0, 0);
	driver_call(&driver, CALL_MREMAP, -EINVAL, 10 * PAGE, PAGE, PAGE, MREMAP_MAYMOVE | MREMAP_FIXED, 11 * PAGE, 0);
	ck_assert_str_eq(driver_show(&driver), "10-14 rw #3");
}
END_TEST

START_TEST(refused_fixed_file_mapping_leaves_a_hole)
{
	driver_map(&driver, 10, 4, RW, 0);
	driver_call(&driver, CALL_MMAP, -EINVAL, 11 * PAGE, PAGE, RW, MAP_SHARED | MAP_FIXED, 3, 0);
	ck_assert_str_eq(driver_show(&driver), "10-11 rw #3, 12-14 rw #3");
}
END_TEST

START_TEST(file_offsets_follow_splits_and_merges)
{
	driver_map_file(&driver, 10, 8, PROT_READ, 3, 0);
	driver_unmap(&driver, 12, 1);
	ck_assert_str_eq(driver_show(&driver), "10-12 r+3 #3, 13-18 r+6 #3");
	driver_protect(&driver, 14, 2, RW);
	driver_protect(&driver, 14, 2, PROT_READ);
	ck_assert_str_eq(driver_show(&driver), "10-12 r+3 #3, 13-18 r+6 #3");
}
END_TEST

START_TEST(mmap2_after_merging_names_the_file_of_the_range)
{
	driver_mmap2(
	    &driver, 8, 10,
	    (struct space_attributes){.protection = PROT_READ, .device_major = 8, .inode = 4, .file_offset = PAGE});
	driver_call(&driver, CALL_MMAP, 10 * PAGE, 0, 2 * PAGE, PROT_READ, MAP_PRIVATE, 3, 3 * PAGE);
	ck_assert_str_eq(driver_show(&driver), "10-12 r+3 #3");
}
END_TEST

START_TEST(read_implies_exec_is_detected)
{
	driver_mmap2(&driver, 10, 2, (struct space_attributes){.protection = PROT_READ | PROT_EXEC});
	driver_map(&driver, 10, 2, PROT_READ, 0);
	driver_protect(&driver, 10, 1, PROT_NONE);
	driver_protect(&driver, 10, 2, PROT_READ);
	ck_assert_str_eq(driver_show(&driver), "10-11 rx #3/#5, 11-12 rx #3");
}
END_TEST

START_TEST(mprotect_moves_bytes_between_reserved_and_committed)
{
	struct space_counts counts;

	driver_map(&driver, 10, 8, PROT_NONE, 0);
	driver_protect(&driver, 12, 2, RW);
	counts = space_counts(driver.space);
	ck_assert_str_eq(driver_show(&driver), "10-12 - #3, 12-14 rw #3/#4, 14-18 - #3");
	ck_assert_uint_eq(counts.mapped_bytes, 8 * PAGE);
	ck_assert_uint_eq(counts.peaking_bytes, 2 * PAGE);
	driver_protect(&driver, 12, 2, PROT_READ);
	ck_assert_str_eq(driver_show(&driver), "10-12 - #3, 12-14 r #3/#4, 14-18 - #3");
	driver_protect(&driver, 12, 2, PROT_NONE);
	ck_assert_str_eq(driver_show(&driver), "10-18 - #3");
}
END_TEST

START_TEST(mprotect_that_fails_at_a_hole_keeps_what_precedes_it)
{
	driver_map(&driver, 10, 2, RW, 0);
	driver_map(&driver, 14, 2, RW, 0);
	driver_call(&driver, CALL_MPROTECT, -ENOMEM, 11 * PAGE, 5 * PAGE, PROT_READ, 0, 0, 0);
	ck_assert_str_eq(driver_show(&driver), "10-11 rw #3, 11-12 r #3, 14-16 rw #4");
}
END_TEST

START_TEST(mprotect_that_fails_halfway_keeps_what_mmap2_records_show)
{
	driver_map(&driver, 10, 2, RW, 0);
	driver_map(&driver, 12, 2, RW, 0);
	driver_mmap2(&driver, 10, 2, (struct space_attributes){.protection = PROT_READ});
	driver_call(&driver, CALL_MPROTECT, -EACCES, 11 * PAGE, 3 * PAGE, PROT_READ, 0, 0, 0);
	ck_assert_str_eq(driver_show(&driver), "10-11 rw #3, 11-12 r #3, 12-14 rw #4");
}
END_TEST

START_TEST(mprotect_growsdown_reaches_the_start_of_the_mapping)
{
	driver_map(&driver, 10, 6, RW, MAP_GROWSDOWN);
	driver_protect(&driver, 14, 1, PROT_READ | PROT_GROWSDOWN);
	ck_assert_str_eq(driver_show(&driver), "10-15 r #3, 15-16 rw #3");
}
END_TEST

START_TEST(mremap_grows_shrinks_and_moves)
{
	driver_map_file(&driver, 10, 4, PROT_READ, 0, 0);
	driver_remap(&driver, 10, 4, 6, 0, 10);
	ck_assert_str_eq(driver_show(&driver), "10-14 r+0 #3, 14-16 r+4 #4");
	driver_remap(&driver, 10, 6, 5, 0, 10);
	ck_assert_str_eq(driver_show(&driver), "10-14 r+0 #3, 14-15 r+4 #4");
	driver_remap(&driver, 11, 3, 6, MREMAP_MAYMOVE, 40);
	ck_assert_str_eq(driver_show(&driver), "10-11 r+0 #3, 14-15 r+4 #4, 40-43 r+1 #3, 43-46 r+4 #6");
	ck_assert_uint_eq(driver.observed.released[3], 0);
}
END_TEST

START_TEST(mremap_fixed_replaces_its_target)
{
	driver_map(&driver, 10, 4, RW, 0);
	driver_map(&driver, 20, 8, PROT_READ, 0);
	driver_remap(&driver, 10, 4, 2, MREMAP_MAYMOVE | MREMAP_FIXED, 22);
	ck_assert_str_eq(driver_show(&driver), "20-22 r #4, 22-24 rw #3, 24-28 r #4");
	ck_assert_uint_eq(driver.observed.released[3], 2 * PAGE);
}
END_TEST

START_TEST(mremap_fixed_moves_several_and_keeps_mappings_under_gaps)
{
	driver_map(&driver, 10, 2, RW, 0);
	driver_map(&driver, 14, 2, PROT_READ, 0);
	driver_map(&driver, 20, 6, PROT_EXEC, 0);
	driver_remap(&driver, 10, 6, 6, MREMAP_MAYMOVE | MREMAP_FIXED, 20);
	ck_assert_str_eq(driver_show(&driver), "20-22 rw #3, 22-24 x #5, 24-26 r #4");
}
END_TEST

START_TEST(mremap_dontunmap_keeps_the_source)
{
	driver_map(&driver, 10, 4, RW, 0);
	driver_remap(&driver, 10, 4, 4, MREMAP_MAYMOVE | MREMAP_DONTUNMAP, 30);
	ck_assert_str_eq(driver_show(&driver), "10-14 rw #3, 30-34 rw #4");
}
END_TEST

START_TEST(mremap_of_length_0_duplicates)
{
	driver_map_file(&driver, 10, 4, RW, 2, MAP_SHARED);
	driver_remap(&driver, 11, 0, 2, MREMAP_MAYMOVE, 30);
	ck_assert_str_eq(driver_show(&driver), "10-14 rws+2 #3, 30-32 rws+3 #4");
}
END_TEST

START_TEST(mremap_refused_by_the_limit_has_unmapped_its_target)
{
	driver_map(&driver, 10, 2, RW, 0);
	driver_map(&driver, 20, 4, RW, 0);
	driver_call(&driver, CALL_MREMAP, -ENOMEM, 10 * PAGE, 2 * PAGE, 2 * PAGE, MREMAP_MAYMOVE | MREMAP_FIXED,
		    21 * PAGE, 0);
	ck_assert_str_eq(driver_show(&driver), "10-12 rw #3, 20-21 rw #4, 23-24 rw #4");
}
END_TEST

START_TEST(mremap_that_duplicates_over_its_source_leaves_a_hole)
{
	driver_map_file(&driver, 10, 4, RW, 2, MAP_SHARED);
	driver_call(&driver, CALL_MREMAP, -EFAULT, 11 * PAGE, 0, 2 * PAGE, MREMAP_MAYMOVE | MREMAP_FIXED, 11 * PAGE, 0);
	ck_assert_str_eq(driver_show(&driver), "10-11 rws+2 #3, 13-14 rws+5 #3");
}
END_TEST

/* Until 6.16 the kernel first unmapped the target, then cut off the tail, then looked up the source. */
START_TEST(failed_moves_of_older_kernels)
{
	static const struct {
		const char *release;
		int64_t result;
		uint64_t source, old_pages, new_pages;
		const char *map;
	} cases[] = {
	    /* a source of two mappings; shorter or not; a limit of memory */
	    {"6.16.0-1-amd64", -EFAULT, 10, 3, 3, "10-12 rw #3, 12-14 r #4, 20-21 rw #5, 24-26 rw #5"},
	    {"6.1.0-1-amd64", -EFAULT, 10, 4, 2, "10-12 rw #3, 20-21 rw #5, 23-26 rw #5"},
	    {"5.10.0-1-amd64", -EAGAIN, 10, 1, 2, "10-12 rw #3, 12-14 r #4, 20-21 rw #5, 23-26 rw #5"},
	    /* nothing at the source */
	    {"6.1.0-1-amd64", -EFAULT, 30, 1, 1, "10-12 rw #3, 12-14 r #4, 20-26 rw #5"},
	    {"5.15.0-1-amd64", -EFAULT, 30, 1, 1, "10-12 rw #3, 12-14 r #4, 20-21 rw #5, 22-26 rw #5"},
	    /* a second view of private memory */
	    {"6.16.0-1-amd64", -EINVAL, 10, 0, 1, "10-12 rw #3, 12-14 r #4, 20-21 rw #5, 22-26 rw #5"},
	    /* 6.17 moves what can be moved; unknown version: the newest */
	    {"6.17.0-1-amd64", -EFAULT, 10, 4, 4, "10-12 rw #3, 12-14 r #4, 20-26 rw #5"},
	    {"unknown", -EFAULT, 10, 4, 2, "10-12 rw #3, 12-14 r #4, 20-26 rw #5"},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		driver_deinit(&driver);
		driver_init_on(&driver, cases[i].release);
		driver_map(&driver, 10, 2, RW, 0);
		driver_map(&driver, 12, 2, PROT_READ, 0);
		driver_map(&driver, 20, 6, RW, 0);
		driver_call(&driver, CALL_MREMAP, cases[i].result, cases[i].source * PAGE, cases[i].old_pages * PAGE,
			    cases[i].new_pages * PAGE, MREMAP_MAYMOVE | MREMAP_FIXED, 21 * PAGE, 0);
		ck_assert_msg(!strcmp(driver_show(&driver), cases[i].map), "case %zu: %s", i, driver_show(&driver));
	}
}
END_TEST

/* A sealed source or target is refused at once; a sealed tail, since 6.12, after making room. */
START_TEST(failed_moves_of_older_kernels_and_seals)
{
	static const struct {
		const char *release;
		uint64_t sealed;
		bool cleared;
	} cases[] = {{"6.11.10-amd64", 10, false}, {"6.11.10-amd64", 13, false}, {"6.12.0", 10, false},
		     {"6.12.0", 13, true},	   {"6.12", 20, false},		 {"6.16.12", 13, true},
		     {"6.17.1", 13, true}};

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		driver_deinit(&driver);
		driver_init_on(&driver, cases[i].release);
		driver_map(&driver, 10, 4, RW, 0);
		driver_map(&driver, 20, 2, RW, 0);
		driver_call(&driver, CALL_MSEAL, 0, cases[i].sealed * PAGE, PAGE, 0, 0, 0, 0);
		driver_call(&driver, CALL_MREMAP, -EPERM, 10 * PAGE, 4 * PAGE, PAGE, MREMAP_MAYMOVE | MREMAP_FIXED,
			    20 * PAGE, 0);
		ck_assert_msg(!space_find(driver.space, 20 * PAGE) == cases[i].cleared, "case %zu", i);
		for (uint64_t page = 10; page < 14; page++)
			ck_assert_ptr_nonnull(space_find(driver.space, page * PAGE));
		ck_assert_ptr_nonnull(space_find(driver.space, 21 * PAGE));
	}
}
END_TEST

START_TEST(brk_grows_and_shrinks)
{
	driver_call(&driver, CALL_BRK, 10 * PAGE + 8, 0, 0, 0, 0, 0, 0);
	driver_call(&driver, CALL_BRK, 14 * PAGE - 8, 14 * PAGE - 8, 0, 0, 0, 0, 0);
	driver_call(&driver, CALL_BRK, 16 * PAGE, 16 * PAGE, 0, 0, 0, 0, 0);
	ck_assert_str_eq(driver_show(&driver), "11-14 rw #4, 14-16 rw #5");
	ck_assert(space_find(driver.space, 12 * PAGE)->attributes.heap);
	driver_call(&driver, CALL_BRK, 16 * PAGE, 1 << 30, 0, 0, 0, 0, 0);
	driver_call(&driver, CALL_BRK, 12 * PAGE, 12 * PAGE, 0, 0, 0, 0, 0);
	ck_assert_str_eq(driver_show(&driver), "11-12 rw #4");
}
END_TEST

START_TEST(hugetlb_lengths_round_to_huge_pages)
{
	driver_map(&driver, 512, 1, RW, MAP_HUGETLB);
	driver_map(&driver, 2048, 1, RW, MAP_HUGETLB | 16 << 26);
	ck_assert_str_eq(driver_show(&driver), "512-1024 rw!+0 #3, 2048-2064 rw!+0 #4");
}
END_TEST

START_TEST(mremap_rounds_to_the_size_of_the_huge_pages)
{
	const uint64_t gigabyte = (1ULL << 30) / PAGE;

	driver_map(&driver, gigabyte, 1, RW, MAP_HUGETLB | 30 << 26);
	driver_map(&driver, 4 * gigabyte, 1, RW, MAP_HUGETLB);
	driver_remap(&driver, gigabyte, 1, 1, MREMAP_MAYMOVE | MREMAP_FIXED, 8 * gigabyte);
	driver_remap(&driver, 4 * gigabyte, 1, 1, MREMAP_MAYMOVE | MREMAP_FIXED, 12 * gigabyte);
	ck_assert_ptr_null(space_next(driver.space, 12 * gigabyte * PAGE + (2 << 20)));
	ck_assert_uint_eq(space_next(driver.space, 0)->start, 8 * gigabyte * PAGE);
	ck_assert_uint_eq(space_next(driver.space, 0)->end, 9 * gigabyte * PAGE);
	ck_assert_uint_eq(space_find(driver.space, 12 * gigabyte * PAGE)->end, 12 * gigabyte * PAGE + (2 << 20));
}
END_TEST

static struct space_attributes segment(uint64_t file_page)
{
	return (struct space_attributes){.protection = RW,
					 .shared = true,
					 .shm = true,
					 .device_minor = 1,
					 .inode = 6,
					 .file_offset = file_page * PAGE};
}

/* io_setup by the driver's thread. */
static void make_ring(uint64_t page, uint64_t pages, uint64_t inode)
{
	const struct space_mmap2 ring = {
	    .start = page * PAGE,
	    .end = (page + pages) * PAGE,
	    .attributes = {.protection = RW, .shared = true, .ring = true, .device_minor = 19, .inode = inode}};
	bool made;

	ck_assert_ptr_null(space_mmap2_ring(driver.space, &ring, driver.thread, driver.now_ns += 1000, &made));
	ck_assert(made);
}

static void destroy_ring(uint64_t page)
{
	driver_call(&driver, CALL_IO_DESTROY, 0, page * PAGE, 0, 0, 0, 0, 0);
}

START_TEST(shmat_takes_its_size_from_the_mmap2)
{
	driver_mmap2(&driver, 10, 5, segment(0));
	driver_call(&driver, CALL_SHMAT, 10 * PAGE, 1, 0, 0, 0, 0, 0);
	ck_assert_str_eq(driver_show(&driver), "10-15 rws+0 #3");
	driver_call(&driver, CALL_SHMDT, 0, 10 * PAGE, 0, 0, 0, 0, 0);
	ck_assert_str_eq(driver_show(&driver), "");
}
END_TEST

START_TEST(shm_remap_replaces)
{
	driver_map(&driver, 8, 10, RW, 0);
	driver_mmap2(&driver, 10, 5, segment(0));
	driver_call(&driver, CALL_SHMAT, 10 * PAGE, 1, 10 * PAGE, SHM_REMAP, 0, 0, 0);
	ck_assert_str_eq(driver_show(&driver), "8-10 rw #3, 10-15 rws+0 #4, 15-18 rw #3");
}
END_TEST

START_TEST(shmdt_leaves_moved_pieces)
{
	driver_mmap2(&driver, 10, 5, segment(0));
	driver_call(&driver, CALL_SHMAT, 10 * PAGE, 1, 0, 0, 0, 0, 0);
	driver_remap(&driver, 12, 1, 1, MREMAP_MAYMOVE, 40);
	driver_call(&driver, CALL_SHMDT, 0, 10 * PAGE, 0, 0, 0, 0, 0);
	ck_assert_str_eq(driver_show(&driver), "40-41 rws+2 #3");
	driver_call(&driver, CALL_SHMDT, 0, 38 * PAGE, 0, 0, 0, 0, 0);
	ck_assert_str_eq(driver_show(&driver), "");
}
END_TEST

static void attach_segment(uint64_t page, uint64_t pages)
{
	driver_mmap2(&driver, page, pages, segment(0));
	driver_call(&driver, CALL_SHMAT, (int64_t)(page * PAGE), 1, page * PAGE, 0, 0, 0, 0);
}

/* Another attachment of a piece of the same segment, which was moved to where it fits. */
START_TEST(shmdt_detaches_one_attachment_only)
{
	attach_segment(10, 5);
	attach_segment(30, 5);
	driver_unmap(&driver, 12, 2);
	driver_remap(&driver, 32, 1, 1, MREMAP_MAYMOVE | MREMAP_FIXED, 12);
	driver_call(&driver, CALL_SHMDT, 0, 10 * PAGE, 0, 0, 0, 0, 0);
	ck_assert_str_eq(driver_show(&driver), "12-13 rws+2 #4, 30-32 rws+0 #4, 33-35 rws+3 #4");
	/* A mapping that extends beyond the segment's end ends the search. */
	attach_segment(50, 5);
	driver_map(&driver, 53, 3, PROT_READ, MAP_FIXED);
	driver_map(&driver, 52, 1, PROT_READ, MAP_FIXED);
	driver_call(&driver, CALL_SHMDT, 0, 50 * PAGE, 0, 0, 0, 0, 0);
	ck_assert_str_eq(driver_show(&driver),
			 "12-13 rws+2 #4, 30-32 rws+0 #4, 33-35 rws+3 #4, 52-53 r #10, 53-56 r #9");
}
END_TEST

START_TEST(shmdt_leaves_growth_beyond_the_segment)
{
	attach_segment(10, 5);
	driver_remap(&driver, 10, 5, 11, MREMAP_MAYMOVE, 10);
	driver_map(&driver, 11, 8, PROT_READ, MAP_FIXED);
	driver_call(&driver, CALL_SHMDT, 0, 10 * PAGE, 0, 0, 0, 0, 0);
	ck_assert_str_eq(driver_show(&driver), "11-19 r #5, 19-21 rws+9 #4");
	/* But the first that fits is detached wherever it ends. */
	driver_call(&driver, CALL_SHMDT, 0, 10 * PAGE, 0, 0, 0, 0, 0);
	ck_assert_str_eq(driver_show(&driver), "11-19 r #5");
}
END_TEST

/* Shared memory of the parent, in its child: every allocation is ALLOCATION_BEFORE. */
START_TEST(shmdt_leaves_other_shared_memory)
{
	struct space *child;
	const struct space_call detach = {
	    .kind = CALL_SHMDT, .arguments = {8 * PAGE}, .time_ns = 1, .thread = 7, .allocation = ALLOCATION_FIRST};

	attach_segment(10, 5);
	driver_map_file(&driver, 8, 2, RW, 0, MAP_SHARED);
	ck_assert_ptr_null(space_fork(driver.space, &child));
	ck_assert_ptr_null(space_apply(child, &detach));
	ck_assert_ptr_nonnull(space_find(child, 8 * PAGE));
	ck_assert_ptr_nonnull(space_find(child, 10 * PAGE));
	space_destroy(child);
}
END_TEST

START_TEST(shmdt_of_sealed_pages_leaves_them)
{
	attach_segment(10, 5);
	driver_call(&driver, CALL_MSEAL, 0, 12 * PAGE, PAGE, 0, 0, 0, 0);
	driver_call(&driver, CALL_SHMDT, 0, 10 * PAGE, 0, 0, 0, 0, 0);
	ck_assert_str_eq(driver_show(&driver), "12-13 rws+2 #3");
}
END_TEST

START_TEST(remap_file_pages_changes_the_offset)
{
	driver_map_file(&driver, 10, 4, RW, 0, MAP_SHARED);
	driver_call(&driver, CALL_REMAP_FILE_PAGES, 0, 11 * PAGE, 2 * PAGE, 0, 9, 0, 0);
	ck_assert_str_eq(driver_show(&driver), "10-11 rws+0 #3, 11-13 rws+9 #3, 13-14 rws+3 #3");
}
END_TEST

START_TEST(remap_file_pages_forgets_dontfork)
{
	struct space *copy;

	driver_map_file(&driver, 10, 4, RW, 0, MAP_SHARED);
	driver_call(&driver, CALL_MADVISE, 0, 10 * PAGE, 4 * PAGE, MADV_DONTFORK, 0, 0, 0);
	driver_call(&driver, CALL_REMAP_FILE_PAGES, 0, 11 * PAGE, 2 * PAGE, 0, 1, 0, 0);
	ck_assert_ptr_null(space_fork(driver.space, &copy));
	ck_assert_ptr_null(space_find(copy, 10 * PAGE));
	ck_assert_ptr_nonnull(space_find(copy, 11 * PAGE));
	ck_assert_ptr_nonnull(space_find(copy, 12 * PAGE));
	ck_assert_ptr_null(space_find(copy, 13 * PAGE));
	space_destroy(copy);
}
END_TEST

START_TEST(io_destroy_unmaps_the_ring)
{
	make_ring(10, 2, 6);
	ck_assert_str_eq(driver_show(&driver), "10-12 rws+0 k");
	destroy_ring(10);
	ck_assert_str_eq(driver_show(&driver), "");
}
END_TEST

/* Newer kernels do not move a part of a ring, and have unmapped its target by then; a child does not have it. */
START_TEST(part_of_a_ring_cannot_be_moved)
{
	static const struct {
		const char *release, *map;
	} cases[] = {{"6.18.44", "10-12 rws+0 k, 40-44 rw #3"}, {"7.2.13", "10-11 rws+0 k, 40-41 rw #3, 42-43 rw #3"}};
	struct space *copy;

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		driver_deinit(&driver);
		driver_init_on(&driver, cases[i].release);
		make_ring(10, 2, 6);
		driver_map(&driver, 40, 4, RW, 0);
		driver_call(&driver, CALL_MREMAP, -EINVAL, 11 * PAGE, PAGE, PAGE, MREMAP_MAYMOVE | MREMAP_FIXED,
			    41 * PAGE, 0);
		driver_call(&driver, CALL_MREMAP, -EINVAL, 10 * PAGE, 2 * PAGE, PAGE, MREMAP_MAYMOVE | MREMAP_FIXED,
			    43 * PAGE, 0);
		ck_assert_msg(!strcmp(driver_show(&driver), cases[i].map), "case %zu: %s", i, driver_show(&driver));
		ck_assert_ptr_null(space_fork(driver.space, &copy));
		ck_assert_int_eq(space_find(copy, 10 * PAGE) != NULL, i == 0);
		ck_assert_ptr_nonnull(space_find(copy, 40 * PAGE));
		space_destroy(copy);
	}
}
END_TEST

/* The system had too many contexts: its ring existed for a moment, and the next one is another's. */
START_TEST(io_setup_that_fails_has_unmapped_its_ring)
{
	make_ring(10, 2, 6);
	driver_call(&driver, CALL_IO_SETUP, 0, 100, 0, 0, 0, 0, 0);
	make_ring(8, 2, 7);
	driver.thread = 2;
	make_ring(8, 1, 8);
	driver.thread = 1;
	driver_call(&driver, CALL_IO_SETUP, -EAGAIN, 100, 0, 0, 0, 0, 0);
	ck_assert_str_eq(driver_show(&driver), "8-9 rws+0 k, 10-12 rws+0 #3");
	/* Refused before any ring was created. */
	driver_call(&driver, CALL_IO_SETUP, -EINVAL, 0, 0, 0, 0, 0, 0);
	ck_assert_str_eq(driver_show(&driver), "8-9 rws+0 k, 10-12 rws+0 #3");
	ck_assert_uint_eq(space_counts(driver.space).ambiguous, 0);
}
END_TEST

START_TEST(io_destroy_unmaps_a_mapping_at_the_ring_address)
{
	make_ring(10, 3, 6);
	driver_map(&driver, 11, 4, PROT_READ, MAP_FIXED);
	destroy_ring(10);
	ck_assert_str_eq(driver_show(&driver), "13-15 r #3");
}
END_TEST

/* The program has unmapped a ring, and another context took its address: the kernel reads there which one it is. */
START_TEST(io_destroy_follows_the_ring_at_its_address)
{
	make_ring(10, 2, 6);
	driver_unmap(&driver, 10, 2);
	make_ring(10, 3, 7);
	driver_map(&driver, 12, 4, PROT_READ, MAP_FIXED);
	destroy_ring(10);
	ck_assert_str_eq(driver_show(&driver), "13-16 r #4");
	ck_assert_uint_eq(space_counts(driver.space).ambiguous, 0);
	make_ring(10, 1, 8);
	driver_map(&driver, 10, 1, RW, MAP_FIXED);
	destroy_ring(10);
	ck_assert_uint_eq(space_counts(driver.space).ambiguous, 1);
}
END_TEST

START_TEST(io_destroy_of_a_ring_with_sealed_pages_unmaps_nothing)
{
	make_ring(10, 3, 6);
	driver_call(&driver, CALL_MSEAL, 0, 11 * PAGE, PAGE, 0, 0, 0, 0);
	destroy_ring(10);
	ck_assert_str_eq(driver_show(&driver), "10-11 rws+0 k, 11-12 rws+1 k, 12-13 rws+2 k");
}
END_TEST

/* Two contexts of the same thread, and an mprotect that changes nothing immediately after the second io_setup. */
START_TEST(ring_exists_whatever_the_next_call)
{
	struct space_mmap2 again = {.start = 10 * PAGE, .end = 13 * PAGE};
	bool made;

	make_ring(10, 3, 6);
	driver_protect(&driver, 10, 3, RW);
	ck_assert_str_eq(driver_show(&driver), "10-13 rws+0 k");
	/* The record of an mprotect of a ring does not belong to io_setup. */
	again.attributes = space_find(driver.space, 10 * PAGE)->attributes;
	ck_assert_ptr_null(space_mmap2_ring(driver.space, &again, 1, driver.now_ns, &made));
	ck_assert(!made);
}
END_TEST

START_TEST(mmap2_without_a_call_adds_a_mapping)
{
	driver_map(&driver, 10, 2, RW, 0);
	driver_mmap2(&driver, 8, 6, (struct space_attributes){.protection = PROT_READ});
	driver_unmap(&driver, 50, 1);
	ck_assert_str_eq(driver_show(&driver), "8-10 r k, 10-12 rw #3, 12-14 r k");
	ck_assert_uint_eq(space_counts(driver.space).kernel_bytes, 4 * PAGE);
}
END_TEST

START_TEST(impossible_arguments_change_nothing)
{
	driver_map(&driver, 10, 2, RW, 0);
	driver_call(&driver, CALL_MUNMAP, 0, 10 * PAGE, UINT64_MAX, 0, 0, 0, 0);
	driver_call(&driver, CALL_MUNMAP, 0, UINT64_MAX - PAGE + 1, PAGE, 0, 0, 0, 0);
	driver_call(&driver, CALL_MPROTECT, 0, 10 * PAGE, 0, 0, 0, 0, 0);
	driver_call(&driver, CALL_MREMAP, 1 << 20, UINT64_MAX - PAGE + 1, UINT64_MAX, UINT64_MAX, 1, 0, 0);
	ck_assert_str_eq(driver_show(&driver), "10-12 rw #3");
}
END_TEST

START_TEST(code_generation_changes_with_code)
{
	uint64_t generation = space_code_generation(driver.space);

	driver_map_file(&driver, 10, 2, PROT_READ | PROT_EXEC, 0, 0);
	ck_assert_uint_ne(space_code_generation(driver.space), generation);
	driver_map_file(&driver, 20, 2, PROT_READ, 0, 0);
	generation = space_code_generation(driver.space);
	driver_unmap(&driver, 20, 2);
	ck_assert_uint_eq(space_code_generation(driver.space), generation);
	driver_unmap(&driver, 10, 1);
	ck_assert_uint_ne(space_code_generation(driver.space), generation);
}
END_TEST

START_TEST(fork_copies_with_other_allocations)
{
	struct space *copy;
	struct observed told = driver.observed;

	driver_map(&driver, 10, 2, RW, 0);
	driver_map(&driver, 12, 2, RW, 0);
	ck_assert_ptr_null(space_fork(driver.space, &copy));
	ck_assert_uint_eq(space_counts(copy).intervals, 1);
	ck_assert_uint_eq(space_counts(copy).before_bytes, 4 * PAGE);
	ck_assert_uint_eq(space_counts(copy).mapped_bytes, 0);
	space_destroy(copy);
	ck_assert_uint_eq(driver.observed.released[3], told.released[3]);
	ck_assert_str_eq(driver_show(&driver), "10-12 rw #3, 12-14 rw #4");
}
END_TEST

START_TEST(exec_empties_the_space)
{
	driver_map(&driver, 10, 2, RW, 0);
	space_exec(driver.space);
	ck_assert_str_eq(driver_show(&driver), "");
	ck_assert_uint_eq(driver.observed.released_by_none, 2 * PAGE);
	ck_assert_uint_eq(space_counts(driver.space).mapped_bytes, 0);
}
END_TEST

START_TEST(exit_releases_everything)
{
	driver_map(&driver, 10, 2, RW, 0);
	space_end(driver.space, driver.now_ns + 1000);
	space_release(driver.space);
	ck_assert_str_eq(driver_show(&driver), "");
	ck_assert_uint_eq(driver.observed.released_by_none, 2 * PAGE);
	ck_assert_uint_eq(space_counts(driver.space).mapped_bytes, 0);
}
END_TEST

START_TEST(part_of_a_mapping_gets_its_own_allocation)
{
	driver_map(&driver, 10, 10, RW, 0);
	driver_protect(&driver, 12, 2, PROT_READ | PROT_EXEC);
	ck_assert_ptr_null(space_set_allocation(driver.space, 12 * PAGE, 14 * PAGE, 20));
	driver_protect(&driver, 14, 1, PROT_READ | PROT_EXEC);
	ck_assert_str_eq(driver_show(&driver), "10-12 rw #3, 12-14 rx #20, 14-15 rx #3, 15-20 rw #3");
	/* Equal neighbours are one again. */
	ck_assert_ptr_null(space_set_allocation(driver.space, 14 * PAGE, 15 * PAGE, 20));
	ck_assert_str_eq(driver_show(&driver), "10-12 rw #3, 12-15 rx #20, 15-20 rw #3");
	driver_unmap(&driver, 10, 4);
	ck_assert_uint_eq(driver.observed.released[3], 2 * PAGE);
	ck_assert_uint_eq(driver.observed.released[20], 2 * PAGE);
	driver.observed.allocated[3] -= 3 * PAGE;
	driver.observed.allocated[20] += 3 * PAGE;
}
END_TEST

START_TEST(commit_belongs_to_the_call_that_made_it_accessible)
{
	driver_map(&driver, 10, 4, RW, 0);
	driver_map(&driver, 20, 4, PROT_NONE, 0);
	ck_assert_uint_eq(space_find(driver.space, 10 * PAGE)->commit, COMMIT_WITH_ALLOCATION);
	ck_assert_uint_eq(space_find(driver.space, 20 * PAGE)->commit, COMMIT_NONE);
	driver_protect(&driver, 10, 14, PROT_READ);
	ck_assert_str_eq(driver_show(&driver), "10-14 r #3, 20-24 r #4/#5");
	driver_protect(&driver, 21, 1, RW);
	ck_assert_str_eq(driver_show(&driver), "10-14 r #3, 20-21 r #4/#5, 21-22 rw #4/#5, 22-24 r #4/#5");
	driver_protect(&driver, 10, 2, PROT_NONE);
	driver_protect(&driver, 10, 4, RW);
	ck_assert_str_eq(driver_show(&driver),
			 "10-12 rw #3/#8, 12-14 rw #3, 20-21 r #4/#5, 21-22 rw #4/#5, 22-24 r #4/#5");
}
END_TEST

START_TEST(commit_moves_with_memory_and_growth_has_its_own)
{
	driver_map(&driver, 10, 4, PROT_NONE, 0);
	driver_protect(&driver, 10, 4, RW);
	driver_remap(&driver, 10, 4, 6, MREMAP_MAYMOVE, 30);
	ck_assert_str_eq(driver_show(&driver), "30-34 rw #3/#4, 34-36 rw #5");
	driver_map(&driver, 50, 2, PROT_NONE, 0);
	driver_remap(&driver, 50, 2, 4, MREMAP_MAYMOVE, 60);
	driver_remap(&driver, 30, 2, 2, MREMAP_MAYMOVE | MREMAP_DONTUNMAP, 70);
	ck_assert_str_eq(driver_show(&driver), "30-34 rw #3/#4, 34-36 rw #5, 60-62 - #6, 62-64 - #7, 70-72 rw #8");
}
END_TEST

START_TEST(discarded_bytes_stay_mapped)
{
	struct space *copy;

	driver_map(&driver, 10, 8, RW, 0);
	driver_map(&driver, 20, 4, PROT_NONE, 0);
	driver_call(&driver, CALL_MADVISE, 0, 12 * PAGE, 2 * PAGE, MADV_DONTNEED, 0, 0, 0);
	ck_assert_uint_eq(space_counts(driver.space).given_back_bytes, 2 * PAGE);
	driver_call(&driver, CALL_MADVISE, 0, 12 * PAGE, PAGE - 1, MADV_FREE, 0, 0, 0);
	ck_assert_uint_eq(space_counts(driver.space).given_back_bytes, 3 * PAGE);
	/* Across a hole: applies to the mapped parts. */
	driver_call(&driver, CALL_MADVISE, -ENOMEM, 16 * PAGE, 5 * PAGE, MADV_PAGEOUT, 0, 0, 0);
	ck_assert_uint_eq(space_counts(driver.space).given_back_bytes, 6 * PAGE);
	driver_call(&driver, CALL_MADVISE, 0, 10 * PAGE, PAGE, MADV_REMOVE, 0, 0, 0);
	ck_assert_uint_eq(space_counts(driver.space).given_back_bytes, 7 * PAGE);
	driver_call(&driver, CALL_MADVISE, -EINVAL, 10 * PAGE, PAGE, MADV_FREE, 0, 0, 0);
	driver_call(&driver, CALL_MADVISE, 0, 10 * PAGE + 1, PAGE, MADV_FREE, 0, 0, 0);
	driver_call(&driver, CALL_MADVISE, 0, 10 * PAGE, PAGE, MADV_WILLNEED, 0, 0, 0);
	ck_assert_uint_eq(space_counts(driver.space).given_back_bytes, 7 * PAGE);
	/* A descriptor and an array: which memory of which process is unknown. */
	driver_call(&driver, CALL_PROCESS_MADVISE, PAGE, 10 * PAGE, 10 * PAGE, 1, MADV_PAGEOUT, 0, 0);
	ck_assert_uint_eq(space_counts(driver.space).given_back_bytes, 7 * PAGE);
	ck_assert_uint_eq(space_counts(driver.space).mapped_bytes, 12 * PAGE);
	ck_assert_ptr_null(space_fork(driver.space, &copy));
	ck_assert_uint_eq(space_counts(copy).given_back_bytes, 0);
	space_destroy(copy);
}
END_TEST

START_TEST(dontfork_is_not_copied)
{
	struct space *copy;

	driver_map(&driver, 10, 8, RW, 0);
	driver_map(&driver, 20, 4, PROT_NONE, 0);
	driver_protect(&driver, 21, 1, RW);
	driver_call(&driver, CALL_MADVISE, 0, 12 * PAGE, 2 * PAGE, MADV_DONTFORK, 0, 0, 0);
	/* Across a hole: applies to the mapped parts. */
	driver_call(&driver, CALL_MADVISE, -ENOMEM, 17 * PAGE, 4 * PAGE, MADV_DONTFORK, 0, 0, 0);
	driver_call(&driver, CALL_MADVISE, -EINVAL, 10 * PAGE, PAGE, MADV_DONTFORK, 0, 0, 0);
	driver_call(&driver, CALL_MADVISE, 0, 13 * PAGE, PAGE, MADV_DOFORK, 0, 0, 0);
	driver_call(&driver, CALL_MADVISE, 0, 10 * PAGE, PAGE, MADV_DONTNEED, 0, 0, 0);
	ck_assert_uint_eq(space_counts(driver.space).peaking_bytes, 9 * PAGE);
	ck_assert_ptr_null(space_fork(driver.space, &copy));
	ck_assert_uint_eq(space_counts(copy).before_bytes, 9 * PAGE);
	ck_assert_ptr_null(space_find(copy, 12 * PAGE));
	ck_assert_ptr_nonnull(space_find(copy, 13 * PAGE));
	ck_assert_ptr_null(space_find(copy, 17 * PAGE));
	ck_assert_ptr_null(space_find(copy, 20 * PAGE));
	ck_assert_uint_eq(space_find(copy, 10 * PAGE)->commit, COMMIT_WITH_ALLOCATION);
	ck_assert_uint_eq(space_find(copy, 21 * PAGE)->commit, COMMIT_WITH_ALLOCATION);
	ck_assert_uint_eq(space_find(copy, 22 * PAGE)->commit, COMMIT_NONE);
	ck_assert(space_valid(copy, &(const char *){NULL}));
	space_destroy(copy);
}
END_TEST

START_TEST(refused_fixed_mapping_of_a_file_that_fails_late_leaves_a_hole)
{
	driver_map(&driver, 10, 4, RW, 0);
	driver_call(&driver, CALL_MMAP, -EIO, 11 * PAGE, PAGE, PROT_READ, MAP_PRIVATE | MAP_FIXED, 3, 0);
	driver_call(&driver, CALL_MMAP, -EACCES, 12 * PAGE, PAGE, PROT_READ, MAP_PRIVATE | MAP_FIXED, 3, 0);
	ck_assert_str_eq(driver_show(&driver), "10-11 rw #3, 12-14 rw #3");
}
END_TEST

START_TEST(growth_before_a_munmap_of_the_same_range_is_applied_first)
{
	driver_map(&driver, 20, 2, RW, MAP_GROWSDOWN);
	driver_mmap2(&driver, 17, 5, (struct space_attributes){.protection = RW});
	driver_unmap(&driver, 18, 3);
	ck_assert_str_eq(driver_show(&driver), "17-18 rw k, 21-22 rw #3");
}
END_TEST

START_TEST(new_ring_at_the_address_of_a_destroyed_one_stays)
{
	make_ring(10, 3, 6);
	driver.thread = 2;
	make_ring(10, 4, 7);
	ck_assert_uint_eq(driver.observed.released[ALLOCATION_KERNEL], 0);
	driver.thread = 1;
	destroy_ring(10);
	ck_assert_str_eq(driver_show(&driver), "10-14 rws+0 k");
	ck_assert_uint_eq(space_find(driver.space, 10 * PAGE)->attributes.inode, 7);
	ck_assert_uint_eq(driver.observed.released[ALLOCATION_KERNEL], 3 * PAGE);
	driver.thread = 2;
	destroy_ring(10);
	ck_assert_str_eq(driver_show(&driver), "");
	ck_assert_uint_eq(space_counts(driver.space).ambiguous, 0);
}
END_TEST

/* io_destroy waits for all CPUs: the later ring may be gone, and its call return, before the earlier one's does. */
START_TEST(later_of_two_rings_at_one_address_destroyed_first)
{
	make_ring(10, 4, 6);
	driver.thread = 2;
	make_ring(10, 2, 7);
	destroy_ring(10);
	ck_assert_str_eq(driver_show(&driver), "12-14 rws+2 k");
	driver.thread = 1;
	destroy_ring(10);
	ck_assert_str_eq(driver_show(&driver), "");
	ck_assert_uint_eq(space_counts(driver.space).ambiguous, 0);
}
END_TEST

START_TEST(new_ring_over_a_destroyed_one_makes_only_that_pending)
{
	uint32_t other;

	make_ring(10, 4, 6);
	other = driver_map(&driver, 14, 4, PROT_READ, 0);
	driver.thread = 2;
	make_ring(12, 2, 7);
	ck_assert_str_eq(driver_show(&driver), "10-12 rws+0 k, 12-14 rws+0 k, 14-18 r #3");
	driver.thread = 1;
	destroy_ring(10);
	ck_assert_str_eq(driver_show(&driver), "12-14 rws+0 k, 14-18 r #3");
	ck_assert_uint_eq(driver.observed.released[other], 0);
}
END_TEST

/* Another thread maps the range before the call returns, even at the address of the ring. */
START_TEST(mapping_at_the_address_of_a_destroyed_ring_stays)
{
	make_ring(10, 4, 6);
	driver.thread = 2;
	driver_map(&driver, 10, 6, RW, 0);
	driver.thread = 1;
	destroy_ring(10);
	ck_assert_str_eq(driver_show(&driver), "10-16 rw #3");
}
END_TEST

START_TEST(undecidable_order_is_ambiguous)
{
	driver_call(&driver, CALL_SHMAT, 10 * PAGE, 1, 0, 0, 0, 0, 0);
	ck_assert_uint_eq(space_counts(driver.space).ambiguous, 1);
	driver_map(&driver, 20, 2, RW, 0);
	driver_map(&driver, 24, 2, RW, 0);
	/* A failed move of both may have moved the first. */
	driver_call(&driver, CALL_MREMAP, -EFAULT, 20 * PAGE, 6 * PAGE, 6 * PAGE, MREMAP_MAYMOVE | MREMAP_FIXED,
		    40 * PAGE, 0);
	ck_assert_uint_eq(space_counts(driver.space).ambiguous, 2);
	driver_call(&driver, CALL_MREMAP, -EFAULT, 20 * PAGE, 2 * PAGE, 2 * PAGE, MREMAP_MAYMOVE | MREMAP_FIXED,
		    40 * PAGE, 0);
	ck_assert_uint_eq(space_counts(driver.space).ambiguous, 2);
	ck_assert_str_eq(driver_show(&driver), "20-22 rw #4, 24-26 rw #5");
}
END_TEST

Suite *test_suite(void)
{
	Suite *suite = suite_create("space");
	TCase *calls = add_tcase(suite, "calls");

	tcase_add_checked_fixture(calls, setup, teardown);
	tcase_add_tests(
	    calls, mmap_allocates_and_munmap_releases, munmap_of_head_middle_and_tail_splits_the_mapping,
	    munmap_crosses_mappings_and_holes, fixed_mapping_replaces, failed_calls_change_nothing,
	    refused_fixed_file_mapping_leaves_a_hole, file_offsets_follow_splits_and_merges,
	    mmap2_after_merging_names_the_file_of_the_range, read_implies_exec_is_detected, exit_releases_everything,
	    part_of_a_mapping_gets_its_own_allocation, mprotect_moves_bytes_between_reserved_and_committed,
	    mprotect_that_fails_at_a_hole_keeps_what_precedes_it,
	    mprotect_that_fails_halfway_keeps_what_mmap2_records_show,
	    mprotect_growsdown_reaches_the_start_of_the_mapping, mremap_grows_shrinks_and_moves,
	    mremap_fixed_replaces_its_target, mremap_fixed_moves_several_and_keeps_mappings_under_gaps,
	    mremap_dontunmap_keeps_the_source, mremap_of_length_0_duplicates,
	    mremap_refused_by_the_limit_has_unmapped_its_target, mremap_that_duplicates_over_its_source_leaves_a_hole,
	    brk_grows_and_shrinks, hugetlb_lengths_round_to_huge_pages, mremap_rounds_to_the_size_of_the_huge_pages,
	    failed_moves_of_older_kernels, failed_moves_of_older_kernels_and_seals, shmat_takes_its_size_from_the_mmap2,
	    shm_remap_replaces, shmdt_leaves_moved_pieces, remap_file_pages_changes_the_offset,
	    remap_file_pages_forgets_dontfork, io_destroy_unmaps_the_ring, part_of_a_ring_cannot_be_moved,
	    io_destroy_unmaps_a_mapping_at_the_ring_address, mmap2_without_a_call_adds_a_mapping,
	    impossible_arguments_change_nothing, code_generation_changes_with_code, fork_copies_with_other_allocations,
	    exec_empties_the_space, commit_belongs_to_the_call_that_made_it_accessible,
	    commit_moves_with_memory_and_growth_has_its_own, discarded_bytes_stay_mapped, dontfork_is_not_copied,
	    refused_fixed_mapping_of_a_file_that_fails_late_leaves_a_hole,
	    growth_before_a_munmap_of_the_same_range_is_applied_first, new_ring_at_the_address_of_a_destroyed_one_stays,
	    undecidable_order_is_ambiguous, io_destroy_follows_the_ring_at_its_address,
	    io_setup_that_fails_has_unmapped_its_ring, io_destroy_of_a_ring_with_sealed_pages_unmaps_nothing,
	    ring_exists_whatever_the_next_call, later_of_two_rings_at_one_address_destroyed_first,
	    new_ring_over_a_destroyed_one_makes_only_that_pending, mapping_at_the_address_of_a_destroyed_ring_stays,
	    shmdt_detaches_one_attachment_only, shmdt_leaves_growth_beyond_the_segment,
	    shmdt_leaves_other_shared_memory, shmdt_of_sealed_pages_leaves_them);
	return suite;
}
