// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * What each step of a report costs, in ns of processor time for each event: bench-report RECORDING. Every line is a
 * pass that does all that the lines before it do, less what they cost; but symbolising is measured where it is done,
 * and rendering is a step of its own. For report-speed, which says the rest.
 */
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <time.h>

#include <mmtrace/output.h>
#include <mmtrace/report.h>

#include "analysis/code-view.h"
#include "analysis/replay.h"
#include "trace/feed.h"
#include "trace/layout.h"
#include "trace/reader.h"
#include "trace/records.h"

static uint64_t events;
static double before;
static bool leave_out_stacks;
static double naming; /* processor time that code_view_names() has taken */

static void require(struct mmt_error *error)
{
	if (!error)
		return;
	fprintf(stderr, "bench-report: %s\n", mmt_error_get_message(error));
	exit(2);
}

static double seconds(clockid_t clock)
{
	struct timespec now;

	clock_gettime(clock, &now);
	return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

/* `used`: processor time of the pass. */
static void print_step(const char *name, double used)
{
	printf("  %-34s %8.1f ns/event\n", name, (used - before) * 1e9 / (double)events);
	before = used;
}

/* The linker puts these two in place of the library's, see CMakeLists.txt. */
struct mmt_error *__real_code_view_unwind(struct code_view *view, const struct process *process,
					  const struct event_stack *stack, uint32_t *stack_ret);
struct mmt_error *__wrap_code_view_unwind(struct code_view *view, const struct process *process,
					  const struct event_stack *stack, uint32_t *stack_ret);
struct mmt_error *__real_code_view_names(struct code_view *view, uint32_t frame, struct arena *arena,
					 const struct mmt_frame **frames_ret, size_t *count_ret);
struct mmt_error *__wrap_code_view_names(struct code_view *view, uint32_t frame, struct arena *arena,
					 const struct mmt_frame **frames_ret, size_t *count_ret);

struct mmt_error *__wrap_code_view_unwind(struct code_view *view, const struct process *process,
					  const struct event_stack *stack, uint32_t *stack_ret)
{
	return leave_out_stacks ? code_view_no_stack(view, stack_ret)
				: __real_code_view_unwind(view, process, stack, stack_ret);
}

struct mmt_error *__wrap_code_view_names(struct code_view *view, uint32_t frame, struct arena *arena,
					 const struct mmt_frame **frames_ret, size_t *count_ret)
{
	double start = seconds(CLOCK_THREAD_CPUTIME_ID);
	struct mmt_error *error = __real_code_view_names(view, frame, arena, frames_ret, count_ret);

	naming += seconds(CLOCK_THREAD_CPUTIME_ID) - start;
	return error;
}

static double read_file(const struct recording_file *file)
{
	static uint8_t window[256 << 10];
	double start = seconds(CLOCK_PROCESS_CPUTIME_ID);

	for (uint64_t offset = file->data_offset; offset < file->data_end; offset += sizeof(window)) {
		uint64_t left = file->data_end - offset;

		require(recording_file_read(file, offset, window, left < sizeof(window) ? left : sizeof(window)));
	}
	return seconds(CLOCK_PROCESS_CPUTIME_ID) - start;
}

static double read_records(const struct recording_file *file)
{
	double start = seconds(CLOCK_PROCESS_CPUTIME_ID);
	struct records *records;
	bool end = false;

	require(records_create(file, &records));
	while (!end) {
		struct mmt_error *damage;
		struct record record;

		require(records_next(records, &record, &end, &damage));
		require(damage);
		events += !end && record.header.type == PERF_RECORD_SAMPLE;
	}
	records_destroy(records);
	return seconds(CLOCK_PROCESS_CPUTIME_ID) - start;
}

static double order_records(const struct recording_file *file)
{
	double start = seconds(CLOCK_PROCESS_CPUTIME_ID);
	struct layouts layouts;
	struct feed *feed;

	require(layouts_create(file, &layouts));
	require(feed_create(file, &layouts, NULL, FEED_WHOLE, &feed));
	while (!feed_next(feed)->last)
		;
	feed_destroy(feed);
	layouts_deinit(&layouts);
	return seconds(CLOCK_PROCESS_CPUTIME_ID) - start;
}

static double decode_events(const char *path)
{
	double start = seconds(CLOCK_PROCESS_CPUTIME_ID);
	struct reader *reader;
	bool end = false;

	require(reader_open(path, &reader));
	reader_leave_out_unused_stacks(reader);
	while (!end) {
		struct event event;

		require(reader_next(reader, &event, &end));
	}
	reader_close(reader);
	return seconds(CLOCK_PROCESS_CPUTIME_ID) - start;
}

/* All stacks are one row: none is named. */
static double replay_events(const struct mmt_report_options *options)
{
	double start = seconds(CLOCK_PROCESS_CPUTIME_ID);
	const struct replay_options replay_options = {.report = options};
	struct replay replay;

	require(replay_init(&replay, &replay_options));
	require(replay_run(&replay));
	replay_deinit(&replay);
	return seconds(CLOCK_PROCESS_CPUTIME_ID) - start;
}

int main(int argc, char **argv)
{
	struct mmt_report_options options;
	const struct mmt_text_options all = {0};
	struct recording_file *file;
	struct mmt_report *report;
	double used, start, elapsed;
	FILE *nowhere = fopen("/dev/null", "w");
	struct rusage usage;

	if (argc != 2 || !nowhere) {
		fputs("Usage: bench-report RECORDING\n", stderr);
		return 2;
	}
	mmt_report_options_init(&options);
	options.input = argv[1];
	require(recording_file_open(argv[1], &file));
	(void)read_file(file); /* from the disk into memory */
	used = read_file(file);
	(void)read_records(file);
	print_step("read", used);
	events = 0;
	print_step("decompress", read_records(file));
	print_step("order", order_records(file));
	print_step("decode", decode_events(argv[1]));
	leave_out_stacks = true;
	print_step("replay", replay_events(&options));
	leave_out_stacks = false;
	print_step("unwind", replay_events(&options));
	start = seconds(CLOCK_MONOTONIC);
	used = seconds(CLOCK_PROCESS_CPUTIME_ID);
	require(mmt_report_create(&options, &report));
	used = seconds(CLOCK_PROCESS_CPUTIME_ID) - used;
	before += naming;
	print_step("group", used);
	before = 0;
	print_step("symbolise", naming);
	before = 0;
	used = seconds(CLOCK_PROCESS_CPUTIME_ID);
	require(mmt_report_write_json(report, &all, nowhere));
	print_step("render", seconds(CLOCK_PROCESS_CPUTIME_ID) - used);
	elapsed = seconds(CLOCK_MONOTONIC) - start;
	mmt_report_destroy(report);
	recording_file_close(file);
	fclose(nowhere);
	getrusage(RUSAGE_SELF, &usage);
	printf("  %-34s %8.1f ns/event: %.0f events/s, %.2f s for %llu\n", "elapsed, on two processors",
	       elapsed * 1e9 / (double)events, (double)events / elapsed, elapsed, (unsigned long long)events);
	return 0;
}
