// SPDX-License-Identifier: LGPL-2.1-or-later
/* Bytes mapped by lost calls keep their account, whatever happens to them. */
#include <check.h>
#include <mmtrace/report.h>
#include <string.h>
#include <sys/mman.h>

#include "support/report-file.h"
#include "support/suite.h"

enum { PID = 100 };

#define HEAP_ADDRESS 0x500000ull
#define HEAP_BYTES (1ull << 20)
#define GROWTH_BYTES (2ull << 20)
#define MOVED_BYTES (64ull << 10)
#define ELSEWHERE 0x7f0000000000ull

#define STOP_NS 9000

static void call(struct recording_builder *builder, struct builder_call call)
{
	call.pid = call.tid = PID;
	builder_call(builder, &call);
}

/* After a loss the break grows by unknown calls, and part of the growth is moved out of the heap. */
static void record(void)
{
	struct recording_builder *builder = builder_create(report_file_path());
	const struct event_mapping heap = {.start = HEAP_ADDRESS,
					   .length = HEAP_BYTES,
					   .protection = PROT_READ | PROT_WRITE,
					   .flags = MAP_PRIVATE | MAP_ANONYMOUS,
					   .path = "[heap]"};
	const uint64_t grown = HEAP_ADDRESS + HEAP_BYTES + GROWTH_BYTES;

	builder_comm(builder, 1000, PID, PID, "lossy");
	builder_snapshot(builder, SNAPSHOT_START, 2000, PID, &heap, 1);
	builder_lost(builder, 3000, BUILDER_SYSCALL_ID + CALL_BRK, 1);
	call(builder,
	     (struct builder_call){.time_ns = 4000, .call = CALL_BRK, .arguments = {grown}, .result = (int64_t)grown});
	call(builder, (struct builder_call){.time_ns = 5000,
					    .call = CALL_MREMAP,
					    .arguments = {grown - 2 * MOVED_BYTES, MOVED_BYTES, MOVED_BYTES,
							  MREMAP_MAYMOVE | MREMAP_FIXED, ELSEWHERE},
					    .result = (int64_t)ELSEWHERE});
	builder_comm(builder, STOP_NS, PID, PID, "lossy");
	builder_round(builder);
	builder_lose(builder, 1);
	builder_finish(builder, STOP_NS);
}

static struct mmt_report *report_by(enum mmt_row_key by)
{
	struct mmt_report_options options;

	mmt_report_options_init(&options);
	options.by = by;
	return report_file_report(&options);
}

START_TEST(a_piece_of_the_heap_is_moved)
{
	static const enum mmt_row_key kinds[] = {MMT_BY_STACK, MMT_BY_CLASS, MMT_BY_PROCESS};

	record();
	for (size_t i = 0; i < sizeof(kinds) / sizeof(*kinds); i++) {
		struct mmt_report *report = report_by(kinds[i]);

		ck_assert_uint_eq(report->unfreed_bytes, GROWTH_BYTES);
		ck_assert_uint_eq(report->row_count, 1);
		ck_assert_uint_eq(report->rows[0].unfreed_bytes, GROWTH_BYTES);
		ck_assert_uint_eq(report->rows[0].freed_bytes, 0);
		mmt_report_destroy(report);
	}
}
END_TEST

static uint64_t unfreed_of_class(const struct mmt_report *report, const char *name)
{
	for (size_t i = 0; i < report->row_count; i++) {
		if (!strcmp(report->rows[i].name, name))
			return report->rows[i].unfreed_bytes;
	}
	return 0;
}

static uint64_t unfreed_in_classes(uint32_t classes)
{
	struct mmt_report_options options;
	struct mmt_report *report;
	uint64_t bytes;

	mmt_report_options_init(&options);
	options.classes = classes;
	report = report_file_report(&options);
	bytes = report->unfreed_bytes;
	mmt_report_destroy(report);
	return bytes;
}

/* The heap's bytes belong to the heap, although a part has been moved out of it. */
START_TEST(lost_bytes_have_a_class)
{
	struct mmt_report *report;

	record();
	report = report_by(MMT_BY_CLASS);
	ck_assert_uint_eq(unfreed_of_class(report, "heap"), GROWTH_BYTES);
	mmt_report_destroy(report);
	ck_assert_uint_eq(unfreed_in_classes(1u << MMT_CLASS_HEAP), GROWTH_BYTES);
	ck_assert_uint_eq(unfreed_in_classes(1u << MMT_CLASS_ANON), 0);
}
END_TEST

/* They count from the time they were found: not if that is before the window, or if they are too recent. */
START_TEST(lost_bytes_have_a_time)
{
	static const struct {
		uint64_t from_ns, min_age_ns;
		uint64_t unfreed_bytes, too_recent_bytes;
	} windows[] = {
	    {3500, 0, GROWTH_BYTES, 0},
	    {4500, 0, 0, 0},
	    {1000, STOP_NS - 4500, GROWTH_BYTES, 0},
	    {1000, STOP_NS - 3500, 0, GROWTH_BYTES},
	};

	record();
	for (size_t i = 0; i < sizeof(windows) / sizeof(*windows); i++) {
		struct mmt_report_options options;
		struct mmt_report *report;

		mmt_report_options_init(&options);
		options.from = (struct mmt_timestamp){MMT_TIMESTAMP_CLOCK, windows[i].from_ns};
		options.min_age_ns = windows[i].min_age_ns;
		report = report_file_report(&options);
		ck_assert_uint_eq(report->unfreed_bytes, windows[i].unfreed_bytes);
		ck_assert_uint_eq(report->too_recent_bytes, windows[i].too_recent_bytes);
		ck_assert_uint_eq(report->unfreed_bytes + report->too_recent_bytes + report->before_bytes,
				  HEAP_BYTES + GROWTH_BYTES);
		ck_assert_uint_eq(report->completeness.reconciled_bytes, GROWTH_BYTES);
		mmt_report_destroy(report);
	}
}
END_TEST

Suite *test_suite(void)
{
	Suite *suite = suite_create("lost-bytes");
	TCase *tests = add_tcase(suite, "lost-bytes");

	tcase_add_checked_fixture(tests, report_file_setup, report_file_teardown);
	tcase_add_tests(tests, a_piece_of_the_heap_is_moved, lost_bytes_have_a_class, lost_bytes_have_a_time);
	return suite;
}
