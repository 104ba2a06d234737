// SPDX-License-Identifier: LGPL-2.1-or-later
/* The public event reader: fields of events, stacks, and how a recording is opened. */
#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <mmtrace/events.h>
#include <mmtrace/record.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "support/report-file.h"
#include "support/suite.h"

enum { PROCESS = 100, THREAD = 101 };

#define MEBIBYTE (1ull << 20)
#define ADDRESS 0x10000000000ull
#define CALLER 0x401000
#define TOO_LARGE 0xfffffffff000ull

static void record_calls(void)
{
	const struct builder_call failed = {.call = CALL_MREMAP,
					    .time_ns = 2200,
					    .pid = PROCESS,
					    .tid = THREAD,
					    .arguments = {ADDRESS, MEBIBYTE, TOO_LARGE},
					    .result = -ENOMEM};
	const struct mmt_event_mapping line = {.start = 0x400000,
					       .length = 0x2000,
					       .protection = PROT_READ | PROT_EXEC,
					       .flags = MAP_PRIVATE,
					       .path = "/nonexistent/program"};
	struct recording_builder *builder = builder_create(report_file_path());

	builder_comm(builder, 1000, PROCESS, PROCESS, "program");
	builder_snapshot(builder, SNAPSHOT_START, 1000, PROCESS, &line, 1);
	builder_fork(builder, 1500, PROCESS, THREAD, PROCESS, PROCESS);
	builder_mmap_exit(builder, 2000, PROCESS, PROCESS, ADDRESS, MEBIBYTE, CALLER);
	builder_mmap_exit(builder, 2100, PROCESS, THREAD, ADDRESS + MEBIBYTE, 2 * MEBIBYTE, CALLER);
	builder_call(builder, &failed);
	builder_munmap_exit(builder, 2300, PROCESS, PROCESS, ADDRESS + MEBIBYTE, 2 * MEBIBYTE);
	builder_note(builder, 2400, PROCESS, NOTE_RESIDENT, 3 * MEBIBYTE, 1);
	builder_round(builder);
	builder_finish(builder, 3000);
}

static void require(struct mmt_error *error)
{
	if (error)
		ck_abort_msg("%s", mmt_error_get_message(error));
}

static struct mmt_events *open_calls(void)
{
	struct mmt_events *events;

	require(mmt_events_open(report_file_path(), NULL, &events));
	return events;
}

/* The next event of a kind. */
static const struct mmt_event *find(struct mmt_events *events, enum mmt_event_kind kind)
{
	const struct mmt_event *event;

	do {
		require(mmt_events_next(events, &event));
		ck_assert_msg(event, "no more events of kind %s", mmt_event_kind_name(kind));
	} while (event->kind != kind);
	return event;
}

/* All remaining events; closes the reader. */
static size_t count_and_close(struct mmt_events *events)
{
	const struct mmt_event *event;
	size_t count = 0;

	for (;;) {
		require(mmt_events_next(events, &event));
		if (!event)
			break;
		count++;
	}
	require(mmt_events_next(events, &event));
	ck_assert_ptr_null(event);
	mmt_events_close(events);
	return count;
}

START_TEST(events_have_the_fields_of_their_kind)
{
	struct mmt_events *events;
	const struct mmt_event *event;

	record_calls();
	events = open_calls();
	event = find(events, MMT_EVENT_COMM);
	ck_assert_str_eq(event->task->name, "program");
	ck_assert(!event->task->exec);
	ck_assert(!event->call && !event->stack && !event->mapping && !event->snapshot);
	event = find(events, MMT_EVENT_SNAPSHOT_LINE);
	ck_assert_str_eq(event->snapshot, "start");
	ck_assert_str_eq(event->mapping->path, "/nonexistent/program");
	ck_assert_uint_eq(event->mapping->start, 0x400000);
	ck_assert_uint_eq(event->mapping->length, 0x2000);
	ck_assert(!event->call && !event->stack && !event->task);
	event = find(events, MMT_EVENT_FORK);
	ck_assert_int_eq(event->task->tid, THREAD);
	ck_assert_int_eq(event->task->parent_tid, PROCESS);
	event = find(events, MMT_EVENT_RESIDENT);
	ck_assert_uint_eq(event->resident_bytes, 3 * MEBIBYTE);
	ck_assert_uint_eq(event->resident_reading, 1);
	mmt_events_close(events);
}
END_TEST

START_TEST(calls_have_arguments_results_and_ranges)
{
	struct mmt_events *events;
	const struct mmt_event *event;

	record_calls();
	events = open_calls();
	event = find(events, MMT_EVENT_CALL);
	ck_assert_str_eq(event->call->name, "mmap");
	ck_assert_uint_eq(event->time_ns, 2000);
	ck_assert_int_eq(event->tid, PROCESS);
	ck_assert_uint_eq(event->call->argument_count, 6);
	ck_assert_uint_eq(event->call->arguments[1], MEBIBYTE);
	ck_assert_int_eq(event->call->result, ADDRESS);
	ck_assert_uint_eq(event->call->range_start, ADDRESS);
	ck_assert_uint_eq(event->call->range_bytes, MEBIBYTE);
	ck_assert_uint_gt(event->stack->callchain_count, 0);
	ck_assert_str_eq(mmt_events_get_attribute(events, event->attribute)->name, "syscalls:sys_exit_mmap");
	event = find(events, MMT_EVENT_CALL);
	ck_assert_int_eq(event->tid, THREAD);
	event = find(events, MMT_EVENT_CALL);
	ck_assert_str_eq(event->call->name, "mremap");
	ck_assert(event->call->failed);
	ck_assert_int_eq(event->call->result, -ENOMEM);
	ck_assert_uint_eq(event->call->range_bytes, 0);
	event = find(events, MMT_EVENT_CALL);
	ck_assert_str_eq(event->call->name, "munmap");
	ck_assert(!event->call->failed);
	ck_assert_uint_eq(event->call->range_start, ADDRESS + MEBIBYTE);
	ck_assert_uint_eq(event->call->range_bytes, 2 * MEBIBYTE);
	mmt_events_close(events);
}
END_TEST

