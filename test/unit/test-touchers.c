// SPDX-License-Identifier: LGPL-2.1-or-later
/* Who touched memory that was mapped before, in a recording with page faults. */
#include <check.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "analysis/replay/replay.h"
#include "analysis/report/report-build.h"
#include "base/limits.h"
#include "support/report-file.h"
#include "support/suite.h"

#define PID 7
#define PAGE 4096ull
#define HEAP 0x555555600000ull
#define PROGRAM 0x555555400000ull
#define POOL 0x7f0000000000ull
#define POOL_PAGES 4000
#define FILE_PAGES 0x7f1000000000ull
#define LARGE (1ull << 30)
#define FILL (PROGRAM + 0x100)
#define OTHER (PROGRAM + 0x200)

static const struct event_mapping lines[] = {
    {.start = PROGRAM,
     .length = 16 * PAGE,
     .protection = PROT_READ | PROT_EXEC,
     .flags = MAP_PRIVATE,
     .inode = 5,
     .path = "/usr/bin/app"},
    {.start = HEAP, .length = 64 * PAGE, .protection = PROT_READ | PROT_WRITE, .flags = MAP_PRIVATE, .path = "[heap]"},
    {.start = POOL,
     .length = POOL_PAGES * PAGE,
     .protection = PROT_READ | PROT_WRITE,
     .flags = MAP_PRIVATE,
     .path = ""},
    {.start = FILE_PAGES + PAGE, .length = 999 * PAGE, .protection = PROT_READ, .inode = 6, .path = "/tmp/read"},
    {.start = FILE_PAGES + 1000 * PAGE,
     .length = 1000 * PAGE,
     .protection = PROT_READ | PROT_WRITE,
     .inode = 7,
     .path = "/tmp/written"},
};

static struct recording_builder *begin(uint64_t period)
{
	struct recording_builder *builder = builder_create_with_faults(report_file_path(), period);

	builder_snapshot(builder, SNAPSHOT_START, 1000, PID, lines, sizeof(lines) / sizeof(lines[0]));
	return builder;
}

static void add(process_residencies *processes, const struct resident_run *runs, size_t count)
{
	struct process_residency *process = vector_append(processes);

	ck_assert_ptr_nonnull(process);
	process->pid = PID;
	process->time_ns = 1;
	for (size_t i = 0; i < count; i++) {
		process->resident_bytes += runs[i].end - runs[i].start;
		ck_assert(vector_push(&process->runs, runs[i]));
	}
}

/* Nothing of the pool is resident at the start, these pages of it at the end, and the heap. */
static void finish_recording(struct recording_builder *builder, uint64_t pages)
{
	const struct resident_run start = {PROGRAM, PROGRAM + PAGE};
	const struct resident_run end[] = {
	    {PROGRAM, PROGRAM + PAGE}, {HEAP, HEAP + 20 * PAGE}, {POOL, POOL + pages * PAGE}};
	struct recording_residency residency = {0};

	add(&residency.at_start, &start, 1);
	add(&residency.processes, end, 3);
	report_file_add_residency(builder, &residency);
	builder_finish(builder, 9000000);
}

static struct mmt_report *finish(struct recording_builder *builder, uint64_t pages)
{
	finish_recording(builder, pages);
	return report_file_report(NULL);
}

/* Rows by touch. */
static struct mmt_report *report_by_touch(void)
{
	struct mmt_report_options options;

	mmt_report_options_init(&options);
	options.by = MMT_BY_TOUCH;
	return report_file_report(&options);
}

static const struct mmt_growth_part *find(const struct mmt_report *report, enum mmt_class memory_class)
{
	ck_assert(report->growth.parts_known);
	for (size_t i = 0; i < report->growth.part_count; i++) {
		if (report->growth.parts[i].memory_class == memory_class)
			return &report->growth.parts[i];
	}
	ck_abort_msg("no part of %s", mmt_class_name(memory_class));
	return NULL;
}

