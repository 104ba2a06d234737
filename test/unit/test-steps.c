// SPDX-License-Identifier: LGPL-2.1-or-later
/* The figures of a report over time, in steps. */
#include <check.h>
#include <inttypes.h>
#include <mmtrace/output.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/limits.h"
#include "support/report-file.h"
#include "model/space/space.h"
#include "support/suite.h"
#include "trace/read/reorder.h"
#include "trace/read/recording-file.h"

enum { FIRST = 100, SECOND = 200 };

#define MEBIBYTE (1ull << 20)
#define ADDRESS 0x10000000000ull

/* The linker replaces the library's own functions by these, which have the same types. */
__typeof__(records_next) __real_records_next, __wrap_records_next;
__typeof__(space_next) __real_space_next, __wrap_space_next;

static _Atomic uint64_t records_read, intervals_seen;

struct mmt_error *__wrap_records_next(struct records *records, struct record *record_ret, bool *end_ret,
				      struct mmt_error **damage_ret)
{
	struct mmt_error *error = __real_records_next(records, record_ret, end_ret, damage_ret);

	if (!error && !*end_ret)
		records_read++;
	return error;
}

const struct space_interval *__wrap_space_next(const struct space *space, uint64_t address)
{
	const struct space_interval *interval = __real_space_next(space, address);

	if (interval)
		intervals_seen++;
	return interval;
}

/* Two processes whose RSS is read together at 2600, 3999 and 4000; one of them has ended by the last. */
static void record_two(void)
{
	struct recording_builder *builder = builder_create(report_file_path());

	builder_comm(builder, 1000, FIRST, FIRST, "first");
	builder_comm(builder, 1000, SECOND, SECOND, "second");
	builder_snapshot(builder, SNAPSHOT_START, 1000, FIRST, NULL, 0);
	builder_snapshot(builder, SNAPSHOT_START, 1000, SECOND, NULL, 0);
	builder_mmap_exit(builder, 2500, FIRST, FIRST, ADDRESS, MEBIBYTE, 0x401000);
	builder_note(builder, 2600, FIRST, NOTE_RESIDENT, 3 * MEBIBYTE, 1);
	builder_note(builder, 2600, FIRST, NOTE_SWAPPED, 40 * MEBIBYTE, 1);
	builder_note(builder, 2600, SECOND, NOTE_RESIDENT, 2 * MEBIBYTE, 1);
	builder_note(builder, 2600, SECOND, NOTE_SWAPPED, 50 * MEBIBYTE, 1);
	builder_note(builder, 3999, FIRST, NOTE_RESIDENT, 7 * MEBIBYTE, 2);
	builder_note(builder, 3999, SECOND, NOTE_RESIDENT, MEBIBYTE, 2);
	builder_note(builder, 4000, FIRST, NOTE_RESIDENT, 4 * MEBIBYTE, 3);
	builder_munmap_exit(builder, 6500, FIRST, FIRST, ADDRESS, MEBIBYTE);
	builder_round(builder);
	builder_finish(builder, 7000);
}

