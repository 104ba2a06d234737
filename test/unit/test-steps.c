// SPDX-License-Identifier: LGPL-2.1-or-later
/* The development of a report's figures in steps. */
#include <check.h>
#include <mmtrace/output.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/report-file.h"
#include "support/run-suite.h"

enum { FIRST = 100, SECOND = 200 };

#define MEBIBYTE (1ull << 20)
#define ADDRESS 0x10000000000ull

/* Two processes whose resident sizes are read together at 2600, 3999 and 4000; one of them is gone at the last. */
static void record_two(void)
{
	struct recording_builder *builder = builder_create(report_file_path());

	builder_comm(builder, 1000, FIRST, FIRST, "first");
	builder_comm(builder, 1000, SECOND, SECOND, "second");
	builder_snapshot(builder, SNAPSHOT_START, 1000, FIRST, NULL, 0);
	builder_snapshot(builder, SNAPSHOT_START, 1000, SECOND, NULL, 0);
	builder_mmap_exit(builder, 2500, FIRST, FIRST, ADDRESS, MEBIBYTE, 0x401000);
	builder_note(builder, 2600, FIRST, NOTE_RESIDENT, 3 * MEBIBYTE, 1);
	builder_note(builder, 2600, SECOND, NOTE_RESIDENT, 2 * MEBIBYTE, 1);
	builder_note(builder, 3999, FIRST, NOTE_RESIDENT, 7 * MEBIBYTE, 2);
	builder_note(builder, 3999, SECOND, NOTE_RESIDENT, MEBIBYTE, 2);
	builder_note(builder, 4000, FIRST, NOTE_RESIDENT, 4 * MEBIBYTE, 3);
	builder_munmap_exit(builder, 6500, FIRST, FIRST, ADDRESS, MEBIBYTE);
	builder_round(builder);
	builder_finish(builder, 7000);
}

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

/* A step has what was read last before its end, at which the next reading is not yet made. */
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

/* Only of the processes asked for; and a window begins with what was read before it. */
START_TEST(resident_sizes_of_a_part)
{
	const uint64_t expected[] = {2 * MEBIBYTE, MEBIBYTE, MEBIBYTE};
	const int32_t pid = SECOND;
	struct mmt_report_options options;
	struct mmt_report *report;

	record_two();
	mmt_report_options_init(&options);
	options.pids = &pid;
	options.pid_count = 1;
	options.from = (struct mmt_moment){MMT_MOMENT_CLOCK, 2700};
	options.to = (struct mmt_moment){MMT_MOMENT_CLOCK, 5000};
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
	options.to = (struct mmt_moment){MMT_MOMENT_CLOCK, 4000};
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
	check_written(mmt_report_write_text,
		      "       after     unfreed   committed    reserved   in memory          #1\n"
		      "        1 us         0 B         0 B         0 B           -         0 B\n"
		      "        2 us    1.00 MiB    1.00 MiB         0 B    5.00 MiB    1.00 MiB\n"
		      "        3 us    1.00 MiB    1.00 MiB         0 B    8.00 MiB    1.00 MiB\n");
}
END_TEST

START_TEST(resident_sizes_in_json)
{
	check_written(mmt_report_write_json, "      \"to_ns\": 2000,\n"
					     "      \"unfreed_bytes\": 0,\n"
					     "      \"committed_bytes\": 0,\n"
					     "      \"reserved_bytes\": 0,\n"
					     "      \"resident_bytes\": null,\n"
					     "      \"process_resident_bytes\": null\n"
					     "    },\n"
					     "    {\n"
					     "      \"to_ns\": 3000,\n"
					     "      \"unfreed_bytes\": 1048576,\n"
					     "      \"committed_bytes\": 1048576,\n"
					     "      \"reserved_bytes\": 0,\n"
					     "      \"resident_bytes\": null,\n"
					     "      \"process_resident_bytes\": 5242880\n");
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("steps");
	TCase *tcase = tcase_create("steps");

	tcase_add_checked_fixture(tcase, report_file_setup, report_file_teardown);
	tcase_add_test(tcase, resident_sizes);
	tcase_add_test(tcase, resident_sizes_of_a_part);
	tcase_add_test(tcase, resident_sizes_in_text);
	tcase_add_test(tcase, resident_sizes_in_json);
	suite_add_tcase(suite, tcase);
	return run_suite(suite);
}