START_TEST(touchers_of_a_pool_are_named)
{
	struct recording_builder *builder = begin(1);
	const struct mmt_growth_part *part;
	struct mmt_report *report;

	for (uint64_t i = 0; i < 100; i++)
		builder_fault(builder, 2000 + i, PID, POOL + i * PAGE + 5, PAGE, i < 70 ? FILL : OTHER);
	builder_fault(builder, 3000, PID, HEAP + PAGE, PAGE, OTHER);
	/* No more than the pages that are there. */
	builder_fault(builder, 3001, PID, POOL + 200 * PAGE, PAGE, OTHER);
	report = finish(builder, 100);
	ck_assert(report->growth.faults_recorded);
	part = find(report, MMT_CLASS_ANON);
	ck_assert_int_eq(part->bytes, 100 * PAGE);
	ck_assert_uint_eq(part->touched_bytes, 100 * PAGE);
	ck_assert_uint_eq(part->touched_error_bytes, 0);
	ck_assert_uint_eq(part->toucher_count, 2);
	ck_assert_str_eq(part->touchers[0].name, "app+0x100");
	ck_assert_uint_eq(part->touchers[0].bytes, 70 * PAGE);
	ck_assert_str_eq(part->touchers[1].name, "app+0x200");
	ck_assert_uint_eq(part->touchers[1].bytes, 30 * PAGE);
	ck_assert_uint_eq(part->touchers[1].frame_count, 1);
	ck_assert_ptr_null(part->hint);
	ck_assert_uint_eq(part->unattributed_bytes, 0);
	ck_assert_uint_eq(find(report, MMT_CLASS_HEAP)->unattributed_bytes, 0);
	/* Who needs the next page of a heap is not who keeps it. */
	ck_assert_uint_eq(find(report, MMT_CLASS_HEAP)->toucher_count, 0);
	mmt_report_destroy(report);
}
END_TEST

START_TEST(what_was_unmapped_has_no_toucher)
{
	struct recording_builder *builder = begin(1);
	const struct mmt_growth_part *part;
	struct mmt_report *report;

	builder_fault(builder, 2000, PID, POOL, 16 * PAGE, FILL);
	builder_munmap_exit(builder, 2100, PID, PID, POOL, 8 * PAGE);
	builder_fault(builder, 2200, PID, POOL, PAGE, OTHER);
	report = finish(builder, 100);
	part = find(report, MMT_CLASS_ANON);
	ck_assert_uint_eq(part->toucher_count, 1);
	ck_assert_uint_eq(part->touchers[0].bytes, 8 * PAGE);
	ck_assert_uint_eq(part->touched_bytes, 8 * PAGE);
	ck_assert_uint_eq(part->unattributed_bytes, 84 * PAGE);
	mmt_report_destroy(report);
}
END_TEST

/* 95 of 100 estimates are within the error that they state: of 50 random programs at least
 * 45. One of ten pages has a sample, and one of two functions touched it. */
START_TEST(errors_of_estimates_are_true)
{
	unsigned within = 0;

	srand(1);
	for (unsigned program = 0; program < 50; program++) {
		struct recording_builder *builder = begin(10);
		const struct mmt_growth_part *part;
		uint64_t truth = 0, next = (unsigned)rand() % 10;
		struct mmt_report *report;

		for (uint64_t i = 0; i < POOL_PAGES; i++) {
			bool fill = rand() % 10 < 7;

			truth += fill;
			if (i % 10 == next)
				builder_fault(builder, 2000 + i, PID, POOL + i * PAGE, PAGE, fill ? FILL : OTHER);
		}
		report = finish(builder, POOL_PAGES);
		part = find(report, MMT_CLASS_ANON);
		ck_assert_uint_eq(part->touched_bytes, POOL_PAGES * PAGE);
		ck_assert_str_eq(part->touchers[0].name, "app+0x100");
		within += (uint64_t)llabs((long long)(part->touchers[0].bytes - truth * PAGE)) <=
			  part->touchers[0].error_bytes;
		mmt_report_destroy(report);
	}
	ck_assert_uint_ge(within, 45);
}
END_TEST

/* A read of a file maps pages around it, and so may any fault of a recording that has every one. */
START_TEST(neighbours_in_files_count)
{
	const struct resident_run start = {PROGRAM, PROGRAM + PAGE},
				  end[] = {{PROGRAM, PROGRAM + PAGE},
					   {FILE_PAGES + PAGE, FILE_PAGES + 40 * PAGE},
					   {FILE_PAGES + 1000 * PAGE, FILE_PAGES + 1100 * PAGE}};
	struct recording_builder *builder = begin(_i ? 10 : 1);
	struct recording_residency residency = {0};
	struct mmt_report *report;
	const struct mmt_growth_part *part;

	builder_fault(builder, 2000, PID, FILE_PAGES + 3 * PAGE, PAGE, FILL);
	builder_fault(builder, 2001, PID, FILE_PAGES + 5 * PAGE, PAGE, OTHER);
	builder_fault(builder, 2002, PID, FILE_PAGES + 33 * PAGE, PAGE, FILL);
	builder_fault(builder, 2003, PID, FILE_PAGES + 1020 * PAGE, PAGE, FILL);
	add(&residency.at_start, &start, 1);
	add(&residency.processes, end, 3);
	report_file_add_residency(builder, &residency);
	builder_finish(builder, 9000000);
	report = report_file_report(NULL);
	ck_assert_uint_eq(report->growth.part_count, 2);
	part = &report->growth.parts[0];
	ck_assert_uint_eq(part->touched_bytes, (_i ? 100 : 24) * PAGE);
	part = &report->growth.parts[1];
	ck_assert_int_eq(part->bytes, 39 * PAGE);
	if (_i)
		ck_assert_uint_eq(part->touched_bytes, 39 * PAGE);
	else
		ck_assert_uint_eq(part->touched_bytes, (4 + 28 + 7) * PAGE);
	mmt_report_destroy(report);
}
END_TEST

