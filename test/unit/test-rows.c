// SPDX-License-Identifier: LGPL-2.1-or-later
/* A report symbolizes every stack, shown or not. */
#include <check.h>
#include <string.h>
#include <sys/mman.h>

#include "analysis/resolver/resolver.h"
#include "analysis/report/stack-origin.h"
#include "support/report-file.h"
#include "support/suite.h"

enum { PID = 100, STACKS = 200, SHARED = 20 };

#define MEBIBYTE (1ull << 20)
#define ADDRESS 0x10000000000ull
#define CALLER 0x401000ull
#define GENERATED 0x900000ull /* code without a name */
#define JIT_FROM 15	      /* of the shared callers: far from the call */

/* The linker replaces the library's own functions by these, which have the same types. */
__typeof__(resolver_names) __real_resolver_names, __wrap_resolver_names;
__typeof__(origin_find) __real_origin_find, __wrap_origin_find;
__typeof__(origin_is_c_library) __real_origin_is_c_library, __wrap_origin_is_c_library;

static uint64_t names_asked, names_changed, looks;

/* --wrap does not replace calls from within the same file: they are not counted. */
size_t __wrap_origin_find(const struct mmt_frame *const *frames, size_t frame_count)
{
	size_t place = __real_origin_find(frames, frame_count);

	looks += place + (place < frame_count);
	return place;
}

bool __wrap_origin_is_c_library(const struct mmt_frame *frame)
{
	looks++;
	return __real_origin_is_c_library(frame);
}

struct mmt_error *__wrap_resolver_names(struct resolver *view, uint32_t frame, const struct mmt_frame **frames_ret,
					size_t *count_ret)
{
	struct mmt_error *error = __real_resolver_names(view, frame, frames_ret, count_ret);
	const struct mmt_frame *again;
	size_t count;

	names_asked++;
	if (!error)
		error = __real_resolver_names(view, frame, &again, &count);
	if (!error)
		names_changed += again != *frames_ret || count != *count_ret;
	return error;
}

/* This many stacks, each with a caller of its own above the shared ones, map memory twice. */
static void record_stacks(void)
{
	struct recording_builder *builder = builder_create_with(report_file_path(), false, false);
	uint64_t callchain[1 + SHARED];
	const struct event_mapping code = {.start = GENERATED,
					   .length = 4096,
					   .protection = PROT_READ | PROT_EXEC,
					   .flags = MAP_PRIVATE,
					   .path = "//anon"};

	builder_comm(builder, 1000, PID, PID, "stacks");
	builder_snapshot(builder, SNAPSHOT_START, 1000, PID, &code, 1);
	for (uint64_t i = 0; i < SHARED; i++)
		callchain[1 + i] = (i < JIT_FROM ? CALLER : GENERATED) + i * 16;
	for (uint64_t i = 0; i < 2 * STACKS; i++) {
		callchain[0] = CALLER + MEBIBYTE + i % STACKS * 16;
		builder_call(builder, &(struct builder_call){.call = CALL_MMAP,
							     .time_ns = 2000 + i,
							     .pid = PID,
							     .tid = PID,
							     .arguments = {0, MEBIBYTE, 3, 0x22, UINT64_MAX, 0},
							     .result = (int64_t)(ADDRESS + i * 2 * MEBIBYTE),
							     .instruction_pointer = callchain[0],
							     .callchain = callchain,
							     .callchain_count = 1 + SHARED});
	}
	builder_round(builder);
	builder_finish(builder, 10000);
}

START_TEST(frames_are_symbolized_once)
{
	struct mmt_report *report;

	record_stacks();
	report = report_file_report(NULL);
	ck_assert_uint_eq(report->row_count, STACKS);
	for (size_t i = 0; i < STACKS; i++) {
		ck_assert_uint_eq(report->rows[i].unfreed_bytes, 2 * MEBIBYTE);
		ck_assert_uint_eq(report->rows[i].frame_count, 1 + SHARED);
		ck_assert_uint_eq(report->rows[i].frames[SHARED]->address, GENERATED + (SHARED - 1) * 16);
		ck_assert_ptr_eq(report->rows[i].frames[SHARED], report->rows[0].frames[SHARED]);
	}
	ck_assert_uint_eq(report->completeness.frames, STACKS * (1 + SHARED));
	mmt_report_destroy(report);
}
END_TEST

/* JIT code without a name is reported whatever the rows are. */
START_TEST(unnamed_code_is_noted_by_every_key)
{
	static const enum mmt_row_key views[] = {MMT_BY_PROCESS, MMT_BY_CLASS, MMT_BY_FILE, MMT_BY_FUNCTION,
						 MMT_BY_MODULE};
	struct mmt_report_options options;

	record_stacks();
	mmt_report_options_init(&options);
	for (size_t i = 0; i < sizeof(views) / sizeof(*views); i++) {
		struct mmt_report *report;

		options.by = views[i];
		report = report_file_report(&options);
		ck_assert_uint_eq(report->unfreed_bytes, 2 * STACKS * MEBIBYTE);
		ck_assert(report->processes[0].unnamed_code);
		mmt_report_destroy(report);
	}
}
END_TEST