/* Each process has its own first and last reading in the window; another process with its PID has others. */
START_TEST(readings_of_processes)
{
	struct recording_builder *builder = builder_create(report_file_path());
	struct mmt_report_options options;
	struct mmt_report *report;

	builder_comm(builder, 1000, FIRST, FIRST, "first");
	builder_snapshot(builder, SNAPSHOT_START, 1000, FIRST, NULL, 0);
	builder_note(builder, 1100, FIRST, NOTE_STARTED, 1, 0);
	builder_note(builder, 1100, FIRST, NOTE_RESIDENT, 3 * MEBIBYTE, 1);
	builder_fork(builder, 1500, SECOND, SECOND, FIRST, FIRST);
	builder_note(builder, 2000, FIRST, NOTE_RESIDENT, 4 * MEBIBYTE, 2);
	builder_note(builder, 2000, FIRST, NOTE_SWAPPED, MEBIBYTE, 2);
	builder_note(builder, 2000, SECOND, NOTE_STARTED, 2, 0);
	builder_note(builder, 2000, SECOND, NOTE_RESIDENT, 2 * MEBIBYTE, 2);
	builder_note(builder, 3000, SECOND, NOTE_RESIDENT, 9 * MEBIBYTE, 3);
	builder_exit(builder, 3100, SECOND, SECOND);
	builder_fork(builder, 3200, SECOND, SECOND, FIRST, FIRST);
	builder_note(builder, 4000, FIRST, NOTE_RESIDENT, 6 * MEBIBYTE, 4);
	builder_note(builder, 4000, SECOND, NOTE_STARTED, 3, 7);
	builder_note(builder, 4000, SECOND, NOTE_RESIDENT, MEBIBYTE, 4);
	builder_round(builder);
	builder_finish(builder, 7000);

	mmt_report_options_init(&options);
	if (_i)
		options.from = (struct mmt_timestamp){.kind = MMT_TIMESTAMP_CLOCK, .ns = 1900};
	report = report_file_report(&options);
	ck_assert_uint_eq(report->process_count, 3);
	ck_assert_int_eq(report->processes[0].container_pid, 0);
	ck_assert_int_eq(report->processes[2].container_pid, 7);
	ck_assert_uint_eq(report->processes[0].readings->start_resident_bytes, (_i ? 4 : 3) * MEBIBYTE);
	ck_assert_uint_eq(report->processes[0].readings->start_swapped_bytes, _i ? MEBIBYTE : 0);
	ck_assert_uint_eq(report->processes[0].readings->end_resident_bytes, 6 * MEBIBYTE);
	ck_assert_uint_eq(report->processes[0].readings->end_swapped_bytes, 0);
	ck_assert_int_eq(mmt_process_growth(&report->processes[0]), (_i ? 1 : 3) * (int64_t)MEBIBYTE);
	ck_assert_uint_eq(report->processes[1].readings->start_ns, 2000);
	ck_assert_uint_eq(report->processes[1].readings->end_ns, 3000);
	ck_assert_int_eq(mmt_process_growth(&report->processes[1]), 7 * (int64_t)MEBIBYTE);
	ck_assert_uint_eq(report->processes[2].readings->start_ns, 4000);
	ck_assert_uint_eq(report->processes[2].readings->end_resident_bytes, MEBIBYTE);
	ck_assert_int_eq(mmt_process_growth(&report->processes[2]), 0);
	mmt_report_destroy(report);
	/* One PID outside, one inside a container. */
	options.pids = (const int32_t[]){FIRST, 7};
	options.pid_count = 2;
	report = report_file_report(&options);
	ck_assert_uint_eq(report->process_count, 3);
	mmt_report_destroy(report);
	options.pids = (const int32_t[]){FIRST, 99};
	report = report_file_report(&options);
	ck_assert_uint_eq(report->process_count, 1);
	mmt_report_destroy(report);
}
END_TEST

static struct mmt_report *report_steps(struct mmt_report_options *options)
{
	options->every_ns = 1000;
	return report_file_report(options);
}

static void check_residents(const struct mmt_report *report, const uint64_t *expected, size_t count)
{
	ck_assert_uint_eq(report->step_count, count);
	for (size_t i = 0; i < count; i++) {
		ck_assert_uint_eq(report->steps[i].process_resident_bytes, expected[i]);
		ck_assert_uint_eq(report->steps[i].resident_bytes, MMT_UNKNOWN);
	}
}

/* Without a note, nothing of a process is swapped out. */
START_TEST(swapped_sizes)
{
	static const uint64_t expected[2][3] = {{90 * MEBIBYTE, 0, 0}, {40 * MEBIBYTE, 0, 0}};
	const int32_t first = FIRST;
	struct mmt_report_options options;
	struct mmt_report *report;

	record_two();
	mmt_report_options_init(&options);
	options.pids = _i ? &first : NULL;
	options.pid_count = (size_t)_i;
	report = report_file_report(&options);
	ck_assert_uint_eq(report->resident_reading_count, 3);
	for (size_t i = 0; i < 3; i++)
		ck_assert_uint_eq(report->resident_readings[i].swapped_bytes, expected[_i][i]);
	ck_assert_uint_eq(report->growth.start_swap_bytes, expected[_i][0]);
	ck_assert_uint_eq(report->growth.end_swap_bytes, 0);
	mmt_report_destroy(report);
}
END_TEST

