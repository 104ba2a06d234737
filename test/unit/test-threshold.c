// SPDX-License-Identifier: LGPL-2.1-or-later
#include <check.h>
#include <stdlib.h>

#include "support/suite.h"
#include "support/sample-report.h"

/* The tool is not a library: the code that decides its exit status is compiled in. */
#include "../../cmd/cli/report-command.c"
#include "../../cmd/diff.c"
#include "../../cmd/cli/message.c"
#include "../../cmd/cli/options.c"
#include "../../cmd/cli/terminal.c"

static const struct command command = {.name = "diff"};

static int check(const struct mmt_report *before, const struct mmt_report *after, bool given, uint64_t fail_above)
{
	const struct mmt_diff value = {.before = before, .after = after, .bytes = -4904, .growth_bytes = 4096};
	const struct diff_settings settings = {
	    .ended = {before, after}, .fail_above_given = given, .fail_above = fail_above};

	return check_growth(&command, &settings, &value);
}

START_TEST(growth)
{
	struct mmt_report report = sample_report();

	ck_assert_int_eq(check(&report, &report, true, 4096), EXIT_OK);
	ck_assert_int_eq(check(&report, &report, true, 4095), EXIT_EXCEEDED);
	ck_assert_int_eq(check(&report, &report, false, 0), EXIT_OK);
}
END_TEST

#define SECOND 1000000000ull

static uint64_t read_ns = SECOND; /* between the first and the last reading of RSS in the first recording, of 1 s */

static int check_memory(uint64_t committed_bytes, struct mmt_growth before, struct mmt_growth after,
			uint64_t fail_above)
{
	struct mmt_report first = sample_report(), second = sample_report();
	const struct mmt_diff value = {
	    .before = &first, .after = &second, .committed_growth_bytes = committed_bytes, .committed_bytes = -9000};
	const struct diff_settings settings = {
	    .ended = {&first, &second}, .fail_above_given = true, .fail_above = fail_above};

	first.growth = before;
	second.growth = after;
	first.to_ns = first.from_ns + SECOND;
	first.growth.end_ns = first.growth.start_ns + read_ns;
	return check_growth(&command, &settings, &value);
}

/* Memory made accessible in older mappings, and memory that no recorded stack accounts for. */
START_TEST(growth_of_memory)
{
	const struct mmt_growth level = {.verdict = MMT_VERDICT_STEADY, .start_bytes = 50 << 20, .end_bytes = 50 << 20};
	const struct mmt_growth grown = {
	    .verdict = MMT_VERDICT_GROWING, .start_bytes = 50 << 20, .end_bytes = 80 << 20};
	const struct mmt_growth noise = {.verdict = MMT_VERDICT_STEADY, .start_bytes = 50 << 20, .end_bytes = 51 << 20};
	const struct mmt_growth unknown = {.start_bytes = MMT_UNKNOWN, .end_bytes = MMT_UNKNOWN};

	ck_assert_int_eq(check_memory(240 << 20, level, level, 240 << 20), EXIT_OK);
	ck_assert_int_eq(check_memory(240 << 20, level, level, (240 << 20) - 1), EXIT_EXCEEDED);
	ck_assert_int_eq(check_memory(0, level, grown, 30 << 20), EXIT_OK);
	ck_assert_int_eq(check_memory(0, level, grown, (30 << 20) - 1), EXIT_EXCEEDED);
	ck_assert_int_eq(check_memory(0, grown, level, 0), EXIT_OK);
	ck_assert_int_eq(check_memory(0, grown, grown, 0), EXIT_OK);
	ck_assert_int_eq(check_memory(0, level, noise, 0), EXIT_OK);
	ck_assert_int_eq(check_memory(0, unknown, grown, 0), EXIT_OK);
	ck_assert_int_eq(check_memory(0, level, unknown, 0), EXIT_OK);
}
END_TEST

/* A recording grew by 30 MiB while it was read, for half of its time: it may have grown by 60. With one reading of RSS,
 * nothing is known. */
START_TEST(growth_that_was_not_read)
{
	const struct mmt_growth grown = {
	    .verdict = MMT_VERDICT_GROWING, .start_bytes = 50 << 20, .end_bytes = 80 << 20};
	const struct mmt_growth twice = {
	    .verdict = MMT_VERDICT_GROWING, .start_bytes = 50 << 20, .end_bytes = 110 << 20};
	char output[512] = {0};
	FILE *saved = stderr;

	ck_assert_int_eq(check_memory(0, grown, twice, (30 << 20) - 1), EXIT_EXCEEDED);
	read_ns = SECOND / 2;
	ck_assert_int_eq(check_memory(0, grown, twice, (30 << 20) - 1), EXIT_OK);
	read_ns = 0;
	stderr = fmemopen(output, sizeof(output), "w");
	ck_assert_ptr_nonnull(stderr);
	ck_assert_int_eq(check_memory(0, grown, twice, 0), EXIT_OK);
	fclose(stderr);
	stderr = saved;
	ck_assert_msg(strstr(output, "RSS was read only once in the first recording") != NULL, "%s", output);
	read_ns = SECOND;
}
END_TEST

