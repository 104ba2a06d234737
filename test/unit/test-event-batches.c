// SPDX-License-Identifier: LGPL-2.1-or-later
/* Events that a thread decodes in batches: all of them, in order, with their callchains, up to the first damage. */
#include <check.h>
#include <linux/perf_event.h>
#include <stdio.h>

#include "support/recording-builder.h"
#include "support/report-file.h"
#include "support/suite.h"
#include "trace/read/event-batches.h"
#include "trace/read/metadata.h"

#define CALLS 60000 /* more data than a report reads without a thread */
#define PID 4711
#define CHAIN 90

static struct recording_file *file;
static struct metadata metadata;
static struct layouts layouts;
static struct decoder decoder;
static struct event_batches *batches;

static uint64_t address(uint64_t number, size_t index)
{
	return ((number + 1) * 0x9e3779b97f4a7c15ULL + index * 4096) & 0x7ffffffff000ULL;
}

/* The kernel's addresses, which come first in each third callchain, are left out, so such a callchain is copied. */
static size_t kernel_addresses(uint64_t number)
{
	return number % 3 ? 0 : CHAIN;
}

static void write_recording(void)
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
	builder_finish(builder, 1000 + 2 * CALLS);
}

static void open_batches(enum ordered_end end)
{
	metadata = (struct metadata){0};
	ck_assert_ptr_null(recording_file_open(report_file_path(), NULL, &file));
	ck_assert_ptr_null(metadata_load(&metadata, file));
	ck_assert_ptr_null(layouts_create(file, &layouts));
	ck_assert_ptr_null(decoder_init(&decoder, file, &layouts, &metadata.values));
	ck_assert_ptr_null(event_batches_create(file, &layouts, &decoder, end, &batches));
}

static void close_batches(void)
{
	event_batches_destroy(batches);
	free(decoder.fields);
	layouts_deinit(&layouts);
	metadata_deinit(&metadata);
	recording_file_close(file);
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

/* The number of calls, each of which is checked when its batch is taken; *damage_ret is the caller's. */
static uint64_t read_calls(struct mmt_error **damage_ret)
{
	struct event_batch *batch;
	uint64_t calls = 0;

	*damage_ret = NULL;
	do {
		batch = event_batches_next(batches);
		ck_assert_ptr_null(batch->error);
		for (size_t i = 0; i < batch->count; i++)
			if (batch->events[i].kind == EVENT_CALL)
				check_call(&batch->events[i], calls++);
		if (batch->damage) {
			ck_assert_ptr_null(*damage_ret);
			*damage_ret = batch->damage;
			batch->damage = NULL;
		}
	} while (!batch->last);
	return calls;
}

START_TEST(all_events_come_in_order)
{
	struct mmt_error *damage;

	write_recording();
	open_batches(ORDERED_IN_FILE);
	ck_assert_uint_gt(file->data_end - file->data_offset, 1 << 20);
	ck_assert_uint_eq(read_calls(&damage), CALLS);
	ck_assert_ptr_null(damage);
	close_batches();
}
END_TEST

/* A batch stays as it is while the thread fills the others. */
START_TEST(a_batch_stays_until_the_next_one)
{
	struct event_batch *batch;
	uint64_t calls = 0;

	write_recording();
	open_batches(ORDERED_IN_FILE);
	for (size_t taken = 0; taken < CALLS / EVENT_BATCH_EVENTS / 2; taken++) {
		uint64_t first = calls;

		batch = event_batches_next(batches);
		for (unsigned again = 0; again < 5; again++) {
			calls = first;
			for (size_t i = 0; i < batch->count; i++)
				if (batch->events[i].kind == EVENT_CALL)
					check_call(&batch->events[i], calls++);
		}
	}
	ck_assert_uint_gt(calls, 0);
	close_batches(); /* while the thread waits or works */
}
END_TEST

/* Also if the records of the last round are discarded, so that the last batch has none. */
START_TEST(damage_ends_the_events)
{
	struct mmt_error *damage;
	FILE *stream;
	uint64_t calls;

	write_recording();
	open_batches((enum ordered_end)_i);
	stream = fopen(report_file_path(), "r+");
	ck_assert_ptr_nonnull(stream);
	ck_assert_int_eq(fseek(stream, (long)(file->data_offset + (file->data_end - file->data_offset) / 2), SEEK_SET),
			 0);
	for (unsigned i = 0; i < 1 << 16; i++)
		fputc(0xff, stream);
	fclose(stream);
	calls = read_calls(&damage);
	ck_assert_uint_gt(calls, CALLS / 4);
	ck_assert_uint_lt(calls, CALLS);
	ck_assert_ptr_nonnull(damage);
	mmt_error_destroy(damage);
	close_batches();
}
END_TEST

Suite *test_suite(void)
{
	Suite *suite = suite_create("event batches");
	TCase *tests = add_tcase(suite, "event batches");

	tcase_add_checked_fixture(tests, report_file_setup, report_file_teardown);
	tcase_set_timeout(tests, 600);
	tcase_add_tests(tests, all_events_come_in_order, a_batch_stays_until_the_next_one);
	tcase_add_loop_test(tests, damage_ends_the_events, ORDERED_COMPLETE, ORDERED_IN_FILE + 1);
	return suite;
}