/* In a corrupt file: no sum and no difference overflows. */
START_TEST(absurd_sizes)
{
	struct recording_builder *builder = builder_create(report_file_path());
	struct mmt_report *report;

	builder_comm(builder, 1000, FIRST, FIRST, "first");
	builder_snapshot(builder, SNAPSHOT_START, 1000, FIRST, NULL, 0);
	builder_snapshot(builder, SNAPSHOT_START, 1000, SECOND, NULL, 0);
	builder_note(builder, 2600, FIRST, NOTE_RESIDENT, 0, 1);
	builder_note(builder, 3999, FIRST, NOTE_RESIDENT, UINT64_MAX, 2);
	builder_note(builder, 3999, FIRST, NOTE_SWAPPED, UINT64_MAX, 2);
	builder_note(builder, 3999, SECOND, NOTE_RESIDENT, UINT64_MAX, 2);
	builder_note(builder, 3999, SECOND, NOTE_SWAPPED, UINT64_MAX, 2);
	builder_round(builder);
	builder_finish(builder, 7000);
	report = report_file_report(NULL);
	ck_assert_uint_eq(report->growth.end_bytes, LIMIT_RESIDENT_BYTES);
	ck_assert_uint_eq(report->growth.end_swap_bytes, LIMIT_RESIDENT_BYTES);
	ck_assert_int_eq(mmt_growth_change(&report->growth), 2 * (int64_t)LIMIT_RESIDENT_BYTES);
	mmt_report_destroy(report);
}
END_TEST

/* A step has the last reading before its end; a reading at its end belongs to the next step. */
START_TEST(resident_sizes)
{
	const uint64_t expected[] = {MMT_UNKNOWN, 5 * MEBIBYTE, 8 * MEBIBYTE, 4 * MEBIBYTE, 4 * MEBIBYTE, 4 * MEBIBYTE};
	struct mmt_report_options options;
	struct mmt_report *report;

	record_two();
	mmt_report_options_init(&options);
	report = report_steps(&options);
	ck_assert_uint_eq(report->steps[0].to_ns, 2000);
	check_residents(report, expected, 6);
	mmt_report_destroy(report);
}
END_TEST

/* Only of the selected processes; and a window starts with the last reading before it. */
START_TEST(resident_sizes_of_selected_processes)
{
	const uint64_t expected[] = {2 * MEBIBYTE, MEBIBYTE, MEBIBYTE};
	const int32_t pid = SECOND;
	struct mmt_report_options options;
	struct mmt_report *report;

	record_two();
	mmt_report_options_init(&options);
	options.pids = &pid;
	options.pid_count = 1;
	options.from = (struct mmt_timestamp){MMT_TIMESTAMP_CLOCK, 2700};
	options.to = (struct mmt_timestamp){MMT_TIMESTAMP_CLOCK, 5000};
	report = report_steps(&options);
	ck_assert_uint_eq(report->steps[0].to_ns, 3700);
	check_residents(report, expected, 3);
	mmt_report_destroy(report);
}
END_TEST

typedef struct mmt_error *write_function(const struct mmt_report *report, const struct mmt_text_options *options,
					 FILE *stream);

static void check_written(write_function *write, const char *expected)
{
	const struct mmt_text_options text_options = {.limit = 1};
	struct mmt_report_options options;
	struct mmt_report *report;
	char *text = NULL;
	size_t size = 0;
	FILE *stream = open_memstream(&text, &size);

	record_two();
	mmt_report_options_init(&options);
	options.to = (struct mmt_timestamp){MMT_TIMESTAMP_CLOCK, 4000};
	report = report_steps(&options);
	ck_assert_ptr_nonnull(stream);
	ck_assert_ptr_null(write(report, &text_options, stream));
	ck_assert_int_eq(fclose(stream), 0);
	ck_assert_msg(strstr(text, expected) != NULL, "no %s in:\n%.2000s", expected, text);
	free(text);
	mmt_report_destroy(report);
}

