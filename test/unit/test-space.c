// SPDX-License-Identifier: LGPL-2.1-or-later
/* The ordinary life of mappings: mmap, munmap, mprotect, brk, exec, fork. */
#include <check.h>
#include <stdlib.h>
#include <sys/mman.h>

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

START_TEST(mmap_is_born_and_munmap_releases)
{
	driver_map(&driver, 10, 4, RW, 0);
	ck_assert_str_eq(driver_show(&driver), "10-14 rw #3");
	ck_assert_uint_eq(space_counts(driver.space).mapped_bytes, 4 * PAGE);
	driver_unmap(&driver, 10, 4);
	ck_assert_str_eq(driver_show(&driver), "");
	ck_assert_uint_eq(driver.told.released[3], 4 * PAGE);
}
END_TEST

START_TEST(munmap_splits_head_middle_and_tail)
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

int main(void)
{
	Suite *suite = suite_create("space");
	TCase *calls = tcase_create("calls");
	SRunner *runner = srunner_create(suite);
	int failures;

	tcase_add_checked_fixture(calls, setup, teardown);
	tcase_add_test(calls, mmap_is_born_and_munmap_releases);
	tcase_add_test(calls, munmap_splits_head_middle_and_tail);
	tcase_add_test(calls, munmap_crosses_mappings_and_holes);
	suite_add_tcase(suite, calls);
	srunner_run_all(runner, CK_NORMAL);
	failures = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failures ? EXIT_FAILURE : EXIT_SUCCESS;
}
