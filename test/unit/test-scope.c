// SPDX-License-Identifier: LGPL-2.1-or-later
/* Which processes are recorded, while FORK records arrive in any order and PIDs are reused. */
#include <check.h>

#include "capture/perf/scope.h"
#include "support/suite.h"

static struct scope scope;

static void setup(void)
{
	scope = (struct scope){.kind = SCOPE_PROCESSES};
	ck_assert(scope_follow(&scope, 7, 0));
}

static void teardown(void)
{
	scope_deinit(&scope);
}

static void allocation(pid_t pid, pid_t parent, uint64_t time_ns)
{
	ck_assert(vector_push(&scope.forks, ((struct scope_fork){time_ns, pid, parent})));
}

START_TEST(threads_with_events_are_all_admitted)
{
	struct scope threads = {0};

	ck_assert(scope_admits(&threads, 1234, 5));
}
END_TEST

START_TEST(children_are_recorded_and_other_processes_are_not)
{
	/* The grandchild's ring was read first. */
	allocation(9, 8, 200);
	allocation(8, 7, 100);
	allocation(21, 20, 150);
	ck_assert(!scope_admits(&scope, 8, 100));
	ck_assert(scope_apply_forks(&scope, UINT64_MAX));
	ck_assert(scope_admits(&scope, 7, 1));
	ck_assert(scope_admits(&scope, 8, 100));
	ck_assert(scope_admits(&scope, 9, 200));
	ck_assert(!scope_admits(&scope, 20, 200));
	ck_assert(!scope_admits(&scope, 21, 200));
}
END_TEST

START_TEST(a_fork_waits_for_those_of_its_ancestors)
{
	/* While the rings were searched, the child's FORK record arrived in one that had been searched, the
	 * grandchild's in another. */
	allocation(9, 8, 200);
	ck_assert(scope_apply_forks(&scope, 150));
	ck_assert(!scope_admits(&scope, 9, 200));
	allocation(10, 9, 320);
	allocation(8, 7, 180);
	ck_assert(scope_apply_forks(&scope, 300));
	ck_assert(scope_admits(&scope, 8, 180));
	ck_assert(scope_admits(&scope, 9, 200));
	ck_assert(!scope_admits(&scope, 10, 320));
	ck_assert(scope_apply_forks(&scope, 320));
	ck_assert(scope_admits(&scope, 10, 320));
	ck_assert_uint_eq(scope.forks.count, 0);
}
END_TEST

START_TEST(a_reused_pid_is_another_process)
{
	allocation(8, 7, 100);
	ck_assert(scope_apply_forks(&scope, UINT64_MAX));
	/* By an unrelated process: the earlier process's events are still to be read. */
	allocation(8, 20, 300);
	ck_assert(scope_apply_forks(&scope, UINT64_MAX));
	ck_assert(scope_admits(&scope, 8, 299));
	ck_assert(!scope_admits(&scope, 8, 300));
	/* Its children are unrelated too. */
	allocation(10, 8, 310);
	/* And by a child again. */
	allocation(8, 7, 400);
	ck_assert(scope_apply_forks(&scope, UINT64_MAX));
	ck_assert(!scope_admits(&scope, 10, 310));
	ck_assert(!scope_admits(&scope, 8, 399));
	ck_assert(scope_admits(&scope, 8, 400));
}
END_TEST

START_TEST(long_ended_processes_are_forgotten)
{
	struct process_table known = {0};

	allocation(8, 7, 100);
	allocation(9, 7, 900);
	ck_assert(scope_apply_forks(&scope, UINT64_MAX));
	ck_assert_ptr_nonnull(process_table_add(&known, 7, true));
	scope_forget(&scope, &known, 500);
	ck_assert(scope_admits(&scope, 7, 1000));
	ck_assert(!scope_admits(&scope, 8, 1000));
	ck_assert(scope_admits(&scope, 9, 1000)); /* its FORK record may not have been read yet */
	process_table_deinit(&known);
}
END_TEST

START_TEST(events_of_threads_are_cheap_on_few_cpus)
{
	ck_assert(scope_threads_are_cheap(2, 24));
	ck_assert(scope_threads_are_cheap(8, 24));
	ck_assert(!scope_threads_are_cheap(16, 24));
	ck_assert_uint_eq(scope_threads_cost_us(2, 24), 0);
	ck_assert_uint_ge(scope_threads_cost_us(64, 24), 15);
	ck_assert_uint_lt(scope_threads_cost_us(32, 11), scope_threads_cost_us(32, 24));
}
END_TEST

Suite *test_suite(void)
{
	Suite *suite = suite_create("scope");
	TCase *cases = add_tcase(suite, "scope");

	tcase_add_checked_fixture(cases, setup, teardown);
	tcase_add_tests(cases, threads_with_events_are_all_admitted, children_are_recorded_and_other_processes_are_not,
			a_fork_waits_for_those_of_its_ancestors, a_reused_pid_is_another_process,
			long_ended_processes_are_forgotten, events_of_threads_are_cheap_on_few_cpus);
	return suite;
}