/* Each page is read before it is written. One of ten faults has a sample. */
START_TEST(reads_of_the_zero_page_do_not_count)
{
	struct recording_builder *builder = begin(10);
	const struct mmt_growth_part *part;
	struct mmt_report *report;

	for (uint64_t i = 0; i < POOL_PAGES; i += 10) {
		builder_zero_page(builder, 2000 + i, PID, POOL + (i + 5) * PAGE, OTHER);
		builder_fault(builder, 9000 + i, PID, POOL + i * PAGE, PAGE, FILL);
	}
	builder_fault(builder, 20000, PID, POOL + PAGE, PAGE, OTHER);
	builder_zero_page(builder, 20001, PID, POOL + PAGE, OTHER);
	report = finish(builder, POOL_PAGES);
	part = find(report, MMT_CLASS_ANON);
	ck_assert_uint_eq(part->toucher_count, 1);
	ck_assert_str_eq(part->touchers[0].name, "app+0x100");
	ck_assert_uint_eq(part->touchers[0].bytes, POOL_PAGES * PAGE);
	mmt_report_destroy(report);
}
END_TEST

/* Each page has two faults, as by a write after fork, and samples see one or the other. */
START_TEST(errors_cover_pages_with_two_faults)
{
	struct recording_builder *builder = begin(10);
	const struct mmt_growth_part *part;
	struct mmt_report *report;

	for (uint64_t i = 0; i < POOL_PAGES; i += 10) {
		builder_fault(builder, 2000 + i, PID, POOL + (i + 5) * PAGE, PAGE, OTHER);
		builder_fault(builder, 9000 + i, PID, POOL + i * PAGE, PAGE, FILL);
	}
	report = finish(builder, POOL_PAGES);
	part = find(report, MMT_CLASS_ANON);
	ck_assert_uint_eq(part->toucher_count, 2);
	for (size_t i = 0; i < 2; i++) {
		bool fills = !strcmp(part->touchers[i].name, "app+0x100");
		uint64_t truth = fills ? POOL_PAGES * PAGE : 0;

		ck_assert_uint_le((uint64_t)llabs((long long)(part->touchers[i].bytes - truth)),
				  part->touchers[i].error_bytes);
	}
	mmt_report_destroy(report);
}
END_TEST

/* Huge pages have so few faults that none has a sample: nobody is named, and nothing is missing in silence. */
START_TEST(huge_pages_without_a_sample)
{
	struct recording_builder *builder = begin(97);
	const struct mmt_growth_part *part;
	struct mmt_report *report;

	for (uint64_t i = 0; _i && i < 970; i += 97)
		builder_fault(builder, 2000 + i, PID, POOL + i * PAGE, PAGE, FILL);
	report = finish(builder, POOL_PAGES);
	ck_assert(report->growth.faults_sampled);
	part = find(report, MMT_CLASS_ANON);
	ck_assert_uint_eq(part->toucher_count, _i ? 1 : 0);
	ck_assert_uint_eq(part->touched_bytes, _i ? 970 * PAGE : 0);
	ck_assert_uint_eq(part->unattributed_bytes, (uint64_t)part->bytes - part->touched_bytes);
	ck_assert_uint_lt(part->touched_error_bytes, 970 * PAGE);
	ck_assert_ptr_null(part->hint);
	mmt_report_destroy(report);
}
END_TEST

