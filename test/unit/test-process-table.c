// SPDX-License-Identifier: LGPL-2.1-or-later
/* Processes that end during recording: when that is noticed, and when they are forgotten. */
#include <check.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "capture/process/process-table.h"
#include "capture/procfs/proc.h"
#include "support/suite.h"

static struct process_table processes;

static void destroy(void)
{
	process_table_deinit(&processes);
}

static pid_t start(void)
{
	pid_t pid = fork();

	ck_assert_int_ge(pid, 0);
	while (pid == 0)
		pause();
	return pid;
}

static void end(pid_t pid)
{
	siginfo_t info;

	ck_assert_int_eq(kill(pid, SIGKILL), 0);
	ck_assert_int_eq(waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT), 0);
}

/* As if it had ended long ago. */
static void age(pid_t pid)
{
	process_table_find(&processes, pid)->ended_ns = 1;
}

static uint64_t began(pid_t pid, uint64_t time_ns)
{
	uint64_t began_ns;

	ck_assert(process_table_find_begin(&processes, pid, time_ns, &began_ns));
	return began_ns;
}

/* Fork and two programs, reported in any order, also before the process is known. */
START_TEST(programs_are_in_time_order)
{
	static const uint64_t orders[][3] = {{10, 20, 30}, {30, 20, 10}, {20, 30, 10}, {30, 10, 20}};
	pid_t pid = getpid(), other = getppid();

	for (int told = 0; told < 3; told++) {
		if (told == _i / 4)
			ck_assert_ptr_nonnull(process_table_add(&processes, pid, false));
		ck_assert(process_table_note_begin(&processes, pid, orders[_i % 4][told]));
		ck_assert(process_table_note_begin(&processes, other, 25));
		ck_assert_uint_eq(began(other, 26), 25);
	}
	ck_assert_uint_eq(began(pid, 9), 0);
	ck_assert_uint_eq(began(pid, 19), 10);
	ck_assert_uint_eq(began(pid, 20), 20);
	ck_assert_uint_eq(began(pid, 29), 20);
	ck_assert_uint_eq(began(pid, 1000), 30);
	/* Another process with its PID. */
	ck_assert_ptr_nonnull(process_table_add(&processes, pid, false));
	ck_assert(process_table_note_begin(&processes, pid, 40));
	ck_assert_uint_eq(began(pid, 39), 30);
	ck_assert_uint_eq(began(pid, 41), 40);
}
END_TEST

START_TEST(only_the_last_programs_are_kept)
{
	pid_t pid = getpid();
	uint64_t began_ns;

	ck_assert_ptr_nonnull(process_table_add(&processes, pid, false));
	for (uint64_t i = 1; i <= PROGRAM_BEGINS_MAX + 2; i++)
		ck_assert(process_table_note_begin(&processes, pid, 100 * ((i ^ 1) + 1)));
	ck_assert(!process_table_find_begin(&processes, pid, 399, &began_ns));
	ck_assert_uint_eq(began(pid, 499), 400);
	ck_assert_uint_eq(began(pid, 100000), 100 * (PROGRAM_BEGINS_MAX + 4));
}
END_TEST

START_TEST(starts_of_unknown_processes_are_dropped)
{
	for (uint64_t i = 1; i <= 100; i++)
		ck_assert(process_table_note_begin(&processes, (pid_t)i, i * 1000000000));
	ck_assert_uint_le(processes.unplaced.count, 2);
}
END_TEST

START_TEST(process_ends_before_it_is_waited_for)
{
	pid_t pid = start();

	ck_assert(!proc_is_ending(pid));
	ck_assert(!proc_has_ended(pid));
	end(pid);
	ck_assert(proc_is_ending(pid));
	ck_assert(proc_has_ended(pid));
	ck_assert_int_eq(waitpid(pid, NULL, 0), pid);
	ck_assert(proc_is_ending(pid));
	ck_assert(proc_has_ended(pid));
}
END_TEST

START_TEST(ended_children_are_forgotten_and_others_stay)
{
	pid_t target = start(), ended = start(), living = start();

	ck_assert_ptr_nonnull(process_table_add(&processes, target, true));
	ck_assert_ptr_nonnull(process_table_add(&processes, ended, false));
	ck_assert_ptr_nonnull(process_table_add(&processes, living, false));
	end(ended);
	end(target);
	ck_assert(process_table_update(&processes));
	process_table_forget_ended(&processes);
	ck_assert_msg(processes.items.count == 3, "forgotten too early");
	age(ended);
	age(target);
	process_table_forget_ended(&processes);
	ck_assert_msg(processes.items.count == 3, "forgotten with its descriptors open");
	process_table_release(process_table_find(&processes, ended));
	process_table_release(process_table_find(&processes, target));
	process_table_forget_ended(&processes);
	ck_assert_uint_eq(processes.items.count, 2);
	ck_assert_uint_eq(processes.forgotten, 1);
	ck_assert_ptr_null(process_table_find(&processes, ended));
	ck_assert_int_eq(process_table_find(&processes, target)->pid, target);
	ck_assert_int_eq(process_table_find(&processes, living)->pid, living);
	ck_assert_int_eq(waitpid(ended, NULL, 0), ended);
	ck_assert_int_eq(waitpid(target, NULL, 0), target);
	end(living);
	ck_assert_int_eq(waitpid(living, NULL, 0), living);
}
END_TEST

/* The PID belongs to a newer process by now. */
START_TEST(reused_pids_are_distinguished)
{
	pid_t pid = start();

	ck_assert_ptr_nonnull(process_table_add(&processes, pid, false));
	process_table_release(processes.items.items[0]);
	processes.items.items[0]->ended = true;
	processes.items.items[0]->ended_ns = 1;
	ck_assert_ptr_nonnull(process_table_add(&processes, pid, false));
	process_table_forget_ended(&processes);
	ck_assert_uint_eq(processes.items.count, 1);
	ck_assert(!processes.items.items[0]->ended);
	ck_assert_ptr_eq(process_table_find(&processes, pid), processes.items.items[0]);
	end(pid);
	ck_assert_int_eq(waitpid(pid, NULL, 0), pid);
}
END_TEST

START_TEST(owners_of_perf_maps_are_kept)
{
	pid_t pid = start();
	struct traced_process *process = process_table_add(&processes, pid, false);

	ck_assert_ptr_nonnull(process);
	process->perf_map.text = malloc(1);
	end(pid);
	/* No process was requested whose end could end the recording. */
	ck_assert(!process_table_update(&processes));
	ck_assert(process->ended);
	process_table_release(process);
	age(pid);
	process_table_forget_ended(&processes);
	ck_assert_uint_eq(processes.items.count, 1);
	ck_assert_int_eq(waitpid(pid, NULL, 0), pid);
}
END_TEST

Suite *test_suite(void)
{
	Suite *suite = suite_create("process-table");
	TCase *cases = add_tcase(suite, "ends");

	tcase_set_timeout(cases, 600);
	tcase_add_checked_fixture(cases, NULL, destroy);
	tcase_add_tests(cases, process_ends_before_it_is_waited_for, ended_children_are_forgotten_and_others_stay,
			reused_pids_are_distinguished, owners_of_perf_maps_are_kept);
	tcase_add_loop_test(cases, programs_are_in_time_order, 0, 12);
	tcase_add_tests(cases, only_the_last_programs_are_kept, starts_of_unknown_processes_are_dropped);
	return suite;
}
