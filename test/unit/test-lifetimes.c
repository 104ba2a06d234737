// SPDX-License-Identifier: LGPL-2.1-or-later
/* When memory was mapped and unmapped: the matrices, and the parts of a report's rows. */
#include <check.h>
#include <mmtrace/report.h>
#include <stdlib.h>
#include <string.h>

#include "base/limits.h"
#include "analysis/replay/ledger.h"
#include "model/space/space.h"
#include "support/report-file.h"
#include "support/suite.h"

enum { FIRST = 100 };

#define MEBIBYTE (1ull << 20)
#define ADDRESS 0x10000000000ull
#define PAGE 4096

static struct ledger ledger;

static void setup(void)
{
	ledger_init(&ledger,
		    &(struct ledger_options){.from_ns = 1000, .allocations_to_ns = UINT64_MAX, .lifetime_steps = 1000});
}

static void teardown(void)
{
	ledger_deinit(&ledger);
}

static uint32_t open_allocation(uint64_t time_ns, uint64_t bytes)
{
	uint32_t allocation = 0;

	ledger.now_ns = time_ns;
	ck_assert_ptr_null(ledger_open(&ledger, 0, 0, 1, &allocation));
	ck_assert_ptr_null(ledger_born(&ledger, allocation, 0, bytes));
	ledger_close(&ledger, allocation);
	return allocation;
}

static void release(uint32_t allocation, uint64_t time_ns, uint64_t bytes)
{
	ledger.now_ns = time_ns;
	ledger_released(&ledger, allocation, bytes, 0);
}

static void check_cell(size_t place, unsigned allocated, unsigned released, uint64_t bytes, uint64_t count)
{
	const struct lifetime_cell *cell = &ledger.lifetimes.cells.items[place];

	ck_assert_uint_lt(place, ledger.lifetimes.cells.count);
	ck_assert_uint_eq(cell->allocated_step, allocated);
	ck_assert_uint_eq(cell->released_step, released);
	ck_assert_uint_eq(cell->bytes, bytes);
	ck_assert_uint_eq(cell->count, count);
}

START_TEST(pieces_end_one_after_the_other)
{
	uint32_t allocation = open_allocation(3000, 10 * PAGE);

	release(allocation, 5000, PAGE);
	release(allocation, 7500, 2 * PAGE);
	ck_assert_ptr_null(ledger_end_lifetimes(&ledger));
	ck_assert_uint_eq(ledger.lifetimes.step_ns, 1000);
	ck_assert_uint_eq(ledger.lifetimes.cells.count, 3);
	check_cell(0, 2, 4, PAGE, 0);
	check_cell(1, 2, 6, 2 * PAGE, 0);
	check_cell(2, 2, LIFETIME_STILL_MAPPED, 7 * PAGE, 1);
}
END_TEST

/* Bytes that became code belong to an account of their own, as if mapped by the same call. */
START_TEST(split_after_a_release)
{
	uint32_t allocation = open_allocation(3000, 3 * PAGE), part;

	release(allocation, 5000, PAGE);
	ck_assert_ptr_null(ledger_split(&ledger, allocation, 7, 2 * PAGE, &part));
	ck_assert_ptr_null(ledger_end_lifetimes(&ledger));
	ck_assert_uint_eq(ledger.lifetimes.cells.count, 2);
	check_cell(0, 2, 4, PAGE, 1);
	check_cell(1, 2, LIFETIME_STILL_MAPPED, 2 * PAGE, 1);
	ck_assert_uint_eq(ledger.lifetimes.parts.count, 2);
}
END_TEST

START_TEST(steps_double_as_time_passes)
{
	for (uint64_t i = 0; i < 3; i++) {
		uint32_t allocation = open_allocation(1000 + i, PAGE);

		release(allocation, 3000 + i * 1000000000, PAGE);
	}
	ck_assert_uint_eq(ledger.lifetimes.step_ns, 1000 << 11);
	ck_assert_uint_eq(ledger.lifetimes.cells.count, 3);
	check_cell(0, 0, 0, PAGE, 1);
	check_cell(2, 0, 976, PAGE, 1);
	ck_assert(lifetimes_reach(&ledger.lifetimes, UINT64_MAX));
	ck_assert_uint_lt(lifetimes_steps(&ledger.lifetimes), 1000);
}
END_TEST