/* 97 of 97 huge faults, of which one has a sample, are 194 MiB, with an error as large. */
START_TEST(one_sample_of_huge_pages)
{
	const struct resident_run start = {PROGRAM, PROGRAM + PAGE},
				  end[] = {{PROGRAM, PROGRAM + PAGE}, {POOL, POOL + LARGE}};
	struct recording_residency residency = {0};
	struct recording_builder *builder = builder_create_with_faults(report_file_path(), 97);
	struct event_mapping pool[] = {lines[0], lines[2]};
	const struct mmt_growth_part *part;
	struct mmt_report *report;

	pool[1].length = LARGE;
	builder_snapshot(builder, SNAPSHOT_START, 1000, PID, pool, 2);
	builder_fault(builder, 2000, PID, POOL + (96ull << 20), 2 << 20, FILL);
	add(&residency.at_start, &start, 1);
	add(&residency.processes, end, 2);
	report_file_add_residency(builder, &residency);
	builder_finish(builder, 9000000);
	report = report_file_report(NULL);
	part = find(report, MMT_CLASS_ANON);
	ck_assert_uint_eq(part->touchers[0].bytes, 194ull << 20);
	ck_assert_uint_ge(part->touchers[0].error_bytes, 194ull << 20);
	ck_assert_uint_eq(part->unattributed_bytes, LARGE - (194ull << 20));
	mmt_report_destroy(report);
}
END_TEST

/* One of ten faults has a sample: that of the only huge page counts ten times, and has most of the variance. The second
 * time, the other pages have two faults. */
START_TEST(huge_pages_do_not_change_other_figures)
{
	const uint64_t huge = 512, truth[] = {POOL_PAGES - huge, huge};
	struct recording_builder *builder = begin(10);
	const struct mmt_growth_part *part;
	struct mmt_report *report;
	uint64_t touched = 0;

	builder_fault(builder, 2000, PID, POOL, huge * PAGE, OTHER);
	for (uint64_t i = huge; i < POOL_PAGES; i += _i ? 5 : 10)
		builder_fault(builder, 2000 + i, PID, POOL + i * PAGE, PAGE, FILL);
	report = finish(builder, POOL_PAGES);
	part = find(report, MMT_CLASS_ANON);
	ck_assert_uint_eq(part->toucher_count, 2);
	for (size_t i = 0; i < 2; i++) {
		const struct mmt_toucher *toucher = &part->touchers[i];
		bool fills = !strcmp(toucher->name, "app+0x100");

		touched += toucher->bytes;
		ck_assert_uint_le((uint64_t)llabs((long long)(toucher->bytes - truth[!fills] * PAGE)),
				  toucher->error_bytes);
		ck_assert_uint_lt(toucher->error_bytes, POOL_PAGES * PAGE);
		ck_assert(fills == !i);
	}
	ck_assert(_i || part->touchers[0].error_bytes < truth[0] * PAGE / 5);
	ck_assert_uint_le(touched, (uint64_t)part->bytes);
	mmt_report_destroy(report);
}
END_TEST

/* The pages of a moved mapping are counted at their new place, as one run. */
START_TEST(moves_keep_the_number_of_runs)
{
	struct recording_builder *builder = begin(1);
	struct mmt_report_options options;
	struct replay replay;
	const struct page_faults *faults;

	for (uint64_t i = 0; i < 30; i += 3)
		builder_fault(builder, 2000 + i, PID, POOL + i * PAGE, PAGE, FILL);
	builder_call(builder, &(struct builder_call){.call = CALL_MREMAP,
						     .time_ns = 3000,
						     .pid = PID,
						     .tid = PID,
						     .arguments = {POOL, 16 * PAGE, 16 * PAGE, MREMAP_MAYMOVE},
						     .result = (int64_t)(POOL + POOL_PAGES * PAGE * 2)});
	builder_finish(builder, 9000000);
	mmt_report_options_init(&options);
	options.input = report_file_path();
	ck_assert_ptr_null(replay_init(&replay, &(struct replay_options){.report = &options}));
	ck_assert_ptr_null(replay_run(&replay));
	faults = touched_pages_of(&replay.touched, processes_find(replay.processes, PID));
	ck_assert_ptr_nonnull(faults);
	ck_assert_uint_eq(faults->runs.count, 10);
	ck_assert_uint_eq(replay.touched.run_count, faults->runs.count);
	replay_deinit(&replay);
}
END_TEST

