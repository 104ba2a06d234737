// SPDX-License-Identifier: LGPL-2.1-or-later
/* Which rows are one cause, and what their mappings show together. */
#include <check.h>
#include <mmtrace/report.h>
#include <stdbool.h>
#include <string.h>
#include <sys/mman.h>

#include "support/report-file.h"
#include "support/run-suite.h"

enum { PID = 100, READINGS = 80, MAPPINGS = 60 };

#define SECOND 1000000000ull
#define MEBIBYTE (1ull << 20)
#define START SECOND
#define END (9 * SECOND)
#define ADDRESS 0x10000000000ull
#define CODE 0x400000ull

/*
 * A mapping of 1 MiB each 1/60 of the time, by one of three places of JIT code without names, each of which has a third
 * of the time for itself; the process grows, or stays as it is.
 */
static void write_recording(bool grows)
{
	const struct event_mapping code = {.start = CODE,
					   .length = MEBIBYTE,
					   .protection = PROT_READ | PROT_EXEC,
					   .flags = MAP_PRIVATE,

					   .path = ""};
	struct recording_builder *builder = builder_create(report_file_path());

	builder_snapshot(builder, SNAPSHOT_START, START, PID, &code, 1);
	for (uint64_t i = 0; i < MAPPINGS; i++)
		builder_mmap_exit(builder, START + (END - START) * i / MAPPINGS + 1, PID, PID,
				  ADDRESS + 2 * i * MEBIBYTE, MEBIBYTE, CODE + 0x1000 * (i / (MAPPINGS / 3)) + 1);
	for (uint64_t i = 0; i < READINGS; i++)
		builder_note(builder, START + (END - START) * i / READINGS + 2, PID, NOTE_RESIDENT,
			     100 * MEBIBYTE + (grows ? i * MEBIBYTE : 0), i + 1);
	builder_finish(builder, END);
}

static struct mmt_report *make_report(bool grows)
{
	struct mmt_report_options options;

	write_recording(grows);
	mmt_report_options_init(&options);
	return report_file_report(&options);
}

/* JIT code that is compiled again has another address: no stack is a leak by itself, all of them are one. */
START_TEST(stacks_of_one_function_leak_together)
{
	struct mmt_report *report = make_report(true);

	ck_assert_int_eq(report->growth.verdict, MMT_VERDICT_GROWING);
	ck_assert_uint_eq(report->group_count, 3);
	ck_assert_uint_eq(report->cause_count, 1);
	for (size_t i = 0; i < report->group_count; i++) {
		ck_assert_int_ne(report->groups[i].verdict, MMT_LIFETIME_LEAK);
		ck_assert_uint_eq(report->groups[i].cause, 1);
	}
	ck_assert(report->causes[0].leaks_together);
	ck_assert_int_eq(report->causes[0].verdict, MMT_LIFETIME_LEAK);
	ck_assert_uint_eq(report->causes[0].memory_bytes, MAPPINGS * MEBIBYTE);
}
END_TEST

/* Three caches that are filled one after another are no leak. */
START_TEST(stacks_of_a_steady_process_do_not)
{
	struct mmt_report *report = make_report(false);

	ck_assert_int_eq(report->growth.verdict, MMT_VERDICT_STEADY);
	ck_assert_uint_eq(report->cause_count, 1);
	ck_assert(!report->causes[0].leaks_together);
	ck_assert_int_ne(report->causes[0].verdict, MMT_LIFETIME_LEAK);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("row-causes");
	TCase *tests = tcase_create("together");

	tcase_add_checked_fixture(tests, report_file_setup, report_file_teardown);
	tcase_add_test(tests, stacks_of_one_function_leak_together);
	tcase_add_test(tests, stacks_of_a_steady_process_do_not);
	suite_add_tcase(suite, tests);
	return run_suite(suite);
}