START_TEST(resident_sizes_in_text)
{
	check_written(mmt_report_write_text, "       after         RSS   committed     unfreed          #1\n"
					     "  0.000001 s           -         0 B         0 B         0 B\n"
					     "  0.000002 s    5.00 MiB    1.00 MiB    1.00 MiB    1.00 MiB\n"
					     "  0.000003 s    8.00 MiB    1.00 MiB    1.00 MiB    1.00 MiB\n");
}
END_TEST

/* What --to resolves at its time, a step cannot. */
START_TEST(steps_show_the_effect_of_losses)
{
	const struct mmt_text_options text_options = {.limit = 1};

	for (unsigned lost = 0; lost <= 1; lost++) {
		struct recording_builder *builder = builder_create_at(report_file_path(), 1000);
		struct mmt_report_options options;
		struct mmt_report *report;
		char *text = NULL;
		size_t size = 0;
		FILE *stream = open_memstream(&text, &size);

		ck_assert_ptr_nonnull(stream);
		builder_comm(builder, 1000, FIRST, FIRST, "first");
		builder_mmap_exit(builder, 1500, FIRST, FIRST, ADDRESS, MEBIBYTE, 0x401000);
		builder_lose(builder, lost);
		builder_finish(builder, 4000);
		mmt_report_options_init(&options);
		report = report_steps(&options);
		ck_assert_ptr_null(mmt_report_write_text(report, &text_options, stream));
		ck_assert_int_eq(fclose(stream), 0);
		ck_assert_int_eq(strstr(text, "steps lack corrections from the end of the recording") != NULL, lost);
		free(text);
		mmt_report_destroy(report);
	}
}
END_TEST

START_TEST(resident_sizes_in_json)
{
	check_written(mmt_report_write_json, "      \"to_ns\": 2000,\n"
					     "      \"unfreed_bytes\": 0,\n"
					     "      \"committed_bytes\": 0,\n"
					     "      \"reserved_bytes\": 0,\n"
					     "      \"resident_bytes\": null,\n"
					     "      \"process_resident_bytes\": null,\n"
					     "      \"heap_in_use_bytes\": null,\n"
					     "      \"heap_free_bytes\": null\n"
					     "    },\n"
					     "    {\n"
					     "      \"to_ns\": 3000,\n"
					     "      \"unfreed_bytes\": 1048576,\n"
					     "      \"committed_bytes\": 1048576,\n"
					     "      \"reserved_bytes\": 0,\n"
					     "      \"resident_bytes\": null,\n"
					     "      \"process_resident_bytes\": 5242880,\n"
					     "      \"heap_in_use_bytes\": null,\n"
					     "      \"heap_free_bytes\": null\n");
}
END_TEST

#define STEPS_BLOCKS 40

/* One mapping in each microsecond, every third of them a reservation; returns the number of all records. */
static uint64_t record_blocks(bool whole)
{
	struct recording_builder *builder = builder_create_at(report_file_path(), 1000);
	const uint64_t caller = 0x401000;

	builder_comm(builder, 1000, FIRST, FIRST, "first");
	builder_snapshot(builder, SNAPSHOT_START, 1000, FIRST, NULL, 0);
	for (uint64_t i = 0; i < STEPS_BLOCKS; i++)
		builder_call(builder, &(struct builder_call){.call = CALL_MMAP,
							     .time_ns = 1500 + i * 1000,
							     .pid = FIRST,
							     .tid = FIRST,
							     .arguments = {0, MEBIBYTE,
									   i % 3 ? PROT_READ | PROT_WRITE : PROT_NONE,
									   MAP_PRIVATE | MAP_ANONYMOUS, UINT64_MAX, 0},
							     .result = (int64_t)(ADDRESS + i * 2 * MEBIBYTE),
							     .callchain = &caller,
							     .callchain_count = 1});
	/* The latest events of a truncated recording are discarded. */
	if (!whole)
		builder_munmap_exit(builder, 1000 + STEPS_BLOCKS * 1000 + ORDER_IN_FLIGHT_NS, FIRST, FIRST, 0, 1);
	builder_round(builder);
	if (whole)
		builder_finish(builder, 1000 + STEPS_BLOCKS * 1000);
	else
		builder_abandon(builder);
	return 1 + 2 + STEPS_BLOCKS;
}