START_TEST(hostile_faults_are_harmless)
{
	static const uint64_t sizes[] = {0, 1, 3, PAGE, 1ull << 30, 1ull << 40, UINT64_MAX};
	struct recording_builder *builder = begin(100000);
	const struct mmt_growth_part *part;
	struct mmt_report *report;

	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		builder_fault(builder, 2000 + i, PID, POOL + i * PAGE, sizes[i], FILL);
		builder_fault(builder, 2500 + i, PID, UINT64_MAX - sizes[i], sizes[i], FILL);
		builder_fault(builder, 3000 + i, PID + 1, POOL, sizes[i], FILL);
	}
	report = finish(builder, 10);
	part = find(report, MMT_CLASS_ANON);
	ck_assert_uint_le(part->touched_bytes, 10 * PAGE);
	mmt_report_destroy(report);
	report = report_by_touch();
	ck_assert_uint_eq(report->row_count, 1);
	ck_assert_uint_le(report->rows[0].memory_bytes, 10 * PAGE);
	mmt_report_destroy(report);
	/* Such a period is none of the recorder's. */
	builder = begin(100001);
	builder_fault(builder, 2000, PID, POOL, PAGE, FILL);
	report = finish(builder, 10);
	ck_assert_uint_eq(find(report, MMT_CLASS_ANON)->toucher_count, 0);
	mmt_report_destroy(report);
}
END_TEST

/* A cut would make two runs of one: it takes the rest of it, too. */
START_TEST(no_more_runs_than_the_limit)
{
	struct space *space = (struct space *)(uintptr_t)64;
	const struct process process = {.space = space};
	struct touched_pages touched = {.run_count = LIMIT_TOUCHED_RUNS};
	struct page_faults *faults = calloc(1, sizeof(*faults));

	ck_assert(page_faults_add(faults, &(struct page_fault){.start = 0, .end = 8 * PAGE, .weight = 1}));
	ck_assert(map_put_pointer(&touched.spaces, (uintptr_t)space, faults));
	ck_assert(touched_pages_forget(&touched, &process, 2 * PAGE, 3 * PAGE));
	ck_assert_uint_eq(faults->runs.count, 1);
	ck_assert_uint_eq(touched.run_count, LIMIT_TOUCHED_RUNS);
	ck_assert_uint_eq(touched.left_out, 1);
	ck_assert(touched_pages_forget(&touched, &process, 0, 2 * PAGE));
	ck_assert_uint_eq(faults->runs.count, 0);
	ck_assert_uint_eq(touched.left_out, 1);
	touched_pages_deinit(&touched);
}
END_TEST

/* Whatever mapped the memory, and only what was not resident when recording began; the sums are those of all stacks. */
START_TEST(rows_by_touch)
{
	struct recording_builder *builder = begin(1);
	struct mmt_report_options options;
	struct mmt_report *report;
	const struct mmt_row *row;

	builder_mmap_exit(builder, 1500, PID, PID, POOL + 50 * PAGE, 20 * PAGE, OTHER);
	for (uint64_t i = 0; i < 100; i++)
		builder_fault(builder, 2000 + i, PID, POOL + i * PAGE + 5, PAGE, i < 70 ? FILL : OTHER);
	/* Resident from the start; no longer there; in a heap. */
	builder_fault(builder, 3000, PID, PROGRAM, PAGE, FILL);
	builder_fault(builder, 3001, PID, POOL + 200 * PAGE, PAGE, FILL);
	for (uint64_t i = 0; i < 10; i++)
		builder_fault(builder, 4000 + i, PID, HEAP + i * PAGE, PAGE, FILL);
	finish_recording(builder, 100);
	report = report_by_touch();
	ck_assert_uint_eq(report->row_count, 3);
	ck_assert_uint_eq(report->cause_count, 0);
	ck_assert_uint_eq(report->unfreed_bytes, 20 * PAGE);
	for (uint32_t i = 0; i < 3; i++) {
		row = &report->rows[i];
		ck_assert_uint_eq(row->id, i + 1);
		ck_assert_ptr_null(row->name);
		ck_assert_uint_eq(row->frame_count, 1);
		ck_assert_uint_eq(row->frames[0]->module_offset, i == 1 ? 0x200 : 0x100);
		ck_assert_uint_eq(row->memory_bytes, (i == 0 ? 70 : i == 1 ? 30 : 10) * PAGE);
		ck_assert_uint_eq(row->resident_bytes, row->memory_bytes);
		ck_assert_uint_eq(row->touched_error_bytes, 0);
		ck_assert_int_eq(row->verdict, MMT_ROW_UNKNOWN);
		ck_assert_int_eq(row->memory_class, i == 2 ? MMT_CLASS_HEAP : MMT_CLASS_ANON);
		/* Who needs the next page of a heap is not who keeps it. */
		ck_assert_int_eq(row->pattern, i == 2 ? MMT_PATTERN_HEAP : MMT_PATTERN_NONE);
		ck_assert((row->hint && strstr(row->hint, "needed new pages")) == (i == 2));
	}
	mmt_report_destroy(report);
	/* For exports, each row has the parts that its processes touched, without times. */
	mmt_report_options_init(&options);
	options.by = MMT_BY_TOUCH;
	options.lifetime_steps = 16;
	report = report_file_report(&options);
	ck_assert_uint_eq(report->part_count, 3);
	for (size_t i = 0; i < 3; i++) {
		ck_assert_uint_eq(report->parts[i].row, i);
		ck_assert_uint_eq(report->parts[i].resident_bytes, report->rows[i].memory_bytes);
		ck_assert_uint_eq(report->parts[i].lifetime_count, 0);
		ck_assert_int_eq(report->parts[i].memory_class, report->rows[i].memory_class);
		ck_assert_int_eq(report->parts[i].thread.pid, PID);
	}
	mmt_report_destroy(report);
}
END_TEST

