// SPDX-License-Identifier: LGPL-2.1-or-later
/* The rules of different kernel versions, on any kernel; failed moves of older ones are in test-space.c. */
#include <check.h>
#include <errno.h>
#include <sys/mman.h>

#include "model/space/kernel-rules.h"
#include "support/suite.h"
#include "support/space-calls.h"

#define RW (PROT_READ | PROT_WRITE)

static struct driver driver;

START_TEST(rules_change_with_the_version)
{
	static const struct {
		const char *release;
		bool finds_source_first, sees_sealed_tail_late, moves_several, protects_rings;
		enum shm_merging shm_merging;
	} cases[] = {
	    {"5.10.0-32-amd64", false, false, false, false, SHM_NEVER_MERGES},
	    {"5.16", true, false, false, false, SHM_NEVER_MERGES},
	    {"6.1.0-50-amd64", true, false, false, false, SHM_NEVER_MERGES},
	    {"6.3.13", true, false, false, false, SHM_NEVER_MERGES},
	    {"6.4.0-rc1+", true, false, false, false, SHM_MERGES_INTO_PREVIOUS},
	    {"6.11.10", true, false, false, false, SHM_MERGES_INTO_PREVIOUS},
	    {"6.12.107+deb12-amd64", true, true, false, false, SHM_MERGES_INTO_BOTH},
	    {"6.16.12", true, true, false, false, SHM_MERGES_INTO_BOTH},
	    {"6.17.0", true, true, true, false, SHM_MERGES_INTO_BOTH},
	    {"6.18.44", true, true, true, false, SHM_MERGES_INTO_BOTH},
	    {"7.2.13+deb14-amd64", true, true, true, true, SHM_MERGES_INTO_BOTH},
	    {"10.0", true, true, true, true, SHM_MERGES_INTO_BOTH},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		const struct kernel_rules rules = kernel_rules_of(cases[i].release);

		ck_assert_int_eq(rules.mremap_finds_source_first, cases[i].finds_source_first);
		ck_assert_int_eq(rules.mremap_sees_sealed_tail_late, cases[i].sees_sealed_tail_late);
		ck_assert_int_eq(rules.mremap_moves_several, cases[i].moves_several);
		ck_assert_int_eq(rules.protects_rings, cases[i].protects_rings);
		ck_assert_int_eq(rules.shm_merging, cases[i].shm_merging);
	}
}
END_TEST

START_TEST(unknown_versions_count_as_the_newest_kernel)
{
	static const char *const releases[] = {
	    "", "6", "6.", "6.x", ".1", "v6.1", " 6.1", "-6.1", "+6.1", "6 .1", "99999999999.1", "6.99999999999",
	};

	for (size_t i = 0; i < sizeof(releases) / sizeof(*releases); i++) {
		const struct kernel_rules rules = kernel_rules_of(releases[i]);

		ck_assert_msg(rules.mremap_moves_several && rules.shm_merging == SHM_MERGES_INTO_BOTH, "%s",
			      releases[i]);
	}
	ck_assert(kernel_rules_of("").mremap_moves_several);
	ck_assert(kernel_rules_of("").mremap_sees_sealed_tail_late);
	ck_assert(kernel_rules_of("").mremap_finds_source_first);
	ck_assert_int_eq(kernel_rules_of("").shm_merging, SHM_MERGES_INTO_BOTH);
}
END_TEST

START_TEST(child_of_a_fork_follows_the_same_rules)
{
	struct space *copy;
	struct driver child;

	driver_init_on(&driver, "6.1.0-50-amd64");
	driver_init(&child);
	driver_map(&driver, 10, 2, RW, 0);
	driver_map(&driver, 12, 2, PROT_READ, 0);
	driver_map(&driver, 20, 4, RW, 0);
	ck_assert_ptr_null(space_fork(driver.space, &copy));
	space_destroy(child.space);
	child.space = copy;
	driver_call(&child, CALL_MREMAP, -EFAULT, 10 * PAGE, 4 * PAGE, 4 * PAGE, MREMAP_MAYMOVE | MREMAP_FIXED,
		    20 * PAGE, 0);
	ck_assert_str_eq(driver_show(&child), "10-12 rw b, 12-14 r b");
	space_destroy(child.space);
	driver_deinit(&driver);
}
END_TEST

/* A segment of five pages, grown to eleven; the moved or changed half, once it is back, is detached with the first
 * or not. */
static void attach_and_grow(const char *release)
{
	const struct space_attributes segment = {
	    .protection = RW, .shared = true, .shm = true, .device_minor = 1, .inode = 5};

	driver_init_on(&driver, release);
	driver_mmap2(&driver, 10, 5, segment);
	driver_call(&driver, CALL_SHMAT, 10 * PAGE, 7, 10 * PAGE, 0, 0, 0, 0);
	driver_remap(&driver, 10, 5, 11, MREMAP_MAYMOVE, 10);
}

static void expect_after_detaching(const char *map)
{
	driver_call(&driver, CALL_SHMDT, 0, 10 * PAGE, 0, 0, 0, 0, 0);
	ck_assert_str_eq(driver_show(&driver), map);
	driver_unmap(&driver, 10, 20);
	driver_deinit(&driver);
}

START_TEST(pieces_of_segments_merge_as_the_kernel_allows)
{
	static const struct {
		const char *release, *upper_moved, *lower_moved, *upper_changed, *lower_changed;
	} cases[] = {
	    {"6.1.0-50-amd64", "16-21 rws+6 #4", "15-21 rws+5 #4", "16-20 rws+6 #4, 20-21 rws+10 #4",
	     "14-15 rws+4 #3, 15-21 rws+5 #4"},
	    {"6.6.1", "", "15-21 rws+5 #4", "20-21 rws+10 #4", "14-15 rws+4 #3, 15-21 rws+5 #4"},
	    {"6.12.1", "", "", "20-21 rws+10 #4", "11-15 rws+1 #3, 15-21 rws+5 #4"},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		attach_and_grow(cases[i].release);
		driver_remap(&driver, 16, 5, 5, MREMAP_MAYMOVE | MREMAP_FIXED, 40);
		driver_remap(&driver, 40, 5, 5, MREMAP_MAYMOVE | MREMAP_FIXED, 16);
		expect_after_detaching(cases[i].upper_moved);
		attach_and_grow(cases[i].release);
		driver_remap(&driver, 10, 5, 5, MREMAP_MAYMOVE | MREMAP_FIXED, 40);
		driver_remap(&driver, 40, 5, 5, MREMAP_MAYMOVE | MREMAP_FIXED, 10);
		expect_after_detaching(cases[i].lower_moved);
		/* The changed part is changed back, except for one page at the far end, then that too. */
		attach_and_grow(cases[i].release);
		driver_protect(&driver, 16, 5, PROT_READ);
		driver_protect(&driver, 16, 4, RW);
		driver_protect(&driver, 20, 1, RW);
		expect_after_detaching(cases[i].upper_changed);
		attach_and_grow(cases[i].release);
		driver_protect(&driver, 10, 4, PROT_READ);
		driver_protect(&driver, 11, 3, RW);
		driver_protect(&driver, 10, 1, RW);
		expect_after_detaching(cases[i].lower_changed);
	}
}
END_TEST

Suite *test_suite(void)
{
	Suite *suite = suite_create("kernel rules");
	TCase *rules = add_tcase(suite, "rules");

	tcase_add_tests(rules, rules_change_with_the_version, unknown_versions_count_as_the_newest_kernel,
			child_of_a_fork_follows_the_same_rules, pieces_of_segments_merge_as_the_kernel_allows);
	return suite;
}
