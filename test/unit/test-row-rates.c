// SPDX-License-Identifier: LGPL-2.1-or-later
/* Rates of rows: slopes of what they commit, equal in every grouping, which add up to the slope of RSS. */
#include <check.h>
#include <mmtrace/output.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "support/report-file.h"
#include "support/suite.h"

enum { PID = 100, READINGS = 120 };

#define SECOND 1000000000ull
#define MEBIBYTE (1ull << 20)
#define START SECOND
#define ADDRESS 0x10000000000ull
#define RESERVED 0x20000000000ull
#define CODE 0x400000ull
#define LIVE 64 /* mappings in use at any time */

static struct mmt_report *report;

static void free_report(void)
{
	mmt_report_destroy(report);
	report = NULL;
	report_file_teardown();
}

static struct recording_builder *start_recording(void)
{
	const struct event_mapping mappings[] = {
	    {.start = CODE, .length = MEBIBYTE, .protection = PROT_READ | PROT_EXEC, .flags = MAP_PRIVATE, .path = ""},
	    {.start = RESERVED, .length = 64 * MEBIBYTE, .flags = MAP_PRIVATE, .path = ""}};
	struct recording_builder *builder = builder_create(report_file_path());

	builder_snapshot(builder, SNAPSHOT_START, START, PID, mappings, 2);
	return builder;
}

/* RSS rises by this much in each of the 60 seconds; 64 MiB were there before. */
static void add_readings(struct recording_builder *builder, uint64_t bytes_per_second)
{
	for (uint64_t i = 0; i < READINGS; i++)
		builder_note(builder, START + i * SECOND / 2 + 9, PID, NOTE_RESIDENT,
			     100 * MEBIBYTE + i * bytes_per_second / 2, i + 1);
}

/*
 * Like a pool of buffers: each second maps 16 of 1 MiB, and unmaps 15 that are 4 s old. What lives for 4 s is counted
 * as made in the recording after that time, although the pool was full before. `caller`: of every fourth mapping is
 * another.
 */
static void churn_until(struct recording_builder *builder, uint64_t from, uint64_t to)
{
	for (uint64_t i = from * 16; i < to * 16; i++) {
		uint64_t time = START + i * SECOND / 16 + 1;

		builder_mmap_exit(builder, time, PID, PID, ADDRESS + i * 2 * MEBIBYTE, MEBIBYTE, CODE + 1);
		if (i >= LIVE && i % 16)
			builder_munmap_exit(builder, time + 1, PID, PID, ADDRESS + (i - LIVE) * 2 * MEBIBYTE, MEBIBYTE);
	}
}

static void churn(struct recording_builder *builder)
{
	churn_until(builder, 0, 60);
}

static const struct mmt_report *report_by(enum mmt_row_key by)
{
	struct mmt_report_options options;

	mmt_report_options_init(&options);
	options.by = by;
	mmt_report_destroy(report);
	report = report_file_report(&options);
	return report;
}

static void assert_mib_per_minute(int64_t rate, int64_t least, int64_t most)
{
	ck_assert_int_ge(rate, least * (int64_t)MEBIBYTE);
	ck_assert_int_le(rate, most * (int64_t)MEBIBYTE);
}

/* The row holds 124 MiB after a minute, of which it leaked 60. */
START_TEST(churn_is_no_growth)
{
	struct recording_builder *builder = start_recording();

	churn(builder);
	builder_finish(builder, START + 60 * SECOND);
	for (int by = MMT_BY_STACK; by <= MMT_BY_THREAD; by++) {
		ck_assert_uint_eq(report_by((enum mmt_row_key)by)->row_count, 1);
		ck_assert_uint_ge(report->rows[0].memory_bytes, 115 * MEBIBYTE);
		assert_mib_per_minute(report->rows[0].bytes_per_minute, 57, 63);
	}
}
END_TEST

