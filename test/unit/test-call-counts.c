// SPDX-License-Identifier: LGPL-2.1-or-later
/* How many calls a report counts: those of its processes and its time range. */
#include <check.h>
#include <mmtrace/report.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "support/recording-builder.h"
#include "support/suite.h"
#include "support/temporary.h"

enum { FIRST = 100, SECOND = 200 };

#define MEBIBYTE (1ull << 20)
#define ADDRESS 0x10000000000ull

static char directory[TEMPORARY_PATH_SIZE], path[TEMPORARY_PATH_SIZE + 32];

static void fail_call(struct recording_builder *builder, uint64_t time_ns, int32_t pid)
{
	const uint64_t caller = 0x402000;

	builder_call(builder, &(struct builder_call){.call = CALL_MMAP,
						     .time_ns = time_ns,
						     .pid = pid,
						     .tid = pid,
						     .arguments = {0, MEBIBYTE, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS},
						     .result = -12,
						     .callchain = &caller,
						     .callchain_count = 1});
}

/* One maps and fails in every second, the other only in the first. */
static void create(void)
{
	struct recording_builder *builder;

	temporary_directory(directory);
	snprintf(path, sizeof(path), "%s/a.data", directory);
	builder = builder_create(path);
	builder_comm(builder, 1000, FIRST, FIRST, "first");
	builder_comm(builder, 1000, SECOND, SECOND, "second");
	builder_snapshot(builder, SNAPSHOT_START, 1000, FIRST, NULL, 0);
	builder_snapshot(builder, SNAPSHOT_START, 1000, SECOND, NULL, 0);
	builder_mmap_exit(builder, 1500, SECOND, SECOND, ADDRESS, MEBIBYTE, 0x401000);
	fail_call(builder, 1600, SECOND);
	for (uint64_t i = 0; i < 4; i++) {
		builder_mmap_exit(builder, 2000 + i * 1000, FIRST, FIRST, ADDRESS + i * MEBIBYTE, MEBIBYTE, 0x401000);
		fail_call(builder, 2500 + i * 1000, FIRST);
	}
	builder_munmap_exit(builder, 6000, FIRST, FIRST, ADDRESS, MEBIBYTE);
	builder_round(builder);
	builder_finish(builder, 10000);
}

static void destroy(void)
{
	unlink(path);
	ck_assert_int_eq(rmdir(directory), 0);
}

static void check_counts(struct mmt_report_options *options, uint64_t mapped, uint64_t unmapped, uint64_t failed)
{
	struct mmt_report *report = NULL;
	struct mmt_error *error;
	uint64_t failures = 0;

	options->input = path;
	error = mmt_report_create(options, &report);
	ck_assert_msg(!error, "%s", error ? error->message : "");
	for (size_t i = 0; i < report->failure_count; i++)
		failures += report->failures[i].count;
	ck_assert_uint_eq(report->events[MMT_COUNT_MMAP], mapped);
	ck_assert_uint_eq(report->events[MMT_COUNT_MUNMAP], unmapped);
	ck_assert_uint_eq(report->failed_calls, failed);
	ck_assert_uint_eq(failures, failed);
	mmt_report_destroy(report);
}

START_TEST(all_processes_count)
{
	struct mmt_report_options options;

	mmt_report_options_init(&options);
	check_counts(&options, 10, 1, 5);
}
END_TEST

START_TEST(a_selected_process_counts_alone)
{
	const int32_t pid = SECOND;
	struct mmt_report_options options;

	mmt_report_options_init(&options);
	options.pids = &pid;
	options.pid_count = 1;
	check_counts(&options, 2, 0, 1);
}
END_TEST

START_TEST(a_window_counts_its_calls)
{
	struct mmt_report_options options;

	mmt_report_options_init(&options);
	options.from = (struct mmt_timestamp){MMT_TIMESTAMP_CLOCK, 2800};
	options.to = (struct mmt_timestamp){MMT_TIMESTAMP_CLOCK, 4200};
	check_counts(&options, 3, 0, 1);
	options.to = (struct mmt_timestamp){0};
	check_counts(&options, 6, 1, 3);
}
END_TEST

Suite *test_suite(void)
{
	Suite *suite = suite_create("call-counts");
	TCase *tcase = add_tcase(suite, "call-counts");

	tcase_add_checked_fixture(tcase, create, destroy);
	tcase_add_tests(tcase, all_processes_count, a_selected_process_counts_alone, a_window_counts_its_calls);
	return suite;
}
