// SPDX-License-Identifier: LGPL-2.1-or-later
/* Where RSS grew, in a recording that says which pages were resident when it began and when it ended. */
#include <check.h>
#include <sys/mman.h>

#include "support/report-file.h"
#include "support/run-suite.h"

#define PID 7
#define PAGE 4096ull
#define ARENA 0x7f0000000000ull
#define ARENA_BYTES (64ull << 20)
#define HEAP 0x555555600000ull
#define FILE_START 0x7e0000000000ull
#define GONE 0x7d0000000000ull
#define MADE 0x7c0000000000ull
#define RESERVED 0x7b0000000000ull
#define PRIVATE_RW (PROT_READ | PROT_WRITE)

static struct event_mapping line(uint64_t start, uint64_t length, uint32_t protection, const char *path, uint64_t inode)
{
	return (struct event_mapping){.start = start,
				      .length = length,
				      .protection = protection,
				      .flags = MAP_PRIVATE,
				      .inode = inode,
				      .device_minor = inode ? 1 : 0,
				      .path = path};
}

static void add_pages(process_residencies *processes, uint64_t resident_bytes, const struct resident_run *runs,
		      size_t count)
{
	struct process_residency *process = vector_append(processes);

	ck_assert_ptr_nonnull(process);
	process->pid = PID;
	process->time_ns = 1;
	process->resident_bytes = resident_bytes;
	for (size_t i = 0; i < count; i++)
		ck_assert(vector_push(&process->runs, runs[i]));
}

/* At the start 12 pages are resident, at the end 46; the kernel counts one more each time, and two at the end. */
static void write_residency(struct recording_builder *builder, bool at_start)
{
	static const struct resident_run start[] = {{HEAP, HEAP + 2 * PAGE},
						    {GONE, GONE + 3 * PAGE},
						    {FILE_START, FILE_START + 5 * PAGE},
						    {ARENA, ARENA + 2 * PAGE}};
	static const struct resident_run end[] = {{HEAP, HEAP + 6 * PAGE},   {RESERVED, RESERVED + 4 * PAGE},
						  {MADE, MADE + 8 * PAGE},   {FILE_START, FILE_START + PAGE},
						  {ARENA, ARENA + 7 * PAGE}, {ARENA + 10 * PAGE, ARENA + 30 * PAGE}};
	struct recording_residency residency = {0};
	struct buffer buffer;

	if (at_start)
		add_pages(&residency.at_start, 13 * PAGE, start, sizeof(start) / sizeof(start[0]));
	add_pages(&residency.processes, 48 * PAGE, end, sizeof(end) / sizeof(end[0]));
	buffer_init(&buffer, 1 << 16);
	ck_assert_ptr_null(recording_residency_encode(&residency, &buffer));
	builder_section(builder, FEATURE_MMTRACE_RESIDENCY, buffer.data, buffer.size);
	buffer_deinit(&buffer);
	recording_residency_deinit(&residency);
}

/* The sizes at the start and at the end of the recording, before the pages are read; 0: none. */
static void write_recording(bool at_start, uint64_t first_bytes, uint64_t last_bytes)
{
	const struct event_mapping lines[] = {
	    line(HEAP, 16 * PAGE, PRIVATE_RW, "[heap]", 0),
	    line(RESERVED, 16 * PAGE, PROT_NONE, "", 0),
	    line(GONE, 16 * PAGE, PRIVATE_RW, "", 0),
	    line(FILE_START, 16 * PAGE, PROT_READ, "/usr/share/data", 77),
	    line(ARENA, 32 * PAGE, PRIVATE_RW, "", 0),
	    line(ARENA + 32 * PAGE, ARENA_BYTES - 32 * PAGE, PROT_NONE, "", 0),
	};
	struct recording_builder *builder = builder_create(report_file_path());

	builder_snapshot(builder, SNAPSHOT_START, 1000, PID, lines, sizeof(lines) / sizeof(lines[0]));
	builder_mmap_exit(builder, 2000, PID, PID, MADE, 16 * PAGE, 0x1234);
	builder_munmap_exit(builder, 2100, PID, PID, GONE, 16 * PAGE);
	builder_call(builder, &(struct builder_call){.call = CALL_MPROTECT,
						     .time_ns = 2200,
						     .pid = PID,
						     .tid = PID,
						     .arguments = {RESERVED, 16 * PAGE, PRIVATE_RW}});
	if (first_bytes) {
		builder_note(builder, 1001, PID, NOTE_RESIDENT, first_bytes, 1);
		builder_note(builder, 2900, PID, NOTE_RESIDENT, last_bytes, 2);
	}
	write_residency(builder, at_start);
	builder_finish(builder, 3000);
}