#define DISTINCT 40000 /* frames */
#define LONG 100       /* stacks of so many */

/* Each distinct frame is looked up once, however many there are. */
START_TEST(many_frames_are_looked_up_once)
{
	struct recording_builder *builder = builder_create_with(report_file_path(), false, false);
	uint64_t callchain[LONG];
	struct mmt_report_options options;
	struct mmt_report *report;

	builder_comm(builder, 1000, PID, PID, "many");
	for (uint64_t i = 0; i < 2 * DISTINCT / LONG; i++) {
		for (uint64_t j = 0; j < LONG; j++)
			callchain[j] = CALLER + (i % (DISTINCT / LONG) * LONG + j) * 16;
		builder_call(builder, &(struct builder_call){.call = CALL_MMAP,
							     .time_ns = 2000 + i,
							     .pid = PID,
							     .tid = PID,
							     .arguments = {0, MEBIBYTE, 3, 0x22, UINT64_MAX, 0},
							     .result = (int64_t)(ADDRESS + i * 2 * MEBIBYTE),
							     .instruction_pointer = callchain[0],
							     .callchain = callchain,
							     .callchain_count = LONG});
	}
	builder_round(builder);
	builder_finish(builder, 10000);
	mmt_report_options_init(&options);
	names_asked = names_changed = 0;
	report = report_file_report(&options);
	ck_assert_uint_eq(report->row_count, DISTINCT / LONG);
	for (size_t i = 0; i < report->row_count; i++) {
		const struct mmt_row *row = &report->rows[i];

		ck_assert_uint_eq(row->unfreed_bytes, 2 * MEBIBYTE);
		ck_assert_uint_eq(row->frame_count, LONG);
		for (size_t j = 0; j < LONG; j++) {
			ck_assert_uint_eq(row->frames[j]->address, CALLER + (i * LONG + j) * 16);
			ck_assert_ptr_null(row->frames[j]->function);
		}
	}
	mmt_report_destroy(report);
	ck_assert_uint_ge(names_asked, DISTINCT);
	ck_assert_uint_eq(names_changed, 0);
}
END_TEST

#define DEEP 1000

/* The frame that maps memory is looked up once, however far away it is. */
START_TEST(deep_library_stacks_are_searched_once)
{
	static const enum mmt_row_key views[] = {MMT_BY_PROCESS, MMT_BY_CLASS, MMT_BY_FILE, MMT_BY_FUNCTION,
						 MMT_BY_MODULE};
	const struct event_mapping library = {.start = GENERATED,
					      .length = MEBIBYTE,
					      .protection = PROT_READ | PROT_EXEC,
					      .flags = MAP_PRIVATE,
					      .path = "/nowhere/libc.so.6"};
	struct recording_builder *builder = builder_create_with(report_file_path(), false, false);
	uint64_t callchain[DEEP];
	struct mmt_report_options options;
	struct mmt_report *report;

	for (uint64_t i = 0; i < DEEP; i++)
		callchain[i] = GENERATED + i * 16;
	builder_comm(builder, 1000, PID, PID, "deep");
	builder_snapshot(builder, SNAPSHOT_START, 1000, PID, &library, 1);
	builder_call(builder, &(struct builder_call){.call = CALL_MMAP,
						     .time_ns = 2000,
						     .pid = PID,
						     .tid = PID,
						     .arguments = {0, MEBIBYTE, 3, 0x22, UINT64_MAX, 0},
						     .result = (int64_t)ADDRESS,
						     .instruction_pointer = callchain[0],
						     .callchain = callchain,
						     .callchain_count = DEEP});
	builder_round(builder);
	builder_finish(builder, 10000);
	mmt_report_options_init(&options);
	for (size_t i = 0; i < sizeof(views) / sizeof(*views); i++) {
		looks = 0;
		options.by = views[i];
		report = report_file_report(&options);
		ck_assert_uint_eq(report->unfreed_bytes, MEBIBYTE);
		mmt_report_destroy(report);
		ck_assert_uint_ge(looks, DEEP);
		ck_assert_uint_le(looks, 8 * DEEP);
	}
}
END_TEST

enum { WORKERS = 3, ROUNDS = 4 };