/* A million allocations with lifetimes of all lengths. */
START_TEST(memory_is_bounded)
{
	struct lifetimes lifetimes;
	uint64_t bytes = 0, count = 0;

	lifetimes_init(&lifetimes, LIFETIME_STEPS_MAX, 0);
	for (uint64_t i = 0; i < 1000000; i++)
		ck_assert(lifetimes_add(&lifetimes, 0, 0, i * 1000, i * 1000 + i * 7919 % 1000000000, PAGE, 1));
	ck_assert_uint_le(lifetimes.cells.count, LIMIT_LIFETIME_CELLS);
	ck_assert_uint_ge(lifetimes_steps(&lifetimes), 256);
	for (size_t i = 0; i < lifetimes.cells.count; i++) {
		bytes += lifetimes.cells.items[i].bytes;
		count += lifetimes.cells.items[i].count;
	}
	ck_assert_uint_eq(count, 1000000);
	ck_assert_uint_eq(bytes, count * PAGE);
	lifetimes_deinit(&lifetimes);
}
END_TEST

/* The parts of each row add up to it, and so do the lifetimes of each part. */
static void check_sums(const struct mmt_report *report)
{
	struct mmt_part *sums = calloc(report->row_count + 1, sizeof(*sums));

	ck_assert_ptr_nonnull(sums);
	for (size_t i = 0; i < report->part_count; i++) {
		const struct mmt_part *part = &report->parts[i];
		struct mmt_part *sum = &sums[part->row];
		uint64_t allocated = 0, unfreed = 0;

		ck_assert_uint_lt(part->row, report->row_count);
		ck_assert_uint_lt(part->process, report->process_count);
		for (size_t j = 0; j < part->lifetime_count; j++) {
			const struct mmt_lifetime *lifetime = &part->lifetimes[j];

			ck_assert_uint_lt(lifetime->allocated_step, report->lifetime_steps);
			ck_assert(lifetime->released_step == MMT_STILL_MAPPED ||
				  lifetime->released_step < report->lifetime_steps);
			ck_assert_uint_le(lifetime->allocated_step, lifetime->released_step);
			allocated += lifetime->bytes;
			unfreed += lifetime->released_step == MMT_STILL_MAPPED ? lifetime->bytes : 0;
		}
		ck_assert_uint_eq(part->allocated_bytes, allocated);
		ck_assert_uint_eq(part->unfreed_bytes, unfreed);
		sum->allocated_bytes += part->allocated_bytes;
		sum->allocated_count += part->allocated_count;
		sum->freed_bytes += part->freed_bytes;
		sum->freed_count += part->freed_count;
		sum->unfreed_bytes += part->unfreed_bytes;
		sum->unfreed_count += part->unfreed_count;
		sum->committed_bytes += part->committed_bytes;
		sum->committed_before_bytes += part->committed_before_bytes;
		sum->reserved_bytes += part->reserved_bytes;
		sum->resident_bytes += part->resident_bytes == MMT_UNKNOWN ? 0 : part->resident_bytes;
		sum->resident_before_bytes +=
		    part->resident_before_bytes == MMT_UNKNOWN ? 0 : part->resident_before_bytes;
	}
	for (size_t i = 0; i < report->row_count; i++) {
		const struct mmt_row *row = &report->rows[i];

		ck_assert_uint_eq(row->allocated_bytes, sums[i].allocated_bytes);
		ck_assert_uint_eq(row->allocated_count, sums[i].allocated_count);
		ck_assert_uint_eq(row->freed_bytes, sums[i].freed_bytes);
		ck_assert_uint_eq(row->freed_count, sums[i].freed_count);
		ck_assert_uint_eq(row->unfreed_bytes, sums[i].unfreed_bytes);
		ck_assert_uint_eq(row->unfreed_count, sums[i].unfreed_count);
		ck_assert_uint_eq(row->committed_bytes, sums[i].committed_bytes);
		ck_assert_uint_eq(row->committed_before_bytes, sums[i].committed_before_bytes);
		ck_assert_uint_eq(row->reserved_bytes, sums[i].reserved_bytes);
		ck_assert_uint_eq(row->resident_bytes == MMT_UNKNOWN ? 0 : row->resident_bytes, sums[i].resident_bytes);
		ck_assert_uint_eq(row->resident_before_bytes == MMT_UNKNOWN ? 0 : row->resident_before_bytes,
				  sums[i].resident_before_bytes);
	}
	free(sums);
}

