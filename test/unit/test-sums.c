// SPDX-License-Identifier: LGPL-2.1-or-later
/* Every byte is in one sum, sums do not wrap, and bytes that a check could not compare are counted. */
#include <check.h>
#include <mmtrace/report.h>
#include <string.h>
#include <sys/mman.h>

#include "support/report-file.h"
#include "support/suite.h"

enum { PID = 100, MILLISECOND = 1000000 };

#define START_NS (1000ull * MILLISECOND)
#define STOP_NS (5000ull * MILLISECOND)
#define STACK 0x7ffffff00000ull
#define MAPPED 0x10000000000ull
#define PAGE 4096ull
#define HUGE_BYTES (128ull << 40)

static const struct event_mapping anonymous = {
    .protection = PROT_READ | PROT_WRITE, .flags = MAP_PRIVATE | MAP_ANONYMOUS, .path = "//anon"};

static struct event_mapping at(uint64_t start, uint64_t pages, const char *path)
{
	struct event_mapping mapping = anonymous;

	mapping.start = start;
	mapping.length = pages * PAGE;
	mapping.path = path;
	return mapping;
}

static struct recording_builder *begin(void)
{
	struct recording_builder *builder = builder_create_with(report_file_path(), false, false);

	builder_comm(builder, START_NS, PID, PID, "sums");
	return builder;
}

static struct mmt_report *finish(struct recording_builder *builder)
{

	builder_round(builder);
	builder_finish(builder, STOP_NS);
	return report_file_report(NULL);
}

static bool has_note(const struct mmt_report *report, const char *text)
{
	for (size_t i = 0; i < report->completeness.warning_count; i++) {
		if (strstr(report->completeness.warnings[i], text))
			return true;
	}
	return false;
}

/* The events are enabled before the maps are read: stack growth in between was mapped by no call. */
START_TEST(stack_grows_before_the_first_snapshot)
{
	const struct event_mapping growth = at(STACK - 3 * PAGE, 3, "[stack]");
	const struct event_mapping lines[] = {at(MAPPED, 5, "//anon"), at(STACK - 3 * PAGE, 7, "[stack]")};
	struct recording_builder *builder = begin();
	struct mmt_report *report;

	builder_mapping(builder, START_NS + 1000, PID, PID, &growth);
	builder_snapshot(builder, SNAPSHOT_START, START_NS + 2000, PID, lines, 2);
	builder_snapshot(builder, SNAPSHOT_STOP, STOP_NS - MILLISECOND, PID, lines, 2);
	report = finish(builder);
	ck_assert_uint_eq(report->process_count, 1);
	ck_assert_uint_eq(report->processes[0].compared_bytes, 12 * PAGE);
	ck_assert_uint_eq(report->kernel_bytes, 3 * PAGE);
	ck_assert_uint_eq(report->before_bytes, 9 * PAGE);
	ck_assert_uint_eq(report->processes[0].kernel_bytes + report->processes[0].before_bytes, 12 * PAGE);
	ck_assert_uint_eq(report->processes[0].mismatch_bytes, 0);
	mmt_report_destroy(report);
}
END_TEST

/* 131,072 times 128 TiB are 2^64 bytes. */
START_TEST(sums_beyond_64_bits)
{
	struct recording_builder *builder = begin();
	struct mmt_report *report;

	for (unsigned i = 0; i < 131073; i++) {
		builder_mmap_exit(builder, START_NS + 2000 * i, PID, PID, PAGE, HUGE_BYTES, 0x401000);
		builder_munmap_exit(builder, START_NS + 2000 * i + 1000, PID, PID, PAGE, HUGE_BYTES - PAGE);
		if (i % 10000 == 0)
			builder_round(builder);
	}
	report = finish(builder);
	ck_assert_uint_eq(report->row_count, 1);
	ck_assert_uint_eq(report->rows[0].allocated_count, 131073);
	ck_assert_uint_eq(report->rows[0].allocated_bytes, MMT_BYTES_MAX);
	ck_assert_uint_eq(report->rows[0].unfreed_bytes, PAGE);
	ck_assert_uint_eq(report->allocated_bytes, MMT_BYTES_MAX);
	ck_assert_uint_eq(report->freed_bytes, MMT_BYTES_MAX);
	ck_assert_uint_eq(report->unfreed_bytes, PAGE);
	ck_assert_uint_eq(report->thread_total_count, 1);
	ck_assert_uint_eq(report->thread_totals[0].allocated_bytes, MMT_BYTES_MAX);
	ck_assert_uint_eq(report->thread_totals[0].released_bytes, MMT_BYTES_MAX);
	ck_assert_uint_eq(report->releases[0].bytes, MMT_BYTES_MAX);
	mmt_report_destroy(report);
}
END_TEST

/* Like a seccomp filter that returns errno 0. */
START_TEST(calls_answered_by_a_seccomp_filter)
{
	struct recording_builder *builder = begin();
	struct mmt_report *report;

	builder_snapshot(builder, SNAPSHOT_START, START_NS + 1000, PID, NULL, 0);
	builder_mmap_exit(builder, START_NS + 2000, PID, PID, 0, 16 * PAGE, 0x401000);
	builder_mmap_exit(builder, START_NS + 3000, PID, PID, MAPPED, PAGE, 0x401000);
	report = finish(builder);
	ck_assert_uint_eq(report->allocated_bytes, PAGE);
	ck_assert(has_note(report, "1 call that maps memory returned address 0"));
	mmt_report_destroy(report);
}
END_TEST