static void call_of(struct recording_builder *builder, enum call call, uint64_t time_ns, int32_t tid, uint64_t caller,
		    uint64_t address, uint64_t bytes, uint64_t protection)
{
	bool maps = call == CALL_MMAP;

	builder_call(builder,
		     &(struct builder_call){.call = call,
					    .time_ns = time_ns,
					    .pid = PID,
					    .tid = tid,
					    .arguments = {maps ? 0 : address, bytes, protection, 0x22, UINT64_MAX, 0},
					    .result = maps ? (int64_t)address : 0,
					    .instruction_pointer = caller,
					    .callchain = &caller,
					    .callchain_count = 1});
}

/* Two functions map memory in three threads each; one thread makes accessible what another has reserved, and unmaps. */
static void record_workers(void)
{
	const struct event_mapping program = {.start = CALLER,
					      .length = MEBIBYTE,
					      .protection = PROT_READ | PROT_EXEC,
					      .flags = MAP_PRIVATE,
					      .path = "/nowhere/program"};
	struct recording_builder *builder = builder_create_with(report_file_path(), false, false);
	uint64_t time_ns = 2000;

	builder_comm(builder, 1000, PID, PID, "pool");
	builder_snapshot(builder, SNAPSHOT_START, 1000, PID, &program, 1);
	for (int32_t worker = 0; worker < WORKERS; worker++) {
		for (uint64_t i = 0; i < ROUNDS * (uint64_t)(worker + 1); i++) {
			uint64_t place = ADDRESS + ((uint64_t)worker << 32) + i * 4 * MEBIBYTE;

			call_of(builder, CALL_MMAP, time_ns++, PID + worker, CALLER + 16 + i % 2 * 256, place,
				2 * MEBIBYTE, i % 3 ? PROT_READ | PROT_WRITE : PROT_NONE);
			if (i % 3 == 0)
				call_of(builder, CALL_MPROTECT, time_ns++, PID + (worker + 1) % WORKERS, CALLER + 512,
					place, MEBIBYTE, PROT_READ | PROT_WRITE);
			if (i % 4 == 3)
				call_of(builder, CALL_MUNMAP, time_ns++, PID + (worker + 2) % WORKERS, CALLER + 768,
					place, 2 * MEBIBYTE, 0);
		}
	}
	builder_round(builder);
	builder_finish(builder, 10000);
}

START_TEST(pairs_of_functions_and_threads)
{
	struct mmt_report_options options;
	struct mmt_report *report;
	uint64_t unfreed = 0, committed = 0;

	record_workers();
	mmt_report_options_init(&options);
	options.by = MMT_BY_FUNCTION;
	options.then_by = MMT_BY_THREAD;
	report = report_file_report(&options);
	ck_assert_uint_eq(report->row_count, 3 * WORKERS);
	for (size_t i = 0; i < report->row_count; i++) {
		const struct mmt_row *row = &report->rows[i];

		ck_assert_uint_eq(row->id, i + 1);
		ck_assert_ptr_eq(strstr(row->name, "program+0x"), row->name);
		ck_assert_ptr_nonnull(strstr(row->name, " / "));
		ck_assert_ptr_nonnull(strstr(row->name, " (10"));
		ck_assert(!row->unfreed_count || row->thread_count == 1);
		unfreed += row->unfreed_bytes;
		committed += row->committed_bytes;
	}
	ck_assert_uint_eq(committed, report->committed_bytes);
	ck_assert_uint_eq(unfreed, report->unfreed_bytes);
	ck_assert_uint_eq(unfreed, (4 + 8 + 12 - 1 - 2 - 3) * 2 * MEBIBYTE);
	mmt_report_destroy(report);
}
END_TEST

/* Memory that the thread mapped, and memory of others that it made accessible. */
START_TEST(focus_on_a_thread_that_commits)
{
	const char *focus = "thread=101";
	struct mmt_report_options options;
	struct mmt_report *report;

	record_workers();
	mmt_report_options_init(&options);
	options.focus = &focus;
	options.focus_count = 1;
	report = report_file_report(&options);
	ck_assert_uint_eq(report->unfreed_bytes, 6 * 2 * MEBIBYTE);
	ck_assert_uint_eq(report->committed_bytes, 10 * MEBIBYTE);
	ck_assert_uint_eq(report->reserved_bytes, 2 * MEBIBYTE);
	ck_assert_uint_eq(report->committed_before_bytes, MEBIBYTE);
	ck_assert_uint_eq(report->unfiltered_unfreed_bytes, 18 * 2 * MEBIBYTE);
	mmt_report_destroy(report);
}
END_TEST

Suite *test_suite(void)
{
	Suite *suite = suite_create("rows");
	TCase *tcase = add_tcase(suite, "rows");

	tcase_add_checked_fixture(tcase, report_file_setup, report_file_teardown);
	tcase_add_tests(tcase, frames_are_symbolized_once, many_frames_are_looked_up_once,
			unnamed_code_is_noted_by_every_key, deep_library_stacks_are_searched_once,
			pairs_of_functions_and_threads, focus_on_a_thread_that_commits);
	return suite;
}
