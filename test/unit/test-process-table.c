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
	return suite;
}