START_TEST(times_of_reclaim_are_added_by_stack)
{
	struct recording_builder *builder = begin(1);
	struct mmt_report_options options;
	struct mmt_report *report;

	/* Who began before recording is not known. */
	builder_reclaim(builder, 2000, PID, PID, false, FILL);
	builder_reclaim(builder, 3000, PID, PID, true, FILL);
	builder_reclaim(builder, 3100, PID, PID + 1, true, FILL);
	builder_reclaim(builder, 3500, PID, PID, false, FILL);
	builder_reclaim(builder, 4100, PID, PID + 1, false, FILL);
	builder_reclaim(builder, 5000, PID, PID, true, OTHER);
	builder_reclaim(builder, 5001, PID, PID, false, OTHER);
	/* The end of the first one was lost; the last one does not end. */
	builder_reclaim(builder, 6000, PID, PID, true, OTHER);
	builder_reclaim(builder, 7000, PID, PID, true, OTHER);
	builder_reclaim(builder, 7010, PID, PID, false, OTHER);
	builder_reclaim(builder, 8000, PID, PID, true, OTHER);
	/* Its end, and the begin of the next one, were lost. */
	builder_lost(builder, 8500, BUILDER_RECLAIM_ID, 2);
	builder_reclaim(builder, 8000000, PID, PID, false, OTHER);
	builder_finish(builder, 9000000);
	mmt_report_options_init(&options);
	report = report_file_report(&options);
	ck_assert_uint_eq(report->stall_count, 2);
	ck_assert_uint_eq(report->stalls[0].count, 2);
	ck_assert_uint_eq(report->stalls[0].total_ns, 1500);
	ck_assert_uint_eq(report->stalls[0].longest_ns, 1000);
	ck_assert_int_eq(report->stalls[0].pid, PID);
	ck_assert_uint_eq(report->stalls[0].frame_count, 1);
	ck_assert_uint_eq(report->stalls[0].frames[0]->module_offset, 0x100);
	ck_assert_uint_eq(report->stalls[1].count, 2);
	ck_assert_uint_eq(report->stalls[1].total_ns, 11);
	ck_assert_uint_eq(report->completeness.lost_events, 0);
	mmt_report_destroy(report);
	options.from = (struct mmt_timestamp){.kind = MMT_TIMESTAMP_SINCE_START, .ns = 4500};
	report = report_file_report(&options);
	ck_assert_uint_eq(report->stall_count, 1);
	mmt_report_destroy(report);
	/* In a window, only the part of the time that lies in it counts. */
	options.from = (struct mmt_timestamp){.kind = MMT_TIMESTAMP_CLOCK, .ns = 3400};
	report = report_file_report(&options);
	ck_assert_uint_eq(report->stall_count, 2);
	ck_assert_uint_eq(report->stalls[0].count, 2);
	ck_assert_uint_eq(report->stalls[0].total_ns, 100 + 700);
	ck_assert_uint_eq(report->stalls[0].longest_ns, 700);
	mmt_report_destroy(report);
	/* --focus selects their stacks, --ignore leaves them out. */
	for (int i = 0; i < 4; i++) {
		const char *pattern = i % 2 ? "module=app" : "module=other";

		mmt_report_options_init(&options);
		if (i < 2) {
			options.focus = &pattern;
			options.focus_count = 1;
		} else {
			options.ignore = &pattern;
			options.ignore_count = 1;
		}
		report = report_file_report(&options);
		ck_assert_uint_eq(report->stall_count, i == 1 || i == 2 ? 2 : 0);
		mmt_report_destroy(report);
	}
}
END_TEST