/* Accessible bytes of reserved memory count for the row that made them accessible, and only they do. */
START_TEST(reserved_memory_is_no_growth)
{
	const uint64_t caller = CODE + 0x2001;
	struct recording_builder *builder = start_recording();

	for (uint64_t i = 0; i < 60; i++) {
		builder_call(builder, &(struct builder_call){.call = CALL_MMAP,
							     .time_ns = START + i * SECOND + 1,
							     .pid = PID,
							     .tid = PID,
							     .result = (int64_t)(ADDRESS + i * 16 * MEBIBYTE),
							     .arguments = {0, 8 * MEBIBYTE, PROT_NONE,
									   MAP_PRIVATE | MAP_ANONYMOUS, -1ULL, 0},
							     .callchain = &caller,
							     .callchain_count = 1});
		builder_call(builder, &(struct builder_call){.call = CALL_MPROTECT,
							     .time_ns = START + i * SECOND + SECOND / 2,
							     .pid = PID,
							     .tid = PID,
							     .arguments = {ADDRESS + i * 16 * MEBIBYTE, 2 * MEBIBYTE,
									   PROT_READ | PROT_WRITE},
							     .callchain = &(const uint64_t){CODE + 1},
							     .callchain_count = 1});
	}
	builder_finish(builder, START + 60 * SECOND);
	ck_assert_uint_eq(report_by(MMT_BY_STACK)->row_count, 2);
	assert_mib_per_minute(report->rows[0].bytes_per_minute, 115, 125);
	ck_assert_uint_eq(report->rows[1].unfreed_bytes, 60 * 8 * MEBIBYTE);
	ck_assert_int_eq(report->rows[1].bytes_per_minute, 0);
	ck_assert_uint_eq(report_by(MMT_BY_PROCESS)->row_count, 1);
	assert_mib_per_minute(report->rows[0].bytes_per_minute, 115, 125);
	ck_assert_uint_eq(report->rows[0].committed_trend[MMT_TREND_POINTS - 1], 120 * MEBIBYTE);
	ck_assert_uint_eq(report_by(MMT_BY_CLASS)->row_count, 1);
	assert_mib_per_minute(report->rows[0].bytes_per_minute, 115, 125);
}
END_TEST

static struct recording_residency pages_of(const struct resident_run *runs, size_t count)
{
	struct recording_residency residency = {0};
	struct process_residency *process = vector_append(&residency.processes);

	ck_assert_ptr_nonnull(process);
	process->pid = PID;
	process->time_ns = START + 60 * SECOND;
	for (size_t i = 0; i < count; i++) {
		process->resident_bytes += runs[i].end - runs[i].start;
		ck_assert(vector_push(&process->runs, runs[i]));
	}
	return residency;
}

/* When recording ends, these pages are resident. */
static void add_pages(struct recording_builder *builder, const struct resident_run *runs, size_t count)
{
	struct recording_residency residency = pages_of(runs, count);

	report_file_add_residency(builder, &residency);
}

/* A function maps 1 GiB early and touches none of it; of 1 MiB in each second it touches half. */
START_TEST(only_resident_memory_counts)
{
	struct resident_run runs[60];
	struct recording_builder *builder = start_recording();

	builder_mmap_exit(builder, START + 1, PID, PID, RESERVED + 1024 * MEBIBYTE, 1024 * MEBIBYTE, CODE + 0x2001);
	for (uint64_t i = 0; i < 60; i++) {
		builder_mmap_exit(builder, START + i * SECOND + 2, PID, PID, ADDRESS + i * 2 * MEBIBYTE, MEBIBYTE,
				  CODE + 1);
		runs[i] = (struct resident_run){ADDRESS + i * 2 * MEBIBYTE, ADDRESS + i * 2 * MEBIBYTE + MEBIBYTE / 2};
	}
	/* 45 MiB per minute, of which a third is in other memory. */
	add_readings(builder, MEBIBYTE * 3 / 4);
	add_pages(builder, runs, 60);
	builder_finish(builder, START + 60 * SECOND);
	ck_assert_uint_eq(report_by(MMT_BY_STACK)->row_count, 2);
	assert_mib_per_minute(report->rows[0].bytes_per_minute, 29, 31);
	ck_assert_int_eq(report->rows[1].bytes_per_minute, 0);
	assert_mib_per_minute(report->growth.bytes_per_minute, 44, 46);
	for (int by = MMT_BY_MODULE; by <= MMT_BY_PROCESS; by++) {
		ck_assert_uint_eq(report_by((enum mmt_row_key)by)->row_count, 1);
		assert_mib_per_minute(report->rows[0].bytes_per_minute, 29, 31);
	}
}
END_TEST

/* Of 1 MiB in each second all is touched. What was mapped, or made accessible, after the last reading of pages does not
 * make the rate too low. */