/* A hint if nothing was lost, and none if everything agrees. */
START_TEST(difference_without_losses_gets_a_hint)
{
	const struct event_mapping line = at(MAPPED, 1, "//anon");

	for (int wrong = 0; wrong < 2; wrong++) {
		struct recording_builder *builder = begin();
		struct mmt_report *report;

		builder_snapshot(builder, SNAPSHOT_START, START_NS + 1000, PID, NULL, 0);
		builder_mmap_exit(builder, START_NS + 2000, PID, PID, MAPPED, (wrong ? 2 : 1) * PAGE, 0x401000);
		builder_snapshot(builder, SNAPSHOT_STOP, STOP_NS - MILLISECOND, PID, &line, 1);
		report = finish(builder);
		ck_assert_uint_eq(report->processes[0].mismatch_bytes, wrong * PAGE);
		ck_assert_int_eq(has_note(report, "although no event was lost"), wrong);
		ck_assert_int_eq(has_note(report, "int 0x80"), wrong);
		mmt_report_destroy(report);
	}
}
END_TEST

/* Maps read while an exec removed the memory prove nothing: what the report does not show needs no hint. */
START_TEST(difference_at_the_time_of_an_exec)
{
	const struct event_mapping line = at(MAPPED, 1, "//anon");
	struct recording_builder *builder = begin();
	struct mmt_report *report;

	builder_snapshot(builder, SNAPSHOT_START, START_NS + 1000, PID, NULL, 0);
	builder_mmap_exit(builder, START_NS + 2000, PID, PID, MAPPED, 2 * PAGE, 0x401000);
	builder_snapshot(builder, SNAPSHOT_STOP, STOP_NS - 101 * MILLISECOND, PID, &line, 1);
	builder_exec(builder, STOP_NS - 100 * MILLISECOND, PID, PID, "next");
	report = finish(builder);
	ck_assert(!report->processes[0].checked);
	ck_assert_uint_eq(report->processes[0].mismatch_bytes, 0);
	ck_assert(!has_note(report, "although no event was lost"));
	mmt_report_destroy(report);
}
END_TEST

/* The last reading of a child's maps is its check, even if it has executed another program since. */
START_TEST(exec_after_the_last_reading)
{
	const struct event_mapping line = at(MAPPED, 1, "//anon");
	struct recording_builder *builder = begin();
	struct mmt_report *report;

	builder_snapshot(builder, SNAPSHOT_START, START_NS + 1000, PID, NULL, 0);
	builder_mmap_exit(builder, START_NS + 2000, PID, PID, MAPPED, PAGE, 0x401000);
	builder_snapshot(builder, SNAPSHOT_STOP, STOP_NS - 300 * MILLISECOND, PID, &line, 1);
	builder_exec(builder, STOP_NS - 100 * MILLISECOND, PID, PID, "next");
	report = finish(builder);
	ck_assert(report->processes[0].checked);
	ck_assert(report->processes[0].checked_before_exec);
	ck_assert_uint_eq(report->processes[0].check_age_ns, 200 * MILLISECOND);
	ck_assert_uint_eq(report->processes[0].mismatch_bytes, 0);
	mmt_report_destroy(report);
}
END_TEST

/* Its other thread lives on for a while, and so does the process. */
START_TEST(maps_read_after_the_first_thread_has_ended)
{
	const struct event_mapping line = at(MAPPED, 1, "//anon");
	struct recording_builder *builder = begin();
	struct mmt_report *report;

	builder_snapshot(builder, SNAPSHOT_START, START_NS + 1000, PID, NULL, 0);
	builder_fork(builder, START_NS + 2000, PID, PID + 1, PID, PID);
	builder_mmap_exit(builder, START_NS + 3000, PID, PID + 1, MAPPED, PAGE, 0x401000);
	builder_exit(builder, START_NS + 4000, PID, PID);
	builder_snapshot(builder, SNAPSHOT_INTERVAL, START_NS + MILLISECOND, PID, &line, 1);
	builder_exit(builder, START_NS + 3 * MILLISECOND, PID, PID + 1);
	report = finish(builder);
	ck_assert_uint_eq(report->process_count, 1);
	ck_assert(report->processes[0].ended);
	ck_assert_uint_eq(report->processes[0].threads, 2);
	ck_assert(report->processes[0].checked);
	ck_assert_uint_eq(report->processes[0].check_age_ns, 2 * MILLISECOND);
	ck_assert_uint_eq(report->processes[0].mismatch_bytes, 0);
	mmt_report_destroy(report);
}
END_TEST

Suite *test_suite(void)
{
	Suite *suite = suite_create("sums");
	TCase *tcase = add_tcase(suite, "sums");

	tcase_set_timeout(tcase, 600);
	tcase_add_checked_fixture(tcase, report_file_setup, report_file_teardown);
	tcase_add_tests(tcase, stack_grows_before_the_first_snapshot, sums_beyond_64_bits,
			calls_answered_by_a_seccomp_filter, difference_without_losses_gets_a_hint,
			difference_at_the_time_of_an_exec, exec_after_the_last_reading,
			maps_read_after_the_first_thread_has_ended);
	return suite;
}
