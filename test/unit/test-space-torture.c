// SPDX-License-Identifier: LGPL-2.1-or-later
/* Bugs found by random calls compared with the kernel's maps (test/torture), each by name. */
#include <check.h>
#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "model/space/space.h"
#include "support/suite.h"
#include "support/space-valid.h"

#define PAGE 4096ULL
#define BASE 0x100000000000ULL

static struct space *space;

static void setup(void)
{
	ck_assert_ptr_null(space_create(&(struct space_options){.page_bytes = PAGE}, &space));
	space_exec(space);
}

static void teardown(void)
{
	const char *why = "";

	ck_assert_msg(space_valid(space, &why), "%s", why);
	space_destroy(space);
}

static void map_anonymous(uint64_t page, uint64_t pages)
{
	const struct space_call call = {.kind = CALL_MMAP,
					.arguments = {BASE + page * PAGE, pages * PAGE, PROT_READ | PROT_WRITE,
						      MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, UINT64_MAX, 0},
					.result = (int64_t)(BASE + page * PAGE),
					.time_ns = 1,
					.allocation = ALLOCATION_FIRST,
					.commit = ALLOCATION_FIRST};

	ck_assert_ptr_null(space_apply(space, &call));
}

static void expect_mapped(uint64_t page, bool mapped)
{
	ck_assert_int_eq(space_find(space, BASE + page * PAGE) != NULL, mapped);
}

/* A file of /proc refuses with EIO after the kernel has made room. */
START_TEST(test_map_refused_with_eio_leaves_a_hole)
{
	struct space_call call = {.kind = CALL_MMAP,
				  .arguments = {BASE + PAGE, PAGE, PROT_READ, MAP_PRIVATE | MAP_FIXED, 7, 0},
				  .result = -EIO,
				  .time_ns = 2,
				  .allocation = ALLOCATION_FIRST + 1,
				  .commit = ALLOCATION_FIRST + 1};

	map_anonymous(0, 3);
	ck_assert_ptr_null(space_apply(space, &call));
	expect_mapped(0, true);
	expect_mapped(1, false);
	expect_mapped(2, true);
	/* Without a descriptor it is refused earlier. */
	call.result = -EBADF;
	call.arguments[0] = BASE;
	ck_assert_ptr_null(space_apply(space, &call));
	expect_mapped(0, true);
}
END_TEST

static const struct space_mmap2 ring = {
    .start = BASE,
    .end = BASE + 3 * PAGE,
    .attributes = {.protection = PROT_READ | PROT_WRITE, .shared = true, .device_minor = 0x13, .inode = 77}};

/* An aio context's ring, and immediately a munmap of part of it: the rest exists. */
START_TEST(test_unmap_part_of_a_new_ring)
{
	const struct space_call call = {.kind = CALL_MUNMAP,
					.arguments = {BASE + PAGE, PAGE},
					.time_ns = 2,
					.mmap2_records = &ring,
					.mmap2_count = 1};

	ck_assert_ptr_null(space_apply(space, &call));
	expect_mapped(0, true);
	expect_mapped(1, false);
	expect_mapped(2, true);
}
END_TEST

START_TEST(test_failed_move_of_a_new_ring)
{
	const struct space_call call = {.kind = CALL_MREMAP,
					.arguments = {BASE + PAGE, 2 * PAGE, 12 * PAGE, MREMAP_MAYMOVE, 0},
					.result = -EFAULT,
					.time_ns = 2,
					.mmap2_records = &ring,
					.mmap2_count = 1};

	ck_assert_ptr_null(space_apply(space, &call));
	for (uint64_t page = 0; page < 3; page++)
		expect_mapped(page, true);
	expect_mapped(3, false);
}
END_TEST

Suite *test_suite(void)
{
	Suite *suite = suite_create("space-torture");
	TCase *tests = add_tcase(suite, "differences");

	tcase_add_checked_fixture(tests, setup, teardown);
	tcase_add_tests(tests, test_map_refused_with_eio_leaves_a_hole, test_unmap_part_of_a_new_ring,
			test_failed_move_of_a_new_ring);
	return suite;
}