START_TEST(late_memory_counts_as_resident)
{
	for (int reserved = 0; reserved < 2; reserved++) {
		struct recording_residency residency;
		struct resident_run runs[40];
		struct recording_builder *builder = start_recording();

		for (uint64_t i = 0; i < 60; i++) {
			uint64_t address = reserved ? RESERVED + i * MEBIBYTE : ADDRESS + i * 2 * MEBIBYTE;

			if (reserved)
				builder_call(builder, &(struct builder_call){
							  .call = CALL_MPROTECT,
							  .time_ns = START + i * SECOND + 2,
							  .pid = PID,
							  .tid = PID,
							  .arguments = {address, MEBIBYTE, PROT_READ | PROT_WRITE},
							  .callchain = &(const uint64_t){CODE + 1},
							  .callchain_count = 1});
			else
				builder_mmap_exit(builder, START + i * SECOND + 2, PID, PID, address, MEBIBYTE,
						  CODE + 1);
			if (i < 40)
				runs[i] = (struct resident_run){address, address + MEBIBYTE};
		}
		add_readings(builder, MEBIBYTE);
		residency = pages_of(runs, 40);
		residency.processes.items[0].time_ns = START + 39 * SECOND + SECOND / 2;
		report_file_add_residency(builder, &residency);
		builder_finish(builder, START + 60 * SECOND);
		ck_assert_uint_eq(report_by(MMT_BY_STACK)->row_count, 1);
		assert_mib_per_minute(report->rows[0].bytes_per_minute, 57, 63);
	}
}
END_TEST

/* A quarter of each block is touched. What was read during recording includes blocks that are unmapped by now. */
START_TEST(churn_after_a_reading_changes_no_share)
{
	struct recording_builder *builder = start_recording();
	struct event_mapping lines[51 + LIVE] = {
	    {.start = CODE, .length = MEBIBYTE, .protection = PROT_READ | PROT_EXEC, .flags = MAP_PRIVATE, .path = ""}};
	struct resident_run runs[49 + LIVE];
	size_t count = 0;

	for (uint64_t i = 0; i < 50 * 16; i++) {
		uint64_t address = ADDRESS + i * 2 * MEBIBYTE;

		if (i % 16 && i < 50 * 16 - LIVE)
			continue;
		runs[count++] = (struct resident_run){address, address + MEBIBYTE / 4};
		lines[count] = (struct event_mapping){.start = address,
						      .length = MEBIBYTE,
						      .protection = PROT_READ | PROT_WRITE,
						      .flags = MAP_PRIVATE | MAP_ANONYMOUS,
						      .path = ""};
	}
	lines[count + 1] =
	    (struct event_mapping){.start = RESERVED, .length = 64 * MEBIBYTE, .flags = MAP_PRIVATE, .path = ""};
	churn_until(builder, 0, 50);
	builder_snapshot(builder, SNAPSHOT_INTERVAL, START + 50 * SECOND - 1, PID, lines, count + 2);
	builder_pages(builder, START + 50 * SECOND, PID,
		      &(struct builder_pages){1, false, count * MEBIBYTE / 4, runs, count});
	churn_until(builder, 50, 60);
	add_readings(builder, MEBIBYTE / 4);
	builder_finish(builder, START + 60 * SECOND);
	ck_assert_uint_eq(report_by(MMT_BY_STACK)->row_count, 1);
	assert_mib_per_minute(report->rows[0].bytes_per_minute, 13, 17);
}
END_TEST

typedef struct mmt_error *(*writer_fn)(const struct mmt_report *report, const struct mmt_text_options *options,
				       FILE *stream);

static char *render(writer_fn write)
{
	const struct mmt_text_options options = {.stack_frames = SIZE_MAX};
	size_t size;
	char *text = NULL;
	FILE *stream = open_memstream(&text, &size);

	ck_assert_ptr_nonnull(stream);
	ck_assert_ptr_null(write(report, &options, stream));
	fclose(stream);
	return text;
}