/* The first step has the block of number `first`. */
static void check_sums(const struct mmt_report *report, size_t first)
{
	uint64_t committed = 0, reserved = 0;

	for (size_t i = 0; i < report->step_count; i++) {
		if ((first + i) % 3)
			committed += MEBIBYTE;
		else
			reserved += MEBIBYTE;
		ck_assert_uint_eq(report->steps[i].committed_bytes, committed);
		ck_assert_uint_eq(report->steps[i].reserved_bytes, reserved);
		ck_assert_uint_eq(report->steps[i].unfreed_bytes, committed + reserved);
	}
}

/* The mapped memory is known at any time, and so is a part of it. */
START_TEST(steps_do_not_iterate_over_all_mappings)
{
	struct mmt_report_options options;
	struct mmt_report *report;
	uint64_t without, with;

	record_blocks(true);
	mmt_report_options_init(&options);
	mmt_report_destroy(report_file_report(&options));
	without = intervals_seen;
	report = report_steps(&options);
	with = intervals_seen - without;
	ck_assert_uint_eq(report->step_count, STEPS_BLOCKS);
	check_sums(report, 0);
	mmt_report_destroy(report);
	ck_assert_uint_gt(without, STEPS_BLOCKS);
	ck_assert_uint_eq(with, without);
	options.classes = 1 << MMT_CLASS_ANON;
	report = report_steps(&options);
	check_sums(report, 0);
	mmt_report_destroy(report);
	ck_assert_uint_eq(intervals_seen, without + 2 * with);
	options.classes = 0;
	options.from = (struct mmt_timestamp){MMT_TIMESTAMP_CLOCK, 11000};
	report = report_steps(&options);
	check_sums(report, 10);
	mmt_report_destroy(report);
	ck_assert_uint_eq(intervals_seen, without + 3 * with);
}
END_TEST

static void add_call(struct recording_builder *builder, enum call call, uint64_t time_ns, int32_t pid, uint64_t offset,
		     uint64_t protection)
{
	const uint64_t caller = 0x401000;

	builder_call(builder, &(struct builder_call){.call = call,
						     .time_ns = time_ns,
						     .pid = pid,
						     .tid = pid,
						     .arguments = {ADDRESS + offset, MEBIBYTE, protection,
								   MAP_PRIVATE | MAP_ANONYMOUS, UINT64_MAX, 0},
						     .result = call == CALL_MMAP ? (int64_t)(ADDRESS + offset) : 0,
						     .callchain = &caller,
						     .callchain_count = 1});
}

/* PROT_NONE and MAP_NORESERVE. */
static void map_range(struct recording_builder *builder, uint64_t time_ns, uint64_t offset, uint64_t length)
{
	const uint64_t caller = 0x402000;

	builder_call(builder,
		     &(struct builder_call){.call = CALL_MMAP,
					    .time_ns = time_ns,
					    .pid = FIRST,
					    .tid = FIRST,
					    .arguments = {ADDRESS + offset, length, PROT_NONE,
							  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, UINT64_MAX, 0},
					    .result = (int64_t)(ADDRESS + offset),
					    .callchain = &caller,
					    .callchain_count = 1});
}

/* Reserved, made accessible and revoked, in one process of two and in a class. */
START_TEST(steps_of_committed_memory_follow_its_protection)
{
	static const uint64_t reserved[] = {2, 1, 2, 1, 0};
	static const uint64_t committed[] = {0, 1, 0, 0, 1};
	struct recording_builder *builder = builder_create_at(report_file_path(), 1000);
	const int32_t pid = FIRST;
	struct mmt_report_options options;
	struct mmt_report *report;

	for (int32_t each = FIRST; each <= SECOND; each += SECOND - FIRST) {
		builder_comm(builder, 1000, each, each, "each");
		builder_snapshot(builder, SNAPSHOT_START, 1000, each, NULL, 0);
	}
	for (int32_t each = FIRST; each <= SECOND; each += SECOND - FIRST) {
		add_call(builder, CALL_MMAP, 1100, each, 0, PROT_NONE);
		add_call(builder, CALL_MMAP, 1200, each, MEBIBYTE, PROT_NONE);
		add_call(builder, CALL_MPROTECT, 2100, each, 0, PROT_READ);
		add_call(builder, CALL_MPROTECT, 3100, each, 0, PROT_NONE);
		add_call(builder, CALL_MUNMAP, 4100, each, 0, 0);
		add_call(builder, CALL_MPROTECT, 5100, each, MEBIBYTE, PROT_READ | PROT_WRITE);
		builder_round(builder);
	}
	builder_finish(builder, 6000);
	mmt_report_options_init(&options);
	options.pids = &pid;
	options.pid_count = 1;
	options.classes = 1 << MMT_CLASS_ANON;
	report = report_steps(&options);
	ck_assert_uint_eq(report->step_count, 5);
	for (size_t i = 0; i < report->step_count; i++) {
		ck_assert_uint_eq(report->steps[i].reserved_bytes, reserved[i] * MEBIBYTE);
		ck_assert_uint_eq(report->steps[i].committed_bytes, committed[i] * MEBIBYTE);
		ck_assert_uint_eq(report->steps[i].unfreed_bytes, (reserved[i] + committed[i]) * MEBIBYTE);
	}
	mmt_report_destroy(report);
}
END_TEST

