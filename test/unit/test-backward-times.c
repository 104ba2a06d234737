// SPDX-License-Identifier: LGPL-2.1-or-later
/* Notes whose times run backwards: no index, size or division of a report may depend on that. */
#include <check.h>
#include <mmtrace/output.h>
#include <stdio.h>
#include <sys/mman.h>

#include "support/report-file.h"
#include "support/suite.h"

#define PID 7
#define SECOND 1000000000ull
#define START (100 * SECOND)
#define END (START + 20 * SECOND)
#define MEBIBYTE (1ull << 20)

static void note(struct recording_builder *builder, uint64_t time_ns, enum note_kind kind, uint64_t value,
		 uint64_t number)
{
	builder_note(builder, time_ns, PID, kind, value, number);
	/* Two rounds later the record has been handed out, so earlier ones come too late to be sorted. */
	for (int i = 0; i < 3; i++)
		builder_round(builder);
}

/* Readings of growing size, and OOM kills between them, at START + the given seconds. */
static void write_recording(const unsigned *seconds, size_t count)
{
	struct recording_builder *builder = builder_create_at(report_file_path(), START);

	builder_mmap_exit(builder, START + SECOND, PID, PID, 0x7f0000000000, MEBIBYTE, 0x1234);
	for (size_t i = 0; i < count; i++) {
		note(builder, START + seconds[i] * SECOND, NOTE_RESIDENT, (i + 1) * MEBIBYTE, i + 1);
		note(builder, START + seconds[i] * SECOND, NOTE_OOM_KILL, PID, 0);
	}
	report_file_survive(builder, PID);
	builder_finish(builder, END);
}

static void assert_ascending(const struct mmt_report *report, size_t count)
{
	ck_assert_uint_eq(report->resident_reading_count, count);
	ck_assert_uint_eq(report->oom_kill_count, count);
	for (size_t i = 1; i < count; i++) {
		ck_assert_uint_ge(report->resident_readings[i].time_ns, report->resident_readings[i - 1].time_ns);
		ck_assert_uint_ge(report->oom_kills[i].time_ns, report->oom_kills[i - 1].time_ns);
	}
	ck_assert_uint_eq(report->growth.start_bytes, MEBIBYTE);
	ck_assert_uint_eq(report->growth.end_bytes, count * MEBIBYTE);
	for (size_t i = 0; i < report->process_count; i++)
		ck_assert_uint_ge(report->processes[i].readings->end_ns, report->processes[i].readings->start_ns);
}

static void write_outputs(struct mmt_report *report)
{
	struct mmt_text_options text = {.width = 80};
	FILE *stream = fopen("/dev/null", "w");

	ck_assert_ptr_nonnull(stream);
	ck_assert_ptr_null(mmt_report_write_text(report, &text, stream));
	ck_assert_ptr_null(mmt_report_write_json(report, &text, stream));
	fclose(stream);
}

/* The sparkline of RSS indexes its points by the time since the first reading. */
START_TEST(readings_ascend)
{
	static const unsigned cases[][4] = {
	    {10, 9, 11, 8}, {10, 2, 1, 11}, {11, 12, 13, 2}, {5, 5, 4, 5}, {9, 8, 7, 6}};
	struct mmt_report_options options;
	struct mmt_report *report;

	write_recording(cases[_i], 4);
	mmt_report_options_init(&options);
	report = report_file_report(&options);
	assert_ascending(report, 4);
	write_outputs(report);
	mmt_report_destroy(report);
}
END_TEST

Suite *test_suite(void)
{
	Suite *suite = suite_create("backward-times");
	TCase *cases = add_tcase(suite, "report");

	tcase_add_checked_fixture(cases, report_file_setup, report_file_teardown);
	tcase_add_loop_test(cases, readings_ascend, 0, 5);
	return suite;
}
