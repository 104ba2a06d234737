// SPDX-License-Identifier: LGPL-2.1-or-later
/* Which threads have the event set, while TIDs are reused. */
#include <check.h>

#include "capture/perf/attach.h"
#include "support/suite.h"

static struct thread_coverage coverage;

static void teardown(void)
{
	thread_coverage_deinit(&coverage);
	coverage = (struct thread_coverage){0};
}

static void note_allocation(pid_t tid, uint64_t time_ns, bool expected_new)
{
	bool new_thread;

	ck_assert(thread_coverage_note_fork(&coverage, tid, time_ns, &new_thread));
	ck_assert_int_eq(new_thread, expected_new);
}

START_TEST(only_threads_that_had_started_count)
{
	ck_assert(!thread_coverage_has(&coverage, 7, 1));
	ck_assert(thread_coverage_put(&coverage, 7, 100));
	ck_assert(thread_coverage_has(&coverage, 7, 100));
	ck_assert(!thread_coverage_has(&coverage, 7, 101));
	ck_assert(!thread_coverage_has(&coverage, 8, 1));
	/* A late record of an earlier time removes nothing. */
	ck_assert(thread_coverage_put(&coverage, 7, 50));
	ck_assert(thread_coverage_has(&coverage, 7, 100));
}
END_TEST

START_TEST(an_ended_thread_is_forgotten)
{
	ck_assert(thread_coverage_put(&coverage, 7, 100));
	ck_assert(thread_coverage_note_end(&coverage, 7, 90)); /* of an earlier one */
	ck_assert(thread_coverage_has(&coverage, 7, 100));
	ck_assert(!thread_coverage_lasted_until(&coverage, 7, 90));
	ck_assert(thread_coverage_note_end(&coverage, 7, 110));
	ck_assert(!thread_coverage_has(&coverage, 7, 1));
	ck_assert(thread_coverage_lasted_until(&coverage, 7, 110));
	ck_assert(!thread_coverage_lasted_until(&coverage, 7, 111));
	/* A thread without events has no end that counts. */
	ck_assert(thread_coverage_note_end(&coverage, 8, 110));
	ck_assert(!thread_coverage_lasted_until(&coverage, 8, 1));
}
END_TEST

START_TEST(forks_distinguish_threads_of_one_tid)
{
	ck_assert(thread_coverage_is_same(&coverage, 7, 100, 200));
	note_allocation(7, 150, false);
	ck_assert(!thread_coverage_is_same(&coverage, 7, 100, 200));
	ck_assert(!thread_coverage_is_same(&coverage, 7, 200, 100));
	ck_assert(thread_coverage_is_same(&coverage, 7, 150, 200));
	/* Both before a later FORK record: another thread may have existed between them. */
	ck_assert(!thread_coverage_is_same(&coverage, 7, 120, 130));
	note_allocation(7, 140, false);
	ck_assert(!thread_coverage_is_same(&coverage, 7, 145, 200));
	ck_assert(thread_coverage_is_same(&coverage, 8, 100, 200));
	coverage.forks_missing = true;
	ck_assert(!thread_coverage_is_same(&coverage, 8, 100, 200));
}
END_TEST

START_TEST(later_threads_inherit_the_set)
{
	note_allocation(7, 90, false);
	ck_assert(!thread_coverage_has(&coverage, 7, 1));
	thread_coverage_set_complete(&coverage, 100);
	note_allocation(7, 99, false); /* of a parent that had a part of the set, perhaps */
	ck_assert(!thread_coverage_has(&coverage, 7, 1));
	note_allocation(8, 101, true);
	note_allocation(8, 101, false); /* reported twice */
	ck_assert(thread_coverage_has(&coverage, 8, 101));
	ck_assert(thread_coverage_note_end(&coverage, 8, 120));
	ck_assert(!thread_coverage_has(&coverage, 8, 101));
	note_allocation(8, 130, true);
	ck_assert(thread_coverage_has(&coverage, 8, 130));
}
END_TEST

Suite *test_suite(void)
{
	Suite *suite = suite_create("thread-coverage");
	TCase *cases = add_tcase(suite, "thread-coverage");

	tcase_add_checked_fixture(cases, NULL, teardown);
	tcase_add_tests(cases, only_threads_that_had_started_count, an_ended_thread_is_forgotten,
			forks_distinguish_threads_of_one_tid, later_threads_inherit_the_set);
	return suite;
}