/* Of what was mapped after the recorder had listed the maps, no pages are known: not even that there are none. */
START_TEST(memory_mapped_after_the_last_reading_is_unknown)
{
	static const writer_fn writers[] = {mmt_report_write_text, mmt_report_write_json, mmt_report_write_csv};
	static const char *const unknown[] = {"resident unknown", "\"resident_bytes\": null,", ",16777216,,,16777216,"};
	const struct event_mapping lines[] = {
	    {.start = CODE, .length = MEBIBYTE, .protection = PROT_READ | PROT_EXEC, .flags = MAP_PRIVATE, .path = ""},
	    {.start = RESERVED, .length = 64 * MEBIBYTE, .flags = MAP_PRIVATE, .path = ""}};
	struct recording_builder *builder = start_recording();

	builder_snapshot(builder, SNAPSHOT_INTERVAL, START + 30 * SECOND, PID, lines, 2);
	if (_i)
		builder_mmap_exit(builder, START + 30 * SECOND + 1, PID, PID, ADDRESS, 16 * MEBIBYTE, CODE + 1);
	builder_pages(builder, START + 30 * SECOND + 2, PID,
		      &(struct builder_pages){1, false, 4096, &(const struct resident_run){CODE, CODE + 4096}, 1});
	if (!_i)
		builder_mmap_exit(builder, START + 31 * SECOND, PID, PID, ADDRESS, 16 * MEBIBYTE, CODE + 1);
	builder_finish(builder, START + 60 * SECOND);
	ck_assert_uint_eq(report_by(MMT_BY_STACK)->row_count, 1);
	ck_assert_uint_eq(report->rows[0].resident_bytes, MMT_UNKNOWN);
	ck_assert_uint_eq(report->rows[0].memory_bytes, 16 * MEBIBYTE);
	ck_assert_uint_eq(report->causes[0].resident_bytes, MMT_UNKNOWN);
	ck_assert_uint_eq(report->resident_bytes, MMT_UNKNOWN);
	for (size_t i = 0; i < sizeof(writers) / sizeof(*writers); i++) {
		char *text = render(writers[i]);

		ck_assert_msg(strstr(text, unknown[i]), "%s", text);
		free(text);
	}
}
END_TEST

/* Of each 2 MiB that another call makes accessible, half is touched: the same growth in every grouping. */
START_TEST(only_resident_memory_of_reservations_counts)
{
	struct resident_run runs[60];
	struct recording_builder *builder = start_recording();

	builder_call(builder, &(struct builder_call){
				  .call = CALL_MMAP,
				  .time_ns = START + 1,
				  .pid = PID,
				  .tid = PID,
				  .result = (int64_t)ADDRESS,
				  .arguments = {0, 1024 * MEBIBYTE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1ULL, 0},
				  .callchain = &(const uint64_t){CODE + 0x2001},
				  .callchain_count = 1});
	for (uint64_t i = 0; i < 60; i++) {
		uint64_t start = ADDRESS + i * 2 * MEBIBYTE;

		builder_call(builder, &(struct builder_call){.call = CALL_MPROTECT,
							     .time_ns = START + i * SECOND + SECOND / 2,
							     .pid = PID,
							     .tid = PID,
							     .arguments = {start, 2 * MEBIBYTE, PROT_READ | PROT_WRITE},
							     .callchain = &(const uint64_t){CODE + 1},
							     .callchain_count = 1});
		runs[i] = (struct resident_run){start, start + MEBIBYTE};
	}
	add_readings(builder, MEBIBYTE);
	add_pages(builder, runs, 60);
	builder_finish(builder, START + 60 * SECOND);
	for (int by = MMT_BY_STACK; by <= MMT_BY_THREAD; by++) {
		report_by((enum mmt_row_key)by);
		ck_assert_uint_eq(report->rows[0].memory_bytes, 60 * MEBIBYTE);
		assert_mib_per_minute(report->rows[0].bytes_per_minute, 57, 63);
	}
}
END_TEST

/* Of 1 MiB in each second, an eighth is resident at the end and the rest is swapped out. */
START_TEST(swapped_memory_counts)
{
	struct resident_run resident[60], out[60];
	struct recording_builder *builder = start_recording();
	struct recording_residency swapped;

	for (uint64_t i = 0; i < 60; i++) {
		uint64_t start = ADDRESS + i * 2 * MEBIBYTE;

		builder_mmap_exit(builder, START + i * SECOND + 2, PID, PID, start, MEBIBYTE, CODE + 1);
		resident[i] = (struct resident_run){start, start + MEBIBYTE / 8};
		out[i] = (struct resident_run){start + MEBIBYTE / 8, start + MEBIBYTE};
	}
	add_readings(builder, MEBIBYTE);
	add_pages(builder, resident, 60);
	swapped = pages_of(out, 60);
	report_file_add_swapped(builder, &swapped);
	builder_finish(builder, START + 60 * SECOND);
	ck_assert_uint_eq(report_by(MMT_BY_STACK)->row_count, 1);
	ck_assert_uint_eq(report->rows[0].memory_bytes, 60 * MEBIBYTE);
	assert_mib_per_minute(report->rows[0].bytes_per_minute, 57, 63);
}
END_TEST