/* Each step is what a report up to that time shows of these classes. */
static void check_steps_with_timestamps(uint32_t classes)
{
	struct mmt_report_options options, until;
	struct mmt_report *report, *timestamp;

	mmt_report_options_init(&options);
	options.classes = classes;
	report = report_steps(&options);
	ck_assert_uint_eq(report->step_count, 6);
	for (size_t i = 0; i < report->step_count; i++) {
		const struct mmt_step *step = &report->steps[i];

		mmt_report_options_init(&until);
		until.classes = classes;
		until.to = (struct mmt_timestamp){MMT_TIMESTAMP_CLOCK, step->to_ns};
		timestamp = report_file_report(&until);
		ck_assert_msg(step->unfreed_bytes == timestamp->unfreed_bytes &&
				  step->committed_bytes == timestamp->committed_bytes &&
				  step->reserved_bytes == timestamp->reserved_bytes,
			      "classes %#x, step %zu: %" PRIu64 " %" PRIu64 " %" PRIu64 ", at that moment %" PRIu64
			      " %" PRIu64 " %" PRIu64,
			      classes, i, step->unfreed_bytes, step->committed_bytes, step->reserved_bytes,
			      timestamp->unfreed_bytes, timestamp->committed_bytes, timestamp->reserved_bytes);
		mmt_report_destroy(timestamp);
	}
	if (classes == 1 << MMT_CLASS_JIT)
		ck_assert_uint_eq(report->steps[3].committed_bytes, 4 * MEBIBYTE);
	mmt_report_destroy(report);
}

/* Bytes of a range and of a mapping that become code, all of what a call has mapped and a part of it. */
START_TEST(steps_of_a_class_follow_memory_that_becomes_code)
{
	struct recording_builder *builder = builder_create_at(report_file_path(), 1000);

	builder_comm(builder, 1000, FIRST, FIRST, "first");
	builder_snapshot(builder, SNAPSHOT_START, 1000, FIRST, NULL, 0);
	map_range(builder, 1100, 64 * MEBIBYTE, 128 * MEBIBYTE);
	add_call(builder, CALL_MMAP, 1200, FIRST, 0, PROT_NONE);
	add_call(builder, CALL_MMAP, 1300, FIRST, 4 * MEBIBYTE, PROT_READ | PROT_WRITE);
	add_call(builder, CALL_MPROTECT, 2100, FIRST, 65 * MEBIBYTE, PROT_READ | PROT_WRITE);
	add_call(builder, CALL_MPROTECT, 3100, FIRST, 65 * MEBIBYTE, PROT_READ | PROT_EXEC);
	add_call(builder, CALL_MPROTECT, 3200, FIRST, 0, PROT_READ | PROT_EXEC);
	add_call(builder, CALL_MPROTECT, 4100, FIRST, 80 * MEBIBYTE, PROT_READ | PROT_EXEC);
	add_call(builder, CALL_MPROTECT, 4200, FIRST, 4 * MEBIBYTE, PROT_READ | PROT_EXEC);
	add_call(builder, CALL_MPROTECT, 5100, FIRST, 80 * MEBIBYTE, PROT_NONE);
	add_call(builder, CALL_MUNMAP, 5200, FIRST, 65 * MEBIBYTE, 0);
	add_call(builder, CALL_MUNMAP, 6100, FIRST, 0, 0);
	builder_round(builder);
	builder_finish(builder, 7000);
	check_steps_with_timestamps(0);
	for (unsigned memory_class = 0; memory_class < MMT_CLASS_KINDS; memory_class++)
		check_steps_with_timestamps(1u << memory_class);
}
END_TEST