/* Of two functions each touches half, and one of ten pages has a sample. */
START_TEST(rows_by_touch_have_errors)
{
	struct recording_builder *builder = begin(10);
	struct mmt_report *report;

	for (uint64_t i = 0; i < POOL_PAGES; i += 10)
		builder_fault(builder, 2000 + i, PID, POOL + i * PAGE, PAGE, i < POOL_PAGES / 2 ? FILL : OTHER);
	finish_recording(builder, POOL_PAGES);
	report = report_by_touch();
	ck_assert_uint_eq(report->row_count, 2);
	for (size_t i = 0; i < 2; i++) {
		ck_assert_uint_eq(report->rows[i].memory_bytes, POOL_PAGES / 2 * PAGE);
		/* 1.96 * sqrt(200 samples * 10 pages * (10 pages - 1)) */
		ck_assert_uint_ge(report->rows[i].touched_error_bytes, 262 * PAGE);
		ck_assert_uint_le(report->rows[i].touched_error_bytes, 264 * PAGE);
	}
	mmt_report_destroy(report);
}
END_TEST

/* The only row of a recording in which one of ten faults has a sample; these pages are new. */
static struct mmt_report *report_of_fault(uint64_t address, uint64_t first, uint64_t last)
{
	const struct resident_run start = {PROGRAM, PROGRAM + PAGE}, end[] = {start, {first, last}};
	struct recording_builder *builder = begin(10);
	struct recording_residency residency = {0};
	struct mmt_report *report;

	builder_fault(builder, 2000, PID, address, PAGE, FILL);
	add(&residency.at_start, &start, 1);
	add(&residency.processes, end, 2);
	report_file_add_residency(builder, &residency);
	builder_finish(builder, 9000000);
	report = report_by_touch();
	ck_assert_uint_eq(report->row_count, 1);
	return report;
}

/* A read of a writable file may have mapped the pages around it, as far as pages are missing. */
START_TEST(errors_cover_neighbours)
{
	const uint64_t written = FILE_PAGES + 1000 * PAGE, read = FILE_PAGES + 512 * PAGE;
	struct mmt_report *report = report_of_fault(written + 20 * PAGE, written, written + 100 * PAGE);

	ck_assert_uint_eq(report->rows[0].memory_bytes, 100 * PAGE);
	ck_assert_uint_ge(report->rows[0].touched_error_bytes, 90 * PAGE);
	mmt_report_destroy(report);
	/* A read may have mapped a folio that is larger than what every fault maps. */
	report = report_of_fault(read, read, read + 256 * PAGE);
	ck_assert_uint_eq(report->rows[0].memory_bytes, 160 * PAGE);
	ck_assert_uint_ge(report->rows[0].touched_error_bytes, 96 * PAGE);
	mmt_report_destroy(report);
}
END_TEST

/* Two functions touch memory that is shared and writable, one of ten faults has a sample. Each fault maps 16 pages or
 * one; or the first function reads a half, 16 pages at once, and the second one writes the other half, page by page. Of
 * 50 random programs, the error that is stated covers the truth in at least 45. */
START_TEST(errors_of_neighbours_are_true)
{
	const uint64_t first = FILE_PAGES + 1024 * PAGE, pages = 32000;
	const struct resident_run start = {PROGRAM, PROGRAM + PAGE}, end[] = {start, {first, first + pages * PAGE}};
	struct event_mapping shared[] = {lines[0], lines[4]};
	unsigned within = 0, narrow = 0;

	shared[1].start = first;
	shared[1].length = pages * PAGE;
	srand(1);
	for (unsigned program = 0; program < 50; program++) {
		struct recording_builder *builder = builder_create_with_faults(report_file_path(), 10);
		struct recording_residency residency = {0};
		uint64_t truth = 0, faults = (unsigned)rand() % 10;
		struct mmt_report *report;
		const struct mmt_row *row;

		builder_snapshot(builder, SNAPSHOT_START, 1000, PID, shared, 2);
		for (uint64_t i = 0, step; i < pages; i += step) {
			bool fill = _i == 2 ? i < pages / 2 : rand() % 10 < 7;

			step = _i == 0 || (_i == 2 && fill) ? 16 : 1;
			truth += fill ? step : 0;
			if (faults++ % 10 == 0)
				builder_fault(builder, 2000 + i, PID, first + (i + (unsigned)rand() % step) * PAGE,
					      PAGE, fill ? FILL : OTHER);
		}
		add(&residency.at_start, &start, 1);
		add(&residency.processes, end, 2);
		report_file_add_residency(builder, &residency);
		builder_finish(builder, 9000000);
		report = report_by_touch();
		ck_assert_uint_eq(report->row_count, 2);
		row = &report->rows[report->rows[0].frames[0]->module_offset != 0x100];
		within += (uint64_t)llabs((long long)(row->memory_bytes - truth * PAGE)) <= row->touched_error_bytes;
		narrow += row->touched_error_bytes <= row->memory_bytes / 3;
		mmt_report_destroy(report);
	}
	ck_assert_uint_ge(within, 45);
	ck_assert_uint_ge(narrow, _i == 2 ? 0 : 45);
}
END_TEST