/* What is swapped out has grown all the same, and the message says that swap counts. */
START_TEST(growth_of_swap)
{
	const struct mmt_growth level = {.verdict = MMT_VERDICT_STEADY, .start_bytes = 50 << 20, .end_bytes = 50 << 20};
	const struct mmt_growth swapped = {
	    .verdict = MMT_VERDICT_GROWING, .start_bytes = 50 << 20, .end_bytes = 40 << 20, .end_swap_bytes = 90 << 20};
	const struct mmt_growth idle = {
	    .verdict = MMT_VERDICT_STEADY, .start_bytes = 50 << 20, .end_bytes = 10 << 20, .end_swap_bytes = 40 << 20};
	const struct mmt_growth grown = {
	    .verdict = MMT_VERDICT_GROWING, .start_bytes = 50 << 20, .end_bytes = 80 << 20};
	char output[512] = {0};
	FILE *saved = stderr;

	ck_assert_int_eq(check_memory(0, level, swapped, 80 << 20), EXIT_OK);
	ck_assert_int_eq(check_memory(0, level, idle, 0), EXIT_OK);
	stderr = fmemopen(output, sizeof(output), "w");
	ck_assert_ptr_nonnull(stderr);
	ck_assert_int_eq(check_memory(0, level, swapped, (80 << 20) - 1), EXIT_EXCEEDED);
	ck_assert_int_eq(check_memory(0, level, grown, 1 << 20), EXIT_EXCEEDED);
	fclose(stderr);
	stderr = saved;
	ck_assert_msg(strstr(output, "RSS and swap grew by 80.00 MiB more, which is above 80.00 MiB\n") != NULL, "%s",
		      output);
	ck_assert_msg(strstr(output, "RSS grew by 30.00 MiB more, which is above 1.00 MiB\n") != NULL, "%s", output);
}
END_TEST

static const struct {
	struct mmt_completeness completeness;
	struct mmt_process process;
	int status;
} recordings[] = {
    {{0}, {.checked = true}, EXIT_OK},
    {{0}, {.checked = true, .compared_bytes = 100000, .unread_bytes = 10001}, EXIT_UNUSABLE},
    {{0}, {.checked = false}, EXIT_UNUSABLE},
    {{0}, {.ended = true}, EXIT_OK}, /* leaves no final maps */
    {{0}, {.ended = true, .checked = true, .compared_bytes = 100000, .unread_bytes = 10001}, EXIT_UNUSABLE},
    {{.incomplete = true}, {.checked = true}, EXIT_UNUSABLE},
    {{.damaged = true}, {.checked = true}, EXIT_UNUSABLE},
    {{.lost_events = 1}, {.checked = true}, EXIT_UNUSABLE},
    {{.missed_threads = 1}, {.checked = true}, EXIT_UNUSABLE},
    {{.missed_cpus = 1}, {.checked = true}, EXIT_UNUSABLE},
    {{.left_processes = 1}, {.checked = true}, EXIT_UNUSABLE},
    {{0}, {.checked = true, .mismatch_bytes = 4096}, EXIT_UNUSABLE},
};

START_TEST(incomplete_recordings)
{
	struct mmt_report sound = sample_report(), report = sample_report();

	report.completeness = recordings[_i].completeness;
	report.processes = &recordings[_i].process;
	ck_assert_int_eq(check(&report, &sound, true, 1 << 20), recordings[_i].status);
	ck_assert_int_eq(check(&sound, &report, true, 1 << 20), recordings[_i].status);
	ck_assert_int_eq(check(&sound, &report, false, 0), EXIT_OK);
}
END_TEST

/* A command that crashed may not have reached its leak; that it failed is what `record` returned. */
START_TEST(failed_commands)
{
	struct mmt_report sound = sample_report(), report = sample_report();

	sound.processes = report.processes = &recordings[0].process;
	sound.process_count = report.process_count = 1;
	report.command_end = (struct mmt_command_end){.time_ns = 1, .status = SIGSEGV};
	ck_assert_int_eq(check(&sound, &report, true, 1 << 20), EXIT_UNUSABLE);
	ck_assert_int_eq(check(&report, &sound, true, 1 << 20), EXIT_UNUSABLE);
	report.command_end.status = SIGTERM;
	ck_assert_int_eq(check(&sound, &report, true, 1 << 20), EXIT_OK);
	report.command_end.status = 1 << 8;
	ck_assert_int_eq(check(&sound, &report, true, 1 << 20), EXIT_OK);
}
END_TEST

Suite *test_suite(void)
{
	Suite *suite = suite_create("threshold");
	TCase *cases = add_tcase(suite, "threshold");

	tcase_add_tests(cases, growth, growth_of_memory, growth_that_was_not_read, growth_of_swap, failed_commands);
	tcase_add_loop_test(cases, incomplete_recordings, 0, (int)(sizeof(recordings) / sizeof(recordings[0])));
	return suite;
}
