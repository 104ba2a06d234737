// SPDX-License-Identifier: LGPL-2.1-or-later
/* The queue between the ring reader and the process table. */
#include "capture/process/process-table.h"

#include <check.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "capture/procfs/clock.h"
#include "capture/record-loop.h"
#include "capture/recorder/recorder.h"
#include "support/recorder-state.h"
#include "support/suite.h"

#define PID 77
#define CHILD 78
#define LIBRARY "/nowhere/libexample.so"

static struct recorder *recorder;

static void setup(void)
{
	static const struct mmt_record_options options = {.stop_fd = -1, .code = MMT_CODE_ALL};

	recorder = calloc(1, sizeof(*recorder));
	recorder_state_init(recorder);
	recorder->options = &options;
}

static void teardown(void)
{
	process_events_deinit(&recorder->process_events);
	process_table_deinit(&recorder->processes);
	jit_reader_deinit(recorder->jobs.jit_reader);
	jitdumps_deinit(&recorder->jobs.runtimes->jitdumps);
	build_id_notes_deinit(&recorder->jobs.build_ids);
	free(recorder);
}

static void push(enum process_event_kind kind, pid_t pid, uint64_t time_ns)
{
	const struct process_event event = {.kind = kind, .pid = pid, .time_ns = time_ns, .recorded = true};

	ck_assert_ptr_null(process_events_push(recorder, &event, NULL));
}

static void push_mapping(uint64_t start, uint64_t end, uint32_t protection, uint64_t time_ns, const char *path)
{
	const struct process_event event = {.kind = PROCESS_MAPPING,
					    .pid = PID,
					    .time_ns = time_ns,
					    .start = start,
					    .end = end,
					    .protection = protection};

	ck_assert_ptr_null(process_events_push(recorder, &event, path));
}

static size_t queued(void)
{
	return recorder->process_events.items.count;
}

static const struct traced_process *find(pid_t pid)
{
	return process_table_find(&recorder->processes, pid);
}

static void apply(void)
{
	ck_assert_ptr_null(loop_apply_events(recorder));
	ck_assert_uint_eq(queued(), 0);
}

/* A job, such as a snapshot, holds an entry of the table. */
START_TEST(the_table_changes_when_events_are_applied)
{
	const struct traced_process *process = process_table_add(&recorder->processes, PID, true);

	for (pid_t pid = CHILD; pid < CHILD + 1000; pid++)
		push(PROCESS_FORK, pid, 10);
	ck_assert_uint_eq(recorder->processes.items.count, 1);
	ck_assert_ptr_eq(process, find(PID));
	ck_assert(process_events_want_snapshot(recorder, CHILD));
	ck_assert(!process_events_want_snapshot(recorder, PID));
	apply();
	ck_assert_uint_eq(recorder->processes.items.count, 1001);
	ck_assert_msg(process == find(PID) && process->pid == PID, "the entry was moved");
	ck_assert(find(CHILD)->snapshot_wanted);
	ck_assert_int_eq(find(CHILD)->snapshot_kind, SNAPSHOT_FIRST);
	ck_assert(!process_events_want_snapshot(recorder, CHILD));
}
END_TEST

START_TEST(a_process_without_a_fork_record_gets_a_snapshot)
{
	push(PROCESS_SEEN, PID, 10);
	apply();
	ck_assert(find(PID)->snapshot_wanted);
	ck_assert_int_eq(find(PID)->snapshot_kind, SNAPSHOT_START);
}
END_TEST

/* What the kernel maps between an exec and the new program's first call requires one more snapshot. */
START_TEST(first_call_after_an_exec)
{
	struct traced_process *process = process_table_add(&recorder->processes, PID, true);
	uint64_t exec_ns = clock_now_ns();

	push(PROCESS_EXEC, PID, exec_ns);
	apply();
	ck_assert(process->snapshot_wanted);
	ck_assert_int_eq(process->snapshot_kind, SNAPSHOT_EXEC);
	process->snapshot_wanted = false;
	process->snapshot_ns = exec_ns + 5;
	ck_assert_ptr_null(process_events_note_call(recorder, PID, exec_ns - 1)); /* of the program before */
	ck_assert_uint_eq(queued(), 0);
	ck_assert_ptr_null(process_events_note_call(recorder, PID, exec_ns + 20));
	ck_assert_ptr_null(process_events_note_call(recorder, PID, exec_ns + 21));
	ck_assert_uint_eq(queued(), 1);
	ck_assert(process_events_want_snapshot(recorder, PID));
	apply();
	ck_assert(process->snapshot_wanted);
	ck_assert_uint_eq(process->snapshot_wanted_ns, exec_ns + 20);
	ck_assert(!process_events_want_snapshot(recorder, PID));
}
END_TEST

