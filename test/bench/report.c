// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The cost of each step of a report, in ns of CPU time for each event: bench-report RECORDING. Each line is a pass that
 * does everything that the preceding lines do, minus their cost; each is the shortest of PASSES. Symbolizing is
 * measured where it happens, and rendering is a separate step. The code is that of the unit tests, without the tool's
 * link-time optimisation. report-speed prints the other figures.
 */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include <mmtrace/output.h>
#include <mmtrace/report.h>

#include "analysis/resolver/resolver.h"
#include "analysis/replay/replay.h"
#include "trace/format/sample-layout.h"
#include "trace/read/reader.h"
#include "trace/read/recording-file.h"

#define PASSES 3

static uint64_t events; /* samples */
static double before;
static bool leave_out_stacks;
static double naming; /* processor time that resolver_names() has taken */

static void require(struct mmt_error *error)
{
	if (!error)
		return;
	fprintf(stderr, "bench-report: %s\n", error->message);
	exit(2);
}

static double seconds(clockid_t clock)
{
	struct timespec now;

	clock_gettime(clock, &now);
	return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

/* `used`: CPU time of the pass. */
static void print_step(const char *name, double used)
{
	printf("  %-34s %8.1f ns/event\n", name, (used - before) * 1e9 / (double)events);
	before = used;
}

/* The linker puts these two in place of the library's (see CMakeLists.txt); the types are the library's. */
__typeof__(resolver_unwind) __real_resolver_unwind, __wrap_resolver_unwind;
__typeof__(resolver_names) __real_resolver_names, __wrap_resolver_names;

struct mmt_error *__wrap_resolver_unwind(struct resolver *view, const struct process *process,
					 const struct event_stack *stack, uint32_t *stack_ret)
{
	return leave_out_stacks ? resolver_empty_stack(view, MMT_STACK_END_NOT_RECORDED, stack_ret)
				: __real_resolver_unwind(view, process, stack, stack_ret);
}

struct mmt_error *__wrap_resolver_names(struct resolver *view, uint32_t frame, const struct mmt_frame **frames_ret,
					size_t *count_ret)
{
	double start = seconds(CLOCK_THREAD_CPUTIME_ID);
	struct mmt_error *error = __real_resolver_names(view, frame, frames_ret, count_ret);

	naming += seconds(CLOCK_THREAD_CPUTIME_ID) - start;
	return error;
}

static double read_file(const char *path)
{
	static uint8_t window[256 << 10];
	struct recording_file *file;
	double start;

	require(recording_file_open(path, NULL, &file));
	start = seconds(CLOCK_PROCESS_CPUTIME_ID);
	for (uint64_t offset = file->data_offset; offset < file->data_end; offset += sizeof(window)) {
		uint64_t left = file->data_end - offset;

		require(recording_file_read(file, offset, window, left < sizeof(window) ? left : sizeof(window)));
	}
	start = seconds(CLOCK_PROCESS_CPUTIME_ID) - start;
	recording_file_close(file);
	return start;
}

static double read_records(const char *path)
{
	double start = seconds(CLOCK_PROCESS_CPUTIME_ID);
	struct recording_file *file;
	struct records *records;
	bool end = false;

	events = 0;
	require(recording_file_open(path, NULL, &file));
	require(records_create(file, &records));
	while (!end) {
		struct mmt_error *damage;
		struct record record;

		require(records_next(records, &record, &end, &damage));
		require(damage);
		events += !end && record.header.type == PERF_RECORD_SAMPLE;
	}
	records_destroy(records);
	recording_file_close(file);
	return seconds(CLOCK_PROCESS_CPUTIME_ID) - start;
}

static double decode_events(const char *path)
{
	double start = seconds(CLOCK_PROCESS_CPUTIME_ID);
	struct reader *reader;
	bool end = false;

	require(reader_open(path, NULL, &reader));
	reader->decoder.only_used_stacks = true;
	while (!end) {
		struct event event;

		require(reader_next(reader, &event, &end));
	}
	reader_close(reader);
	return seconds(CLOCK_PROCESS_CPUTIME_ID) - start;
}

/* All stacks are one row: none is symbolized. */
static double replay_events(const char *path)
{
	double start = seconds(CLOCK_PROCESS_CPUTIME_ID);
	struct mmt_report_options options;
	struct replay_options replay_options = {.report = &options};
	struct replay replay;

	mmt_report_options_init(&options);
	options.input = path;
	leave_out_stacks = true;
	require(replay_init(&replay, &replay_options));
	require(replay_run(&replay));
	replay_deinit(&replay);
	leave_out_stacks = false;
	return seconds(CLOCK_PROCESS_CPUTIME_ID) - start;
}

static struct mmt_report *create_report(const char *path)
{
	struct mmt_report_options options;
	struct mmt_report *report;

	mmt_report_options_init(&options);
	options.input = path;
	require(mmt_report_create(&options, &report));
	return report;
}

/* With all stacks in one row. */
static double group_rows(const char *path)
{
	double start = seconds(CLOCK_PROCESS_CPUTIME_ID);

	leave_out_stacks = true;
	mmt_report_destroy(create_report(path));
	leave_out_stacks = false;
	return seconds(CLOCK_PROCESS_CPUTIME_ID) - start;
}

/* The stacks that the report needs. */
static double unwind_stacks(const char *path)
{
	double start = seconds(CLOCK_PROCESS_CPUTIME_ID), named = naming;

	mmt_report_destroy(create_report(path));
	return seconds(CLOCK_PROCESS_CPUTIME_ID) - start - (naming - named);
}

static double shortest(double (*pass)(const char *path), const char *path)
{
	double least = pass(path);

	for (int i = 1; i < PASSES; i++) {
		double used = pass(path);

		least = used < least ? used : least;
	}
	return least;
}

int main(int argc, char **argv)
{
	const struct mmt_text_options all = {0};
	struct mmt_report *report;
	double used, start, elapsed;
	FILE *nowhere = fopen("/dev/null", "w");

	if (argc != 2 || !nowhere) {
		fputs("Usage: bench-report RECORDING\n", stderr);
		return 2;
	}
	(void)read_file(argv[1]); /* from the disk into memory */
	(void)read_records(argv[1]);
	print_step("read", shortest(read_file, argv[1]));
	print_step("decompress", shortest(read_records, argv[1]));
	print_step("decode", shortest(decode_events, argv[1]));
	print_step("replay", shortest(replay_events, argv[1]));
	print_step("group", shortest(group_rows, argv[1]));
	print_step("unwind", shortest(unwind_stacks, argv[1]));
	naming = before = 0;
	start = seconds(CLOCK_MONOTONIC);
	report = create_report(argv[1]);
	print_step("symbolise", naming);
	before = 0;
	used = seconds(CLOCK_PROCESS_CPUTIME_ID);
	require(mmt_report_write_json(report, &all, nowhere));
	print_step("render", seconds(CLOCK_PROCESS_CPUTIME_ID) - used);
	elapsed = seconds(CLOCK_MONOTONIC) - start;
	mmt_report_destroy(report);
	fclose(nowhere);
	printf("  %-34s %8.1f ns/event: %.0f events/s, %.2f s for %llu\n", "elapsed, on two processors",
	       elapsed * 1e9 / (double)events, (double)events / elapsed, elapsed, (unsigned long long)events);
	return 0;
}