#define POOL (ADDRESS + 4096 * MEBIBYTE)
#define UNTOUCHED 0x40000000000ull

/* Pages that one process has touched: 10 MiB of each second in one mapping, 5 MiB of the first 20 s in another. */
static uint64_t touched_by(uint64_t time_ns, struct resident_run *runs_ret)
{
	uint64_t pool_ns = time_ns < 20 * SECOND ? time_ns : 20 * SECOND;

	runs_ret[0] = (struct resident_run){ADDRESS, ADDRESS + (time_ns / SECOND + 1) * 10 * MEBIBYTE};
	runs_ret[1] = (struct resident_run){POOL, POOL + (pool_ns / SECOND + 1) * 5 * MEBIBYTE};
	return runs_ret[0].end - runs_ret[0].start + runs_ret[1].end - runs_ret[1].start;
}

/* Two functions map memory in the first second, and touch it later, one until 20 s, which may lie between two readings.
 * `interval`: seconds between readings of pages. */
static void record_late_touches(uint64_t interval)
{
	const struct event_mapping lines[] = {
	    {.start = CODE, .length = MEBIBYTE, .protection = PROT_READ | PROT_EXEC, .flags = MAP_PRIVATE, .path = ""},
	    {.start = ADDRESS,
	     .length = 2048 * MEBIBYTE,
	     .protection = PROT_READ | PROT_WRITE,
	     .flags = MAP_PRIVATE | MAP_ANONYMOUS,
	     .path = ""},
	    {.start = POOL,
	     .length = 512 * MEBIBYTE,
	     .protection = PROT_READ | PROT_WRITE,
	     .flags = MAP_PRIVATE | MAP_ANONYMOUS,
	     .path = ""},
	    {.start = RESERVED, .length = 64 * MEBIBYTE, .flags = MAP_PRIVATE, .path = ""},
	    {.start = UNTOUCHED,
	     .length = 1024 * MEBIBYTE,
	     .protection = PROT_READ | PROT_WRITE,
	     .flags = MAP_PRIVATE | MAP_ANONYMOUS,
	     .path = ""}};
	struct recording_builder *builder = start_recording();
	struct resident_run runs[2];
	uint32_t reading = 0;

	builder_mmap_exit(builder, START + 1, PID, PID, ADDRESS, 2048 * MEBIBYTE, CODE + 1);
	builder_mmap_exit(builder, START + 2, PID, PID, POOL, 512 * MEBIBYTE, CODE + 0x2001);
	/* Memory of the same function that nobody touches is no growth. */
	builder_mmap_exit(builder, START + 45 * SECOND - SECOND / 2, PID, PID, UNTOUCHED, 1024 * MEBIBYTE,
			  CODE + 0x2001);
	for (uint64_t second = interval; second < 60; second += interval) {
		uint64_t touched = touched_by(second * SECOND, runs);

		builder_snapshot(builder, SNAPSHOT_INTERVAL, START + second * SECOND - 1, PID, lines,
				 second < 45 ? 4 : 5);
		builder_pages(builder, START + second * SECOND, PID,
			      &(struct builder_pages){++reading, false, touched, runs, 2});
	}
	for (uint64_t i = 0; i < READINGS; i++)
		builder_note(builder, START + i * SECOND / 2 + 9, PID, NOTE_RESIDENT,
			     100 * MEBIBYTE + touched_by(i * SECOND / 2, runs), i + 1);
	(void)touched_by(59 * SECOND, runs);
	add_pages(builder, runs, 2);
	builder_finish(builder, START + 60 * SECOND);
}

START_TEST(touching_is_growth)
{
	for (uint64_t interval = 1; interval < 26; interval += 8) {
		record_late_touches(interval);
		ck_assert_uint_eq(report_by(MMT_BY_STACK)->row_count, 2);
		assert_mib_per_minute(report->growth.bytes_per_minute, 590, 610);
		assert_mib_per_minute(report->rows[0].bytes_per_minute, 570, 630);
		assert_mib_per_minute(report->rows[1].bytes_per_minute, -1, 1);
		ck_assert_int_eq(report->rows[0].verdict, MMT_ROW_KEEPS_GROWING);
		ck_assert(!mmt_row_leaks(report->rows[1].verdict));
		ck_assert_int_eq(report->causes[0].verdict, MMT_ROW_KEEPS_GROWING);
		for (int by = MMT_BY_MODULE; by <= MMT_BY_PROCESS; by++) {
			ck_assert_uint_eq(report_by((enum mmt_row_key)by)->row_count, 1);
			assert_mib_per_minute(report->rows[0].bytes_per_minute, 570, 630);
			ck_assert_int_eq(report->rows[0].verdict, MMT_ROW_KEEPS_GROWING);
		}
	}
}
END_TEST