/* No process has this PID, so none is still in its exec. */
START_TEST(a_program_that_makes_no_call)
{
	const struct traced_process *process = process_table_add(&recorder->processes, PID, true);

	ck_assert_ptr_null(process_events_end_exec(recorder, PID));
	ck_assert_uint_eq(queued(), 0);
	push(PROCESS_EXEC, PID, 100);
	apply();
	ck_assert(!process_events_want_snapshot(recorder, PID));
	ck_assert_ptr_null(process_events_end_exec(recorder, PID));
	ck_assert(process_events_want_snapshot(recorder, PID));
	apply();
	ck_assert(process->snapshot_wanted && process->snapshot_wanted_ns > 100);
	ck_assert_ptr_null(process_events_end_exec(recorder, PID));
	ck_assert_uint_eq(queued(), 0);
}
END_TEST

/* An exec and the first call may both be queued. */
START_TEST(an_exec_and_its_first_call_in_the_queue)
{
	const struct traced_process *process = process_table_add(&recorder->processes, PID, true);

	push(PROCESS_EXEC, PID, 100);
	ck_assert_ptr_null(process_events_note_call(recorder, PID, 120));
	apply();
	ck_assert_uint_eq(process->program_ns, 100);
	ck_assert_uint_eq(process->snapshot_wanted_ns, 120);
}
END_TEST

/* Fork and two programs, read from the rings in any order. */
START_TEST(events_are_in_time_order)
{
	static const struct {
		enum process_event_kind kind;
		uint64_t time_ns;
	} events[] = {{PROCESS_FORK, 10}, {PROCESS_EXEC, 20}, {PROCESS_EXEC, 30}};
	static const int orders[][3] = {{0, 1, 2}, {2, 1, 0}, {1, 2, 0}, {2, 0, 1}};

	for (int i = 0; i < 3; i++)
		push(events[orders[_i][i]].kind, PID, events[orders[_i][i]].time_ns);
	apply();
	ck_assert_uint_eq(find(PID)->program_ns, 30);
}
END_TEST

/* The record that announces the process is read a round later than that of its exec, or never. */
START_TEST(an_exec_waits_for_its_process)
{
	push(PROCESS_EXEC, PID, 20);
	ck_assert_ptr_null(loop_apply_events(recorder));
	ck_assert_uint_eq(queued(), 1);
	if (_i)
		push(PROCESS_FORK, PID, 10);
	apply();
	ck_assert(!find(PID) == !_i);
	if (_i)
		ck_assert_uint_eq(find(PID)->program_ns, 20);
}
END_TEST

/* Data is mapped and unmapped all the time: it is not queued. */
START_TEST(data_does_not_fill_the_queue)
{
	ck_assert_ptr_nonnull(process_table_add(&recorder->processes, PID, true));
	for (uint64_t i = 0; i < 1000; i++)
		push_mapping(0x1000, 0x2000, PROT_READ | PROT_WRITE, i, "//anon");
	ck_assert_uint_eq(queued(), 0);

	push_mapping(0x10000, 0x20000, PROT_READ | PROT_EXEC, 1001, "//anon");
	push_mapping(0x1000, 0x2000, PROT_READ | PROT_WRITE, 1002, "//anon");
	ck_assert_uint_eq(queued(), 1);
}
END_TEST

Suite *test_suite(void)
{
	Suite *suite = suite_create("process-events");
	TCase *tests = add_tcase(suite, "queue");

	tcase_add_checked_fixture(tests, setup, teardown);
	tcase_add_tests(tests, the_table_changes_when_events_are_applied,
			a_process_without_a_fork_record_gets_a_snapshot, first_call_after_an_exec, a_program_that_makes_no_call,
			an_exec_and_its_first_call_in_the_queue, data_does_not_fill_the_queue);
	tcase_add_loop_test(tests, events_are_in_time_order, 0, 4);
	tcase_add_loop_test(tests, an_exec_waits_for_its_process, 0, 2);
	return suite;
}
