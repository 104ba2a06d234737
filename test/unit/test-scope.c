// SPDX-License-Identifier: LGPL-2.1-or-later
/* Whose records are taken, while processes are born in any order of the rings and numbers are given out again. */
#include <check.h>

#include "capture/perf/scope.h"
#include "support/run-suite.h"

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

static void birth(pid_t pid, pid_t parent, uint64_t time_ns)
{
	ck_assert(scope_note_birth(&scope, pid, parent, time_ns));
}

START_TEST(threads_with_events_are_all_admitted)
{
	struct scope threads = {0};

	ck_assert(!scope_wants_births(&threads));
	ck_assert(scope_admits(&threads, 1234, 5));
}
END_TEST

START_TEST(children_follow_and_strangers_do_not)
{
	ck_assert(scope_wants_births(&scope));
	/* The grandchild's ring was read first. */
	birth(9, 8, 200);
	birth(8, 7, 100);
	birth(21, 20, 150);
	ck_assert(!scope_admits(&scope, 8, 100));
	ck_assert(scope_apply_births(&scope, UINT64_MAX));
	ck_assert(scope_admits(&scope, 7, 1));
	ck_assert(scope_admits(&scope, 8, 100));
	ck_assert(scope_admits(&scope, 9, 200));
	ck_assert(!scope_admits(&scope, 20, 200));
	ck_assert(!scope_admits(&scope, 21, 200));
}
END_TEST

START_TEST(a_birth_waits_for_those_of_its_ancestors)
{
	/* While the rings were looked at, the child's birth came into one that had been, the grandchild's into another.
	 */
	birth(9, 8, 200);
	ck_assert(scope_apply_births(&scope, 150));
	ck_assert(!scope_admits(&scope, 9, 200));
	birth(10, 9, 320);
	birth(8, 7, 180);
	ck_assert(scope_apply_births(&scope, 300));
	ck_assert(scope_admits(&scope, 8, 180));
	ck_assert(scope_admits(&scope, 9, 200));
	ck_assert(!scope_admits(&scope, 10, 320));
	ck_assert(scope_apply_births(&scope, 320));
	ck_assert(scope_admits(&scope, 10, 320));
	ck_assert_uint_eq(scope.births.count, 0);
}
END_TEST

START_TEST(a_number_given_out_again_is_another_process)
{
	birth(8, 7, 100);
	ck_assert(scope_apply_births(&scope, UINT64_MAX));
	/* To a stranger: what the earlier process did is still to be read. */
	birth(8, 20, 300);
	ck_assert(scope_apply_births(&scope, UINT64_MAX));
	ck_assert(scope_admits(&scope, 8, 299));
	ck_assert(!scope_admits(&scope, 8, 300));
	/* His children are strangers too. */
	birth(10, 8, 310);
	/* And to a child again. */
	birth(8, 7, 400);
	ck_assert(scope_apply_births(&scope, UINT64_MAX));
	ck_assert(!scope_admits(&scope, 10, 310));
	ck_assert(!scope_admits(&scope, 8, 399));
	ck_assert(scope_admits(&scope, 8, 400));
}
END_TEST

START_TEST(without_inheritance_children_are_strangers)
{
	scope.no_inherit = true;
	birth(8, 7, 100);
	ck_assert(scope_apply_births(&scope, UINT64_MAX));
	ck_assert(scope_admits(&scope, 7, 100));
	ck_assert(!scope_admits(&scope, 8, 100));
}
END_TEST

START_TEST(those_that_ended_long_ago_are_forgotten)
{
	struct known_processes known = {0};

	birth(8, 7, 100);
	birth(9, 7, 900);
	ck_assert(scope_apply_births(&scope, UINT64_MAX));
	ck_assert_ptr_nonnull(known_processes_add(&known, 7, true));
	scope_forget(&scope, &known, 500);
	ck_assert(scope_admits(&scope, 7, 1000));
	ck_assert(!scope_admits(&scope, 8, 1000));
	ck_assert(scope_admits(&scope, 9, 1000)); /* its birth may not have been read yet */
	known_processes_deinit(&known);
}
END_TEST

int main(void)
{
	TCase *cases = tcase_create("scope");
	Suite *suite = suite_create("scope");

	tcase_add_checked_fixture(cases, setup, teardown);
	tcase_add_test(cases, threads_with_events_are_all_admitted);
	tcase_add_test(cases, children_follow_and_strangers_do_not);
	tcase_add_test(cases, a_birth_waits_for_those_of_its_ancestors);
	tcase_add_test(cases, a_number_given_out_again_is_another_process);
	tcase_add_test(cases, without_inheritance_children_are_strangers);
	tcase_add_test(cases, those_that_ended_long_ago_are_forgotten);
	suite_add_tcase(suite, cases);
	return run_suite(suite);
}