START_TEST(parts_add_up_to_the_rows)
{
	static const char *const inputs[] = {"data/leak.data", "data/more.data", "data/troubled.data",
					     "data/perf.data"};
	static const char *const ignored = "thread=nobody";
	uint64_t age_ns = 0;

	for (enum mmt_row_key by = MMT_BY_STACK; by <= MMT_BY_THREAD; by++) {
		for (unsigned window = 0; window < 2; window++) {
			struct mmt_report_options options;
			struct mmt_report *report;

			mmt_report_options_init(&options);
			options.input = inputs[_i];
			options.by = by;
			options.lifetime_steps = 64;
			options.min_age_ns = window ? age_ns : 0;
			options.ignore = &ignored;
			options.ignore_count = window;
			ck_assert_ptr_null(mmt_report_create(&options, &report));
			ck_assert_int_eq(report->part_count > 0, report->row_count > 0);
			ck_assert_uint_le(report->lifetime_steps, 64);
			age_ns = (report->end_ns - report->start_ns) * 2 / 5;
			check_sums(report);
			mmt_report_destroy(report);
		}
	}
}
END_TEST

START_TEST(no_parts_unless_requested)
{
	struct mmt_report_options options;
	struct mmt_report *report;

	mmt_report_options_init(&options);
	options.input = "data/leak.data";
	ck_assert_ptr_null(mmt_report_create(&options, &report));
	ck_assert_uint_eq(report->part_count, 0);
	ck_assert_uint_eq(report->lifetime_steps, 0);
	mmt_report_destroy(report);
	options.lifetime_steps = 1;
	mmt_error_destroy(mmt_report_create(&options, &report));
}
END_TEST

/* 4 MiB, of which 1 MiB is freed and the rest stays. */
START_TEST(parts_of_a_report)
{
	struct recording_builder *builder = builder_create_at(report_file_path(), 1000);
	struct mmt_report_options options;
	const struct mmt_part *part;
	struct mmt_report *report;

	builder_comm(builder, 1000, FIRST, FIRST, "first");
	builder_snapshot(builder, SNAPSHOT_START, 1000, FIRST, NULL, 0);
	builder_thread_name(builder, 1000, FIRST, FIRST + 1, "worker");
	builder_mmap_exit(builder, 2000, FIRST, FIRST + 1, ADDRESS, 4 * MEBIBYTE, 0x401000);
	builder_munmap_exit(builder, 5000, FIRST, FIRST, ADDRESS + MEBIBYTE, MEBIBYTE);
	builder_round(builder);
	builder_finish(builder, 9000);
	mmt_report_options_init(&options);
	options.lifetime_steps = MMT_LIFETIME_STEPS_MAX;
	report = report_file_report(&options);
	ck_assert_uint_eq(report->part_count, 1);
	ck_assert_uint_eq(report->lifetime_step_ns, 1000);
	part = report->parts;
	ck_assert_str_eq(part->thread.name, "worker");
	ck_assert_int_eq(part->thread.tid, FIRST + 1);
	ck_assert_int_eq(part->thread.pid, FIRST);
	ck_assert_int_eq(part->memory_class, MMT_CLASS_ANON);
	ck_assert_ptr_null(part->file);
	ck_assert_uint_eq(part->lifetime_count, 2);
	ck_assert_uint_eq(part->lifetimes[0].allocated_step, 1);
	ck_assert_uint_eq(part->lifetimes[0].released_step, 4);
	ck_assert_uint_eq(part->lifetimes[0].bytes, MEBIBYTE);
	ck_assert_uint_eq(part->lifetimes[0].count, 0);
	ck_assert_uint_eq(part->lifetimes[1].released_step, MMT_STILL_MAPPED);
	ck_assert_uint_eq(part->lifetimes[1].bytes, 3 * MEBIBYTE);
	ck_assert_uint_eq(part->lifetimes[1].count, 1);
	check_sums(report);
	mmt_report_destroy(report);
}
END_TEST

Suite *test_suite(void)
{
	Suite *suite = suite_create("lifetimes");
	TCase *accounts = add_tcase(suite, "ledger"), *reports = add_tcase(suite, "report"),
	      *files = add_tcase(suite, "files");

	tcase_add_checked_fixture(accounts, setup, teardown);
	tcase_add_tests(accounts, pieces_end_one_after_the_other, split_after_a_release, steps_double_as_time_passes,
			memory_is_bounded);
	tcase_add_loop_test(reports, parts_add_up_to_the_rows, 0, 4);
	tcase_add_test(reports, no_parts_unless_requested);
	tcase_add_checked_fixture(files, report_file_setup, report_file_teardown);
	tcase_add_test(files, parts_of_a_report);
	return suite;
}
