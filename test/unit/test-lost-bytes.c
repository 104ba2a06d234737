// SPDX-License-Identifier: LGPL-2.1-or-later
/* Bytes whose calls were lost keep their account, whatever becomes of them. */
#include <check.h>
#include <mmtrace/report.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "support/recording-builder.h"
#include "support/run-suite.h"

enum { PID = 100 };

#define HEAP_ADDRESS 0x500000ull
#define HEAP_BYTES (1ull << 20)
#define GROWTH_BYTES (2ull << 20)
#define MOVED_BYTES (64ull << 10)
#define ELSEWHERE 0x7f0000000000ull

static char directory[64], path[80];

static void create(void)
{
	strcpy(directory, "/tmp/mmtrace-test-XXXXXX");
	ck_assert_ptr_nonnull(mkdtemp(directory));
	snprintf(path, sizeof(path), "%s/a.data", directory);
}

static void destroy(void)
{
	unlink(path);
	ck_assert_int_eq(rmdir(directory), 0);
}

static void call(struct recording_builder *builder, struct builder_call call)
{
	call.pid = call.tid = PID;
	builder_call(builder, &call);
}

/* After a loss the break grows, nobody knows by whose calls, and a piece of the growth is moved out of the heap. */
static void record(void)
{
	struct recording_builder *builder = builder_create(path);
	const struct event_mapping heap = {.start = HEAP_ADDRESS,
					   .length = HEAP_BYTES,
					   .protection = PROT_READ | PROT_WRITE,
					   .flags = MAP_PRIVATE | MAP_ANONYMOUS,
					   .path = "[heap]"};
	const uint64_t grown = HEAP_ADDRESS + HEAP_BYTES + GROWTH_BYTES;

	builder_comm(builder, 1000, PID, PID, "lossy");
	builder_snapshot(builder, SNAPSHOT_START, 2000, PID, &heap, 1);
	builder_lost(builder, 3000, BUILDER_TRUTH_ID + CALL_BRK, 1);
	call(builder,
	     (struct builder_call){.time_ns = 4000, .call = CALL_BRK, .arguments = {grown}, .result = (int64_t)grown});
	call(builder, (struct builder_call){.time_ns = 5000,
					    .call = CALL_MREMAP,
					    .arguments = {grown - 2 * MOVED_BYTES, MOVED_BYTES, MOVED_BYTES,
							  MREMAP_MAYMOVE | MREMAP_FIXED, ELSEWHERE},
					    .result = (int64_t)ELSEWHERE});
	builder_round(builder);
	builder_lose(builder, 1);
	builder_finish(builder, 9000);
}

static struct mmt_report *report_by(enum mmt_group_by by)
{
	struct mmt_report_options options;
	struct mmt_report *report = NULL;
	struct mmt_error *error;

	mmt_report_options_init(&options);
	options.input = path;
	options.by = by;
	error = mmt_report_create(&options, &report);
	ck_assert_msg(!error, "%s", error ? mmt_error_get_message(error) : "");
	return report;
}

START_TEST(a_piece_of_the_heap_is_moved)
{
	static const enum mmt_group_by kinds[] = {MMT_BY_STACK, MMT_BY_CLASS, MMT_BY_PROCESS};

	record();
	for (size_t i = 0; i < sizeof(kinds) / sizeof(*kinds); i++) {
		struct mmt_report *report = report_by(kinds[i]);

		ck_assert_uint_eq(report->unfreed_bytes, GROWTH_BYTES);
		ck_assert_uint_eq(report->group_count, 1);
		ck_assert_uint_eq(report->groups[0].unfreed_bytes, GROWTH_BYTES);
		ck_assert_uint_eq(report->groups[0].freed_bytes, 0);
		mmt_report_destroy(report);
	}
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("lost-bytes");
	TCase *tests = tcase_create("lost-bytes");

	tcase_add_checked_fixture(tests, create, destroy);
	tcase_add_test(tests, a_piece_of_the_heap_is_moved);
	suite_add_tcase(suite, tests);
	return run_suite(suite);
}