/* A table of 1 MiB in each second or, if it does not grow, of 30 MiB: each time that it is full, or after some seconds,
 * it moves to another mapping. */
static void record_table(bool grows)
{
	struct event_mapping lines[] = {
	    {.start = CODE, .length = MEBIBYTE, .protection = PROT_READ | PROT_EXEC, .flags = MAP_PRIVATE, .path = ""},
	    {.protection = PROT_READ | PROT_WRITE, .flags = MAP_PRIVATE | MAP_ANONYMOUS, .path = ""},
	    {.start = RESERVED, .length = 64 * MEBIBYTE, .flags = MAP_PRIVATE, .path = ""}};
	struct recording_builder *builder = start_recording();
	struct resident_run run = {0};
	uint64_t length = 0;

	for (uint64_t second = 0; second < 60; second++) {
		uint64_t used = grows ? second + 1 : 30, time = START + second * SECOND, old = run.start,
			 freed = length;

		if (grows ? used > length : second % 6 == 0) {
			length = grows ? used * 3 / 2 + 1 : 30;
			run.start = ADDRESS + second * 4096 * MEBIBYTE;
			builder_mmap_exit(builder, time + 1, PID, PID, run.start, length * MEBIBYTE, CODE + 1);
			if (freed)
				builder_munmap_exit(builder, time + 2, PID, PID, old, freed * MEBIBYTE);
		}
		run.end = run.start + used * MEBIBYTE;
		lines[1].start = run.start;
		lines[1].length = length * MEBIBYTE;
		builder_snapshot(builder, SNAPSHOT_INTERVAL, time + 3, PID, lines, 3);
		builder_pages(builder, time + 4, PID,
			      &(struct builder_pages){(uint32_t)second + 1, false, used * MEBIBYTE, &run, 1});
		builder_note(builder, time + 9, PID, NOTE_RESIDENT, (100 + used) * MEBIBYTE, second + 1);
	}
	add_pages(builder, &run, 1);
	builder_finish(builder, START + 60 * SECOND);
}

/* Nearly all that it mapped was unmapped soon, and it grows. */
START_TEST(a_table_grows)
{
	record_table(_i);
	ck_assert_uint_eq(report_by(MMT_BY_STACK)->row_count, 1);
	ck_assert_uint_eq(report->rows[0].unfreed_count, 1);
	ck_assert_uint_gt(report->rows[0].freed_count, 3);
	if (_i) {
		ck_assert_int_eq(report->rows[0].verdict, MMT_ROW_KEEPS_GROWING);
		assert_mib_per_minute(report->rows[0].bytes_per_minute, 57, 63);
		ck_assert(report->rows[0].hint && strstr(report->rows[0].hint, "larger ones"));
	} else {
		ck_assert_int_eq(report->rows[0].verdict, MMT_ROW_TRAFFIC);
		assert_mib_per_minute(report->rows[0].bytes_per_minute, -1, 1);
		ck_assert_ptr_null(report->rows[0].hint);
	}
}
END_TEST

/* A queue of 16 MiB in each second, in which each lives for 4 s: or the consumer takes only three of four that come. */
START_TEST(a_queue_grows)
{
	struct recording_builder *builder = start_recording();

	for (uint64_t i = 0; i < 60 * 16; i++) {
		uint64_t time = START + i * SECOND / 16 + 1, old = _i ? i / 4 * 3 + i % 4 - 1 : i - LIVE;

		builder_mmap_exit(builder, time, PID, PID, ADDRESS + i * 2 * MEBIBYTE, MEBIBYTE, CODE + 1);
		if (_i ? i % 4 != 0 : i >= LIVE)
			builder_munmap_exit(builder, time + 1, PID, PID, ADDRESS + old * 2 * MEBIBYTE, MEBIBYTE);
	}
	builder_finish(builder, START + 60 * SECOND);
	ck_assert_uint_eq(report_by(MMT_BY_STACK)->row_count, 1);
	ck_assert_uint_eq(report->rows[0].unfreed_count, _i ? 240 : LIVE);
	ck_assert_int_eq(report->rows[0].verdict, _i ? MMT_ROW_KEEPS_GROWING : MMT_ROW_TRAFFIC);
	if (_i)
		assert_mib_per_minute(report->rows[0].bytes_per_minute, 235, 245);
}
END_TEST

