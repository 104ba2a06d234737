// SPDX-License-Identifier: LGPL-2.1-or-later
/* Threads that may still be inside a call. */
#include <check.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "capture/process/process-table.h"
#include "support/suite.h"

#define TRIES 30000 /* of a millisecond */
#define READ_NS 1000

enum life { ASLEEP, BUSY, WAITING_FOR_VFORK };

static pid_t child;
static struct in_flight in_flight;

/* Its parent waits in another system call, in which signals do not wake it. */
static void live_as_vfork(void)
{
	pid_t grandchild = vfork();

	if (grandchild == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		for (;;)
			pause();
	}
}

static void start(enum life life)
{
	child = fork();
	ck_assert_int_ge(child, 0);
	if (child)
		return;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (life == WAITING_FOR_VFORK)
		live_as_vfork();
	while (life == BUSY)
		__asm__ volatile("");
	for (;;)
		pause();
}

static void teardown(void)
{
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
	map_deinit(&in_flight.threads);
}

static bool wait_for_count(size_t count)
{
	for (int i = 0; i < TRIES; i++) {
		map_deinit(&in_flight.threads);
		ck_assert(in_flight_add(&in_flight, NULL, child, READ_NS));
		if (in_flight.threads.count == count)
			return true;
		usleep(1000);
	}
	return false;
}

START_TEST(sleeping_thread_has_returned)
{
	start(ASLEEP);
	ck_assert(wait_for_count(0));
}
END_TEST

START_TEST(thread_that_waits_in_another_call_has_returned)
{
	start(WAITING_FOR_VFORK);
	ck_assert(wait_for_count(0));
}
END_TEST

START_TEST(busy_thread_has_returned_when_an_event_shows_it)
{
	start(BUSY);
	ck_assert(wait_for_count(1));
	ck_assert_ptr_nonnull(map_get(&in_flight.threads, THREAD_KEY(child, child)));
	/* However long it runs: it may be in the kernel all the time. */
	usleep(100000);
	in_flight_remove_returned(&in_flight, NULL);
	ck_assert_uint_eq(in_flight.threads.count, 1);
	/* Of another thread, with its calls from before the maps were read. */
	in_flight_note_outside(&in_flight, child, child + 1, READ_NS + 1);
	in_flight_note_outside(&in_flight, child, child, READ_NS);
	in_flight_remove_returned(&in_flight, NULL);
	ck_assert_uint_eq(in_flight.threads.count, 1);
	in_flight_note_outside(&in_flight, child, child, READ_NS + 1);
	in_flight_remove_returned(&in_flight, NULL);
	ck_assert_uint_eq(in_flight.threads.count, 0);
}
END_TEST

START_TEST(thread_that_has_ended_is_not_waited_for)
{
	start(BUSY);
	ck_assert(wait_for_count(1));
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
	in_flight_remove_returned(&in_flight, NULL);
	ck_assert_uint_eq(in_flight.threads.count, 0);
	ck_assert(!in_flight_add(&in_flight, NULL, child, READ_NS));
}
END_TEST

Suite *test_suite(void)
{
	Suite *suite = suite_create("in flight");
	TCase *tests = add_tcase(suite, "threads");

	tcase_add_checked_fixture(tests, NULL, teardown);
	tcase_set_timeout(tests, 600);
	tcase_add_tests(tests, sleeping_thread_has_returned, thread_that_waits_in_another_call_has_returned,
			busy_thread_has_returned_when_an_event_shows_it, thread_that_has_ended_is_not_waited_for);
	return suite;
}
