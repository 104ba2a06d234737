// SPDX-License-Identifier: LGPL-2.1-or-later
/* Threads that may not have returned from a call yet. */
#include <check.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "capture/in-flight.h"
#include "support/run-suite.h"

#define TRIES 30000 /* of a millisecond */

static pid_t child;
static in_flight_threads threads;

static void start(bool busy)
{
	volatile unsigned count = 0;

	child = fork();
	ck_assert_int_ge(child, 0);
	if (child)
		return;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	while (busy)
		count++;
	for (;;)
		pause();
}

static void teardown(void)
{
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
	vector_deinit(&threads);
}

static bool wait_for_count(size_t count)
{
	for (int i = 0; i < TRIES; i++) {
		threads.count = 0;
		ck_assert(in_flight_add(&threads, child));
		if (threads.count == count)
			return true;
		usleep(1000);
	}
	return false;
}

START_TEST(sleeping_thread_has_returned)
{
	start(false);
	ck_assert(wait_for_count(0));
}
END_TEST

START_TEST(busy_thread_has_returned_when_it_has_run)
{
	uint64_t ran_ns;

	start(true);
	ck_assert(wait_for_count(1));
	ck_assert_int_eq(threads.items[0].tid, child);
	ran_ns = threads.items[0].ran_ns;
	for (int i = 0; i < TRIES && threads.count; i++) {
		usleep(1000);
		in_flight_remove_returned(&threads);
	}
	ck_assert_uint_eq(threads.count, 0);
	ck_assert(in_flight_add(&threads, child));
	ck_assert_uint_eq(threads.count, 1);
	ck_assert_uint_ge(threads.items[0].ran_ns, ran_ns + 1000000);
}
END_TEST

START_TEST(thread_that_has_ended_is_not_waited_for)
{
	start(true);
	ck_assert(wait_for_count(1));
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
	in_flight_remove_returned(&threads);
	ck_assert_uint_eq(threads.count, 0);
	ck_assert(!in_flight_add(&threads, child));
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("in flight");
	TCase *tests = tcase_create("threads");

	tcase_add_checked_fixture(tests, NULL, teardown);
	tcase_set_timeout(tests, 120);
	tcase_add_test(tests, sleeping_thread_has_returned);
	tcase_add_test(tests, busy_thread_has_returned_when_it_has_run);
	tcase_add_test(tests, thread_that_has_ended_is_not_waited_for);
	suite_add_tcase(suite, tests);
	return run_suite(suite);
}