/* A collector unmaps all 125 mappings four times a second, from one of many moments on. It stops before the recording
 * ends, with all of them: the series of what is mapped, whose points are half a saw-tooth apart, rises, but they were
 * as many before. */
START_TEST(a_collector_that_stops_is_no_growth)
{
	const uint64_t step = 1974000;
	struct recording_builder *builder = start_recording();

	for (uint64_t i = 0; i < 2000; i++) {
		uint64_t time = START + 3 * SECOND / 10 + (uint64_t)_i * SECOND / 200 + i * step, first = i - i % 125;

		for (uint64_t old = first - 125; first == i && i && old < first; old++)
			builder_munmap_exit(builder, time, PID, PID, ADDRESS + old * MEBIBYTE, MEBIBYTE / 16);
		builder_mmap_exit(builder, time + 1, PID, PID, ADDRESS + i * MEBIBYTE, MEBIBYTE / 16, CODE + 1);
	}
	builder_finish(builder, START + SECOND * 459 / 100);
	ck_assert_uint_eq(report_by(MMT_BY_STACK)->row_count, 1);
	ck_assert_uint_eq(report->rows[0].unfreed_count, 125);
	ck_assert_int_eq(report->rows[0].verdict, MMT_ROW_TRAFFIC);
}
END_TEST

static uint64_t tooth_at(uint64_t second)
{
	return ((second + 11) % 12 * 2 / 3 + 1) * 8 * MEBIBYTE;
}

/* A program touches eight blocks in 12 s, and gives them back, and later twice as many others. By chance each reading
 * of pages finds more of the first than the one before; RSS shows that there is no growth. */
START_TEST(saw_teeth_between_readings_are_no_growth)
{
	static const uint64_t read_at[] = {1, 14, 28, 42, 56};
	const struct event_mapping lines[] = {
	    {.start = CODE, .length = MEBIBYTE, .protection = PROT_READ | PROT_EXEC, .flags = MAP_PRIVATE, .path = ""},
	    {.start = ADDRESS,
	     .length = 64 * MEBIBYTE,
	     .protection = PROT_READ | PROT_WRITE,
	     .flags = MAP_PRIVATE | MAP_ANONYMOUS,
	     .path = ""},
	    {.start = RESERVED, .length = 64 * MEBIBYTE, .flags = MAP_PRIVATE, .path = ""}};
	struct recording_builder *builder = start_recording();
	struct resident_run run = {ADDRESS, 0};

	builder_mmap_exit(builder, START + 1, PID, PID, ADDRESS, 64 * MEBIBYTE, CODE + 1);
	for (unsigned i = 0; i < 5; i++) {
		uint64_t time = START + read_at[i] * SECOND;

		run.end = ADDRESS + tooth_at(read_at[i]);
		builder_snapshot(builder, SNAPSHOT_INTERVAL, time - 1, PID, lines, 3);
		builder_pages(builder, time, PID, &(struct builder_pages){i + 1, false, tooth_at(read_at[i]), &run, 1});
	}
	for (uint64_t i = 0; i < READINGS; i++)
		builder_note(builder, START + i * SECOND / 2 + 9, PID, NOTE_RESIDENT,
			     100 * MEBIBYTE + 2 * tooth_at(i / 2 + 6), i + 1);
	run.end = ADDRESS + tooth_at(60);
	add_pages(builder, &run, 1);
	builder_finish(builder, START + 60 * SECOND);
	ck_assert_uint_eq(report_by(MMT_BY_STACK)->row_count, 1);
	ck_assert_int_ne(report->growth.verdict, MMT_VERDICT_GROWING);
	ck_assert_int_ne(report->rows[0].verdict, MMT_ROW_KEEPS_GROWING);
}
END_TEST

/* A process touches 1 MiB in each second. Its pages are read some ms before those of another one; the last time after
 * them, or before. The third time, a process that lives briefly is read once between these readings; the fourth time,
 * the other one is read twice, because recording ended in the middle of a round. */