/* A page that was shared when recording began, and that the process wrote: it has one of its own. */
START_TEST(copies_are_touched)
{
	const struct resident_run runs[] = {{PROGRAM, PROGRAM + PAGE}, {POOL, POOL + 100 * PAGE}},
				  still_shared[] = {{PROGRAM, PROGRAM + PAGE}, {POOL + 40 * PAGE, POOL + 100 * PAGE}};
	struct recording_builder *builder = begin(1);
	struct recording_residency residency = {0}, shared = {0};
	struct mmt_report *report;

	for (uint64_t i = 0; i < 40; i++)
		builder_fault(builder, 2000 + i, PID, POOL + i * PAGE, PAGE, FILL);
	/* A read of a page that is shared copies nothing. */
	builder_fault(builder, 3000, PID, POOL + 60 * PAGE, PAGE, OTHER);
	add(&residency.at_start, runs, 2);
	add(&residency.processes, runs, 2);
	add(&shared.at_start, runs, 2);
	add(&shared.processes, still_shared, 2);
	report_file_add_residency(builder, &residency);
	report_file_add_shared(builder, &shared);
	builder_finish(builder, 9000000);
	report = report_by_touch();
	ck_assert_uint_eq(report->row_count, 1);
	ck_assert_uint_eq(report->rows[0].memory_bytes, 40 * PAGE);
	ck_assert_uint_eq(report->rows[0].frames[0]->module_offset, 0x100);
	mmt_report_destroy(report);
}
END_TEST

static void expect_refusal(struct mmt_report_options options, const char *what)
{
	struct mmt_report *report;
	struct mmt_error *error;

	options.input = report_file_path();
	options.by = MMT_BY_TOUCH;
	error = mmt_report_create(&options, &report);
	ck_assert_ptr_nonnull(error);
	ck_assert_ptr_nonnull(strstr(error->message, what));
	mmt_error_destroy(error);
}

START_TEST(rows_by_touch_need_faults_and_pages)
{
	const char *pattern = "thread=worker";
	struct mmt_report_options options;

	mmt_report_options_init(&options);
	builder_finish(begin(1), 9000000);
	expect_refusal(options, "were not read");
	options.then_by = MMT_BY_CLASS;
	expect_refusal(options, "then_by");
	options.then_by = MMT_BY_STACK;
	options.every_ns = 1000000;
	expect_refusal(options, "--every");
	options.every_ns = 0;
	options.ignore = &pattern;
	options.ignore_count = 1;
	expect_refusal(options, "no threads");
	options.ignore_count = 0;
	report_file_teardown();
	report_file_setup();
	builder_finish(builder_create(report_file_path()), 9000000);
	expect_refusal(options, "no page faults");
}
END_TEST

Suite *test_suite(void)
{
	Suite *suite = suite_create("touchers");
	TCase *tests = add_tcase(suite, "touchers");

	tcase_add_checked_fixture(tests, report_file_setup, report_file_teardown);
	tcase_add_tests(tests, touchers_of_a_pool_are_named, what_was_unmapped_has_no_toucher,
			errors_of_estimates_are_true, reads_of_the_zero_page_do_not_count,
			errors_cover_pages_with_two_faults, moves_keep_the_number_of_runs, hostile_faults_are_harmless,
			no_more_runs_than_the_limit, rows_by_touch, times_of_reclaim_are_added_by_stack,
			rows_by_touch_have_errors, errors_cover_neighbours, copies_are_touched,
			rows_by_touch_need_faults_and_pages);
	tcase_add_loop_test(tests, neighbours_in_files_count, 0, 2);
	tcase_add_loop_test(tests, errors_of_neighbours_are_true, 0, 3);
	tcase_add_loop_test(tests, huge_pages_do_not_change_other_figures, 0, 2);
	tcase_add_loop_test(tests, huge_pages_without_a_sample, 0, 2);
	tcase_add_test(tests, one_sample_of_huge_pages);
	return suite;
}