START_TEST(the_recording_is_described)
{
	struct mmt_events *events;
	const struct mmt_recording *recording;

	record_calls();
	events = open_calls();
	recording = mmt_events_get_recording(events);
	ck_assert(recording->by_mmtrace);
	ck_assert_str_eq(recording->architecture, "x86_64");
	ck_assert_uint_gt(recording->attribute_count, 0);
	ck_assert_ptr_nonnull(mmt_events_get_attribute(events, recording->attribute_count - 1));
	ck_assert_ptr_null(mmt_events_get_attribute(events, recording->attribute_count));
	ck_assert_ptr_null(mmt_events_get_attribute(events, SIZE_MAX));
	ck_assert(!mmt_events_get_state(events)->incomplete);
	ck_assert_ptr_null(mmt_events_get_state(events)->damage);
	mmt_events_close(events);
}
END_TEST

static void check_stack(const struct mmt_row *row, const struct mmt_stack *stack)
{
	ck_assert_uint_gt(stack->number, 0);
	ck_assert_uint_gt(stack->frame_count, 0);
	ck_assert_uint_eq(stack->frame_count, row->frame_count);
	ck_assert_int_eq(stack->end, row->stack_end);
	for (size_t i = 0; i < stack->frame_count; i++) {
		ck_assert_uint_eq(stack->frames[i]->address, row->frames[i]->address);
		ck_assert_str_eq(stack->frames[i]->module, row->frames[i]->module);
	}
}

START_TEST(stacks_match_the_report)
{
	struct mmt_report *report;
	const struct mmt_stack *stack;
	struct mmt_events *events;
	uint32_t number;

	record_calls();
	report = report_file_report(NULL);
	ck_assert_uint_eq(report->row_count, 1);
	events = open_calls();
	find(events, MMT_EVENT_COMM);
	require(mmt_events_symbolize(events, &stack));
	ck_assert_uint_eq(stack->number, 0);
	ck_assert_uint_eq(stack->frame_count, 0);
	ck_assert_int_eq(stack->end, MMT_STACK_END_NOT_RECORDED);
	find(events, MMT_EVENT_CALL);
	require(mmt_events_symbolize(events, &stack));
	check_stack(&report->rows[0], stack);
	number = stack->number;
	find(events, MMT_EVENT_CALL); /* of another thread, from the same place */
	require(mmt_events_symbolize(events, &stack));
	ck_assert_uint_eq(stack->number, number);
	check_stack(&report->rows[0], stack);
	find(events, MMT_EVENT_CALL); /* the one that failed has a stack, too */
	require(mmt_events_symbolize(events, &stack));
	ck_assert_uint_gt(stack->number, 0);
	find(events, MMT_EVENT_CALL); /* munmap */
	require(mmt_events_symbolize(events, &stack));
	ck_assert_uint_eq(stack->number, 0);
	mmt_events_close(events);
	mmt_report_destroy(report);
}
END_TEST

START_TEST(a_pipe_is_read_to_its_end)
{
	struct mmt_events *events;
	char buffer[65536];
	size_t count, size;
	FILE *file;
	char path[32];
	int ends[2];

	record_calls();
	count = count_and_close(open_calls());
	file = fopen(report_file_path(), "re");
	ck_assert_ptr_nonnull(file);
	size = fread(buffer, 1, sizeof(buffer), file);
	fclose(file);
	ck_assert_uint_lt(size, sizeof(buffer)); /* or the pipe could not hold it */
	ck_assert_int_eq(pipe(ends), 0);
	ck_assert_int_eq(write(ends[1], buffer, size), (ssize_t)size);
	close(ends[1]);
	snprintf(path, sizeof(path), "/dev/fd/%d", ends[0]);
	require(mmt_events_open(path, NULL, &events));
	close(ends[0]);
	ck_assert_uint_eq(count_and_close(events), count);
}
END_TEST

static void check_refused(struct mmt_error *error, enum mmt_error_code code)
{
	ck_assert_ptr_nonnull(error);
	ck_assert_int_eq(mmt_error_get_code(error), code);
	mmt_error_destroy(error);
}

START_TEST(other_files_are_refused)
{
	struct mmt_events *events = NULL;
	FILE *file;

	record_calls();
	file = fopen(report_file_path(), "we");
	ck_assert_ptr_nonnull(file);
	fputs("a text that is long enough for the header of a recording, which it is not", file);
	fclose(file);
	check_refused(mmt_events_open(report_file_path(), NULL, &events), MMT_ERROR_FORMAT);
	ck_assert_ptr_null(events);
	mmt_events_close(NULL);
}
END_TEST

Suite *test_suite(void)
{
	Suite *suite = suite_create("event-reader");
	TCase *tcase = add_tcase(suite, "event-reader");

	tcase_add_checked_fixture(tcase, report_file_setup, report_file_teardown);
	tcase_add_tests(tcase, events_have_the_fields_of_their_kind, calls_have_arguments_results_and_ranges,
			the_recording_is_described, stacks_match_the_report, a_pipe_is_read_to_its_end,
			other_files_are_refused);
	return suite;
}