START_TEST(processes_are_read_one_after_the_other)
{
	struct event_mapping lines[62] = {
	    {.start = CODE, .length = MEBIBYTE, .protection = PROT_READ | PROT_EXEC, .flags = MAP_PRIVATE, .path = ""}};
	const struct resident_run other = {CODE, CODE + MEBIBYTE};
	struct recording_builder *builder = start_recording();
	struct resident_run runs[60];

	builder_snapshot(builder, SNAPSHOT_START, START, PID + 1, lines, 1);
	for (uint64_t i = 0; i < 60; i++) {
		uint64_t time = START + i * SECOND, address = ADDRESS + i * 2 * MEBIBYTE;

		builder_mmap_exit(builder, time + 2, PID, PID, address, MEBIBYTE, CODE + 1);
		runs[i] = (struct resident_run){address, address + MEBIBYTE};
		lines[i + 1] = (struct event_mapping){.start = address,
						      .length = MEBIBYTE,
						      .protection = PROT_READ | PROT_WRITE,
						      .flags = MAP_PRIVATE | MAP_ANONYMOUS,
						      .path = ""};
		lines[i + 2] = (struct event_mapping){
		    .start = RESERVED, .length = 64 * MEBIBYTE, .flags = MAP_PRIVATE, .path = ""};
		for (int turn = 0; turn < (i == 59 && _i == 3 ? 3 : 2) && i % 8 == 3; turn++) {
			uint64_t read = time + SECOND / 4 + (uint64_t)turn * SECOND / 50;
			bool is_other = i < 59 ? turn == 1 : _i == 3 ? turn < 2 : turn == (_i == 1);

			builder_snapshot(builder, SNAPSHOT_INTERVAL, read - 1, PID + is_other, lines,
					 is_other ? 1 : i + 3);
			builder_pages(builder, read, PID + is_other,
				      &(struct builder_pages){(uint32_t)i + 1, false, (is_other ? 1 : i + 1) * MEBIBYTE,
							      is_other ? &other : runs, is_other ? 1 : i + 1});
		}
		if (_i == 2 && i == 32) {
			builder_fork(builder, time + 3, PID + 2, PID + 2, PID + 1, PID + 1);
			builder_snapshot(builder, SNAPSHOT_INTERVAL, time + 4, PID + 2, lines, 1);
			builder_pages(builder, time + 5, PID + 2,
				      &(struct builder_pages){(uint32_t)i + 1, false, MEBIBYTE, &other, 1});
		}
	}
	add_readings(builder, MEBIBYTE);
	builder_finish(builder, START + 60 * SECOND);
	ck_assert_uint_eq(report_by(MMT_BY_STACK)->row_count, 1);
	assert_mib_per_minute(report->rows[0].bytes_per_minute, 58, 62);
}
END_TEST

/* A recording that is too short for verdicts has no rates, of rows or of the processes. */
START_TEST(short_recordings_have_no_rates)
{
	for (uint64_t tenths = 1; tenths <= 25; tenths += 6) {
		struct recording_builder *builder = start_recording();
		bool rated = tenths >= 20;

		add_readings(builder, MEBIBYTE);
		builder_mmap_exit(builder, START + SECOND / 20, PID, PID, ADDRESS, MEBIBYTE, CODE + 1);
		builder_finish(builder, START + tenths * SECOND / 10);
		report_by(MMT_BY_STACK);
		ck_assert_int_eq(report->rows[0].bytes_per_minute != MMT_RATE_UNKNOWN, rated);
		ck_assert_int_eq(report->causes[0].bytes_per_minute != MMT_RATE_UNKNOWN, rated);
	}
}
END_TEST

Suite *test_suite(void)
{
	Suite *suite = suite_create("row-rates");
	TCase *tcase = add_tcase(suite, "row-rates");

	tcase_add_checked_fixture(tcase, report_file_setup, free_report);
	tcase_add_tests(tcase, churn_is_no_growth, reserved_memory_is_no_growth, only_resident_memory_counts,
			late_memory_counts_as_resident, churn_after_a_reading_changes_no_share,
			only_resident_memory_of_reservations_counts, swapped_memory_counts, touching_is_growth,
			saw_teeth_between_readings_are_no_growth, short_recordings_have_no_rates);
	tcase_add_loop_test(tcase, a_table_grows, 0, 2);
	tcase_add_loop_test(tcase, a_collector_that_stops_is_no_growth, 0, 24);
	tcase_add_loop_test(tcase, memory_mapped_after_the_last_reading_is_unknown, 0, 2);
	tcase_add_loop_test(tcase, a_queue_grows, 0, 2);
	tcase_add_loop_test(tcase, processes_are_read_one_after_the_other, 0, 4);
	return suite;
}
