// SPDX-License-Identifier: LGPL-2.1-or-later
/* The events of a large recording: all of them, in order, with their callchains, up to the first damage. */
#include <check.h>
#include <linux/perf_event.h>
#include <stdio.h>

#include "support/recording-builder.h"
#include "support/report-file.h"
#include "support/suite.h"
#include "trace/read/reader.h"
#include "trace/read/recording-file.h"

#define CALLS 60000 /* more data than is in memory at once */
#define PID 4711
#define CHAIN 90

static uint64_t address(uint64_t number, size_t index)
{
	return ((number + 1) * 0x9e3779b97f4a7c15ULL + index * 4096) & 0x7ffffffff000ULL;
}

/* The kernel's addresses, which come first in each third callchain, are left out, so such a callchain is copied. */
static size_t kernel_addresses(uint64_t number)
{
	return number % 3 ? 0 : CHAIN;
}

/* `complete` false: like a killed recorder. */
static void write_recording(bool complete)
{
	struct recording_builder *builder = builder_create_without_stacks(report_file_path());

	for (uint64_t i = 0; i < CALLS; i++) {
		uint64_t chain[2 * CHAIN + 1];
		size_t count = 0, user = 2 + i % 5;

		for (; count < kernel_addresses(i); count++)
			chain[count] = 0x1000 + count;
		if (count)
			chain[0] = (uint64_t)PERF_CONTEXT_KERNEL;
		if (count)
			chain[count++] = (uint64_t)PERF_CONTEXT_USER;
		for (size_t j = 0; j < user; j++)
			chain[count++] = address(i, j);
		builder_call(builder, &(struct builder_call){.call = CALL_MMAP,
							     .time_ns = 1000 + i,
							     .pid = PID,
							     .tid = PID + (int32_t)(i % 7),
							     .arguments = {0, 4096},
							     .result = (int64_t)(i * 4096),
							     .callchain = chain,
							     .callchain_count = count});
		if (i % 500 == 0)
			builder_round(
			    builder); /* lets records go before the end is read, so that their blocks are used again */
	}
	builder_round(builder);
	if (complete)
		builder_finish(builder, 1000 + 2 * CALLS);
	else
		builder_abandon(builder);
}

static struct reader *open_reader(void)
{
	struct reader *reader;

	ck_assert_ptr_null(reader_open(report_file_path(), NULL, &reader));
	return reader;
}

static void check_call(const struct event *event, uint64_t number)
{
	const struct event_stack *stack = &event->call.stack;

	ck_assert_int_eq(event->kind, EVENT_CALL);
	ck_assert_uint_eq(event->time_ns, 1000 + number);
	ck_assert_int_eq(event->tid, PID + (int32_t)(number % 7));
	ck_assert_int_eq(event->call.result, (int64_t)(number * 4096));
	ck_assert_uint_eq(stack->callchain_count, 2 + number % 5);
	for (size_t i = 0; i < stack->callchain_count; i++)
		ck_assert_uint_eq(stack->callchain[i], address(number, i));
}

/* The number of calls, each of which is checked. */
static uint64_t read_calls(struct reader *reader)
{
	uint64_t calls = 0;

	for (;;) {
		struct event event;
		bool end;

		ck_assert_ptr_null(reader_next(reader, &event, &end));
		if (end)
			return calls;
		if (event.kind == EVENT_CALL)
			check_call(&event, calls++);
	}
}

/* Twice, and again after some events. */
START_TEST(all_events_come_in_order)
{
	struct reader *reader;
	struct event event;
	bool end;

	write_recording(true);
	reader = open_reader();
	for (unsigned i = 0; i < 2; i++) {
		ck_assert_uint_eq(read_calls(reader), CALLS);
		ck_assert_ptr_null(reader_damage(reader));
		ck_assert_ptr_null(reader_next(reader, &event, &end));
		ck_assert(end);
		ck_assert_ptr_null(reader_rewind(reader));
	}
	for (unsigned i = 0; i < CALLS / 2; i++)
		ck_assert_ptr_null(reader_next(reader, &event, &end));
	ck_assert_ptr_null(reader_rewind(reader));
	ck_assert_uint_eq(read_calls(reader), CALLS);
	reader_close(reader);
}
END_TEST

/* Also if the recorder was killed. */
START_TEST(damage_ends_the_events)
{
	const struct recording_file *file;
	struct reader *reader;
	FILE *stream;
	uint64_t calls;

	write_recording(_i);
	reader = open_reader();
	file = reader->file;
	stream = fopen(report_file_path(), "r+");
	ck_assert_ptr_nonnull(stream);
	ck_assert_int_eq(fseek(stream, (long)(file->data_offset + (file->data_end - file->data_offset) / 2), SEEK_SET),
			 0);
	for (unsigned i = 0; i < 1 << 16; i++)
		fputc(0xff, stream);
	fclose(stream);
	calls = read_calls(reader);
	ck_assert_uint_gt(calls, CALLS / 4);
	ck_assert_uint_lt(calls, CALLS);
	ck_assert_ptr_nonnull(reader_damage(reader));
	reader_close(reader);
}
END_TEST

Suite *test_suite(void)
{
	Suite *suite = suite_create("reader");
	TCase *tests = add_tcase(suite, "reader");

	tcase_add_checked_fixture(tests, report_file_setup, report_file_teardown);
	tcase_set_timeout(tests, 600);
	tcase_add_test(tests, all_events_come_in_order);
	tcase_add_loop_test(tests, damage_ends_the_events, 0, 2);
	return suite;
}