static const struct mmt_growth_part *find_part(const struct mmt_growth *growth, enum mmt_growth_place place,
					       enum mmt_class memory_class)
{
	for (size_t i = 0; i < growth->part_count; i++) {
		if (growth->parts[i].place == place &&
		    (place != MMT_GROWTH_BEFORE || growth->parts[i].memory_class == memory_class))
			return &growth->parts[i];
	}
	ck_abort_msg("no part %s", mmt_growth_place_name(place));
	return NULL;
}

START_TEST(every_page_has_a_part)
{
	struct mmt_report_options options;
	struct mmt_report *report;
	const struct mmt_growth *growth;

	write_recording(true, 0, 0);
	mmt_report_options_init(&options);
	report = report_file_report(&options);
	growth = &report->growth;
	ck_assert(growth->parts_known);
	ck_assert_uint_eq(growth->part_count, 6);
	ck_assert_uint_eq(growth->pages_start_bytes, 13 * PAGE);
	ck_assert_uint_eq(growth->pages_end_bytes, 48 * PAGE);
	ck_assert_int_eq(growth->unexplained_bytes, PAGE);
	ck_assert(growth->parts[0].arena);
	ck_assert_int_eq(growth->parts[0].bytes, 25 * PAGE);
	ck_assert_int_eq(find_part(growth, MMT_GROWTH_MADE, 0)->bytes, 8 * PAGE);
	ck_assert_int_eq(find_part(growth, MMT_GROWTH_COMMITTED, 0)->bytes, 4 * PAGE);
	ck_assert_int_eq(find_part(growth, MMT_GROWTH_BEFORE, MMT_CLASS_HEAP)->bytes, 4 * PAGE);
	ck_assert_int_eq(find_part(growth, MMT_GROWTH_UNMAPPED, 0)->bytes, -3 * (int64_t)PAGE);
	ck_assert_int_eq(find_part(growth, MMT_GROWTH_BEFORE, MMT_CLASS_FILE)->bytes, -4 * (int64_t)PAGE);
	ck_assert_str_eq(find_part(growth, MMT_GROWTH_BEFORE, MMT_CLASS_FILE)->name, "/usr/share/data");
	mmt_report_destroy(report);
}
END_TEST

/* What a running process gains or loses between the readings of its size and of its pages is not unexplained. */
START_TEST(parts_add_up_while_the_process_runs)
{
	static const struct {
		uint64_t first, last;
		int64_t changing, unexplained; /* pages; the parts are 34 */
	} cases[] = {
	    {13, 48, 0, 1},   /* as the pages have it */
	    {13, 47, 0, 0},   /* between 34 and 35 */
	    {13, 40, -7, 0},  /* grew by 8 pages after the last size: 7 of them are in the parts */
	    {13, 60, 12, 1},  /* gave back 12 pages meanwhile */
	    {10, 48, 3, 1},   /* grew by 3 before the first pages were read */
	    {20, 48, -6, 0},  /* lost 7 there */
	    {13, 100, 52, 1}, /* ... 52 pages: more than the parts have */
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct mmt_report_options options;
		struct mmt_report *report;

		write_recording(true, cases[i].first * PAGE, cases[i].last * PAGE);
		mmt_report_options_init(&options);
		report = report_file_report(&options);
		ck_assert(report->growth.parts_known);
		ck_assert_int_eq(report->growth.unexplained_bytes, cases[i].unexplained * PAGE);
		ck_assert_int_eq(report->growth.changing_bytes, cases[i].changing * PAGE);
		ck_assert_int_eq(34 * PAGE + report->growth.changing_bytes + report->growth.unexplained_bytes,
				 (int64_t)(cases[i].last - cases[i].first) * PAGE);
	}
}
END_TEST

START_TEST(nothing_without_the_start)
{
	struct mmt_report_options options;
	struct mmt_report *report;

	write_recording(false, 0, 0);
	mmt_report_options_init(&options);
	report = report_file_report(&options);
	ck_assert(!report->growth.parts_known);
	ck_assert_uint_eq(report->growth.part_count, 0);
	mmt_report_destroy(report);
}
END_TEST

START_TEST(nothing_in_a_window)
{
	struct mmt_report_options options;
	struct mmt_report *report;

	write_recording(true, 0, 0);
	mmt_report_options_init(&options);
	options.from = (struct mmt_timestamp){MMT_TIMESTAMP_CLOCK, 1500};
	report = report_file_report(&options);
	ck_assert(!report->growth.parts_known);
	mmt_report_destroy(report);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("growth-parts");
	TCase *tests = tcase_create("growth-parts");

	tcase_add_checked_fixture(tests, report_file_setup, report_file_teardown);
	tcase_add_test(tests, every_page_has_a_part);
	tcase_add_test(tests, parts_add_up_while_the_process_runs);
	tcase_add_test(tests, nothing_without_the_start);
	tcase_add_test(tests, nothing_in_a_window);
	suite_add_tcase(suite, tests);
	return run_suite(suite);
}