/* A clock that jumps forward causes no steps after the end of the recording. */
START_TEST(a_far_event_makes_no_steps)
{
	struct recording_builder *builder = builder_create_at(report_file_path(), 1000);
	struct mmt_report_options options;
	struct mmt_report *report;

	builder_comm(builder, 1000, FIRST, FIRST, "first");
	builder_snapshot(builder, SNAPSHOT_START, 1000, FIRST, NULL, 0);
	for (uint64_t i = 0; i < 2; i++)
		builder_mmap_exit(builder, 1500 + i * 3600000000000, FIRST, FIRST, ADDRESS + i * 2 * MEBIBYTE, MEBIBYTE,
				  0x401000);
	builder_round(builder);
	builder_finish(builder, 5000);
	mmt_report_options_init(&options);
	report = report_steps(&options);
	ck_assert_uint_eq(report->step_count, 4);
	ck_assert_uint_eq(report->steps[2].committed_bytes, MEBIBYTE);
	ck_assert_uint_eq(report->steps[2].unfreed_bytes, MEBIBYTE);
	ck_assert_uint_eq(report->steps[3].to_ns, 5000);
	ck_assert_uint_eq(report->steps[3].unfreed_bytes, 2 * MEBIBYTE);
	mmt_report_destroy(report);
}
END_TEST

static uint64_t count_read(struct mmt_report_options *options)
{
	records_read = 0;
	mmt_report_destroy(report_file_report(options));
	return records_read;
}

/* The file of a recorder that finished contains when it started and ended: no pass beside those of any report. */
START_TEST(windows_take_no_more_passes)
{
	uint64_t records = record_blocks(true), all;
	struct mmt_report_options options;

	mmt_report_options_init(&options);
	all = count_read(&options);
	ck_assert_uint_le(all, 2 * (records + 2));
	options.every_ns = 1000;
	ck_assert_uint_eq(count_read(&options), all);
	options.to = (struct mmt_timestamp){MMT_TIMESTAMP_BEFORE_END, 1};
	ck_assert_uint_eq(count_read(&options), all);
	options.to = (struct mmt_timestamp){MMT_TIMESTAMP_SINCE_START, 20000};
	options.min_age_ns = 1;
	ck_assert_uint_le(count_read(&options), all);
}
END_TEST

/* If the end time is not stored, it is searched first. */
START_TEST(windows_of_a_truncated_recording_take_more)
{
	uint64_t records = record_blocks(false), once;
	struct mmt_report_options options;

	mmt_report_options_init(&options);
	once = count_read(&options);
	ck_assert_uint_ge(once, records);
	options.to = (struct mmt_timestamp){MMT_TIMESTAMP_BEFORE_END, 1};
	ck_assert_uint_ge(count_read(&options), once + records);
}
END_TEST

Suite *test_suite(void)
{
	Suite *suite = suite_create("steps");
	TCase *tcase = add_tcase(suite, "steps");

	tcase_add_checked_fixture(tcase, report_file_setup, report_file_teardown);
	tcase_add_loop_test(tcase, readings_of_processes, 0, 2);
	tcase_add_loop_test(tcase, swapped_sizes, 0, 2);
	tcase_add_tests(tcase, absurd_sizes, resident_sizes, resident_sizes_of_selected_processes,
			resident_sizes_in_text, resident_sizes_in_json, steps_show_the_effect_of_losses,
			a_far_event_makes_no_steps, steps_do_not_iterate_over_all_mappings,
			steps_of_committed_memory_follow_its_protection,
			steps_of_a_class_follow_memory_that_becomes_code, windows_take_no_more_passes,
			windows_of_a_truncated_recording_take_more);
	return suite;
}
