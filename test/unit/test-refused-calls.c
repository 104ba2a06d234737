// SPDX-License-Identifier: LGPL-2.1-or-later
/* Which limit made a call fail, and how near it was, by the facts of a recording. */
#include <check.h>
#include <errno.h>
#include <mmtrace/report.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "capture/memory/residency.h"
#include "support/report-file.h"
#include "support/suite.h"

enum { PARENT = 100, CHILD = 200, MILLISECOND = 1000000 };

#define MEBIBYTE (1ull << 20)
#define START_NS (1000ull * MILLISECOND)
#define ANONYMOUS (MAP_PRIVATE | MAP_ANONYMOUS)
#define WRITABLE (PROT_READ | PROT_WRITE)
#define CODE_BYTES MEBIBYTE
#define DATA_ADDRESS 0x20000000ull
#define DATA_BYTES (60 * MEBIBYTE)
#define HEAP_ADDRESS (DATA_ADDRESS + DATA_BYTES)
#define HEAP_BYTES (2 * MEBIBYTE)
#define MAPPED_BYTES (CODE_BYTES + DATA_BYTES + HEAP_BYTES)

/* The process has 1 MiB of code, 60 MiB of data and a heap of 2 MiB. */
static struct recording_builder *begin(void)
{
	const struct event_mapping lines[] = {
	    {.start = 0x400000, .length = CODE_BYTES, .protection = PROT_READ, .flags = ANONYMOUS, .path = ""},
	    {.start = DATA_ADDRESS, .length = DATA_BYTES, .protection = WRITABLE, .flags = ANONYMOUS, .path = ""},
	    {.start = HEAP_ADDRESS, .length = HEAP_BYTES, .protection = WRITABLE, .flags = ANONYMOUS, .path = "[heap]"},
	};
	struct recording_builder *builder = builder_create(report_file_path());

	builder_comm(builder, START_NS, PARENT, PARENT, "parent");
	builder_snapshot(builder, SNAPSHOT_START, START_NS, PARENT, lines, 3);
	return builder;
}

static void note(struct recording_builder *builder, int32_t pid, enum note_kind kind, uint64_t bytes, uint64_t used)
{
	builder_note(builder, START_NS + MILLISECOND, pid, kind, bytes, used);
}

static void call(struct recording_builder *builder, enum call kind, int64_t result, uint64_t a0, uint64_t a1,
		 uint64_t a2, uint64_t a3)
{
	builder_call(builder, &(struct builder_call){.time_ns = START_NS + 2 * MILLISECOND,
						     .pid = PARENT,
						     .tid = PARENT,
						     .call = kind,
						     .result = result,
						     .arguments = {a0, a1, a2, a3}});
}

static void ask(struct recording_builder *builder, uint64_t bytes, uint64_t flags, int error)
{
	call(builder, CALL_MMAP, -error, 0, bytes, WRITABLE, ANONYMOUS | flags);
}

/* Expects one kind of failed calls, and this limit. */
static void expect(struct recording_builder *builder, enum mmt_limit_kind kind, uint64_t value, uint64_t used)
{
	struct mmt_report *report;
	const struct mmt_failure *failure;

	builder_round(builder);
	builder_finish(builder, START_NS + 10 * MILLISECOND);
	report = report_file_report(NULL);
	ck_assert_uint_eq(report->failure_count, 1);
	failure = &report->failures[0];
	ck_assert_msg(failure->limit.kind == kind, "%s instead of %s", mmt_limit_name(failure->limit.kind),
		      mmt_limit_name(kind));
	ck_assert_uint_eq(failure->limit.value, value);
	ck_assert_uint_eq(failure->limit.used, used);
	ck_assert_int_eq(failure->refused, kind || failure->call == MMT_COUNT_MMAP);
	mmt_report_destroy(report);
}

START_TEST(address_space)
{
	struct recording_builder *builder = begin();

	note(builder, PARENT, NOTE_LIMIT_ADDRESS_SPACE, 64 * MEBIBYTE, 0);
	ask(builder, MEBIBYTE + 1, 0, ENOMEM);
	expect(builder, MMT_LIMIT_ADDRESS_SPACE, 64 * MEBIBYTE, MAPPED_BYTES);
}
END_TEST

/* The size is that of the moment of the call, also after others that failed. */
START_TEST(size_of_a_later_call)
{
	struct recording_builder *builder = begin();
	const struct mmt_failure *failure;
	struct mmt_report *report;

	note(builder, PARENT, NOTE_LIMIT_ADDRESS_SPACE, 80 * MEBIBYTE, 0);
	for (int i = 0; i < 4; i++)
		ask(builder, MEBIBYTE, 0, ENOMEM);
	call(builder, CALL_MMAP, 0x40000000, 0, 16 * MEBIBYTE, WRITABLE, ANONYMOUS);
	call(builder, CALL_BRK, HEAP_ADDRESS + HEAP_BYTES, HEAP_ADDRESS + HEAP_BYTES + 4 * MEBIBYTE, 0, 0, 0);
	builder_round(builder);
	builder_finish(builder, START_NS + 10 * MILLISECOND);
	report = report_file_report(NULL);
	ck_assert_uint_eq(report->failure_count, 2);
	failure = &report->failures[report->failures[0].call == MMT_COUNT_BRK ? 0 : 1];
	ck_assert_int_eq(failure->call, MMT_COUNT_BRK);
	ck_assert_int_eq(failure->limit.kind, MMT_LIMIT_ADDRESS_SPACE);
	ck_assert_uint_eq(failure->limit.used, MAPPED_BYTES + 16 * MEBIBYTE);
	mmt_report_destroy(report);
}
END_TEST

/* A limit that is not met is not named. */
START_TEST(limits_with_room)
{
	struct recording_builder *builder = begin();

	note(builder, PARENT, NOTE_LIMIT_ADDRESS_SPACE, MAPPED_BYTES + MEBIBYTE, 0);
	note(builder, PARENT, NOTE_LIMIT_DATA, DATA_BYTES + HEAP_BYTES + MEBIBYTE, 0);
	note(builder, 0, NOTE_LIMIT_MEMORY, MEBIBYTE, 0);
	ask(builder, MEBIBYTE, 0, ENOMEM);
	expect(builder, MMT_LIMIT_NONE, 0, 0);
}
END_TEST

/* mmap, brk, a growing mremap, and mprotect of memory that becomes data. */
START_TEST(data)
{
	struct recording_builder *builder = begin();
	uint64_t limit = DATA_BYTES + HEAP_BYTES + MEBIBYTE / 2;

	note(builder, PARENT, NOTE_LIMIT_DATA, limit, 0);
	if (_i == 0)
		ask(builder, MEBIBYTE, 0, ENOMEM);
	else if (_i == 1)
		call(builder, CALL_BRK, HEAP_ADDRESS + HEAP_BYTES, HEAP_ADDRESS + HEAP_BYTES + MEBIBYTE, 0, 0, 0);
	else if (_i == 2)
		call(builder, CALL_MREMAP, -ENOMEM, DATA_ADDRESS, DATA_BYTES, DATA_BYTES + MEBIBYTE, MREMAP_MAYMOVE);
	else
		call(builder, CALL_MPROTECT, -ENOMEM, 0x400000, CODE_BYTES, WRITABLE, 0);
	expect(builder, MMT_LIMIT_DATA, limit, DATA_BYTES + HEAP_BYTES);
}
END_TEST

/* More than the address space has room for, whatever the limits are. */
START_TEST(beyond_address_space)
{
	struct recording_builder *builder = begin();

	note(builder, PARENT, NOTE_LIMIT_ADDRESS_SPACE, MAPPED_BYTES, 0);
	note(builder, 0, NOTE_LIMIT_MEMORY, MEBIBYTE, 0);
	ask(builder, 1ull << 47, 0, ENOMEM);
	expect(builder, MMT_LIMIT_NONE, 0, 0);
}
END_TEST

/* Read-only memory is no data, and mprotect fails at a hole for another reason. */
START_TEST(not_data)
{
	struct recording_builder *builder = begin();

	note(builder, PARENT, NOTE_LIMIT_DATA, DATA_BYTES + HEAP_BYTES, 0);
	if (_i == 0)
		call(builder, CALL_MMAP, -ENOMEM, 0, MEBIBYTE, PROT_READ, ANONYMOUS);
	else
		call(builder, CALL_MPROTECT, -ENOMEM, DATA_ADDRESS, DATA_BYTES, WRITABLE, 0);
	expect(builder, MMT_LIMIT_NONE, 0, 0);
}
END_TEST

START_TEST(locked_memory)
{
	struct recording_builder *builder = begin();

	note(builder, PARENT, NOTE_LIMIT_LOCKED, 8 * MEBIBYTE, 7 * MEBIBYTE);
	ask(builder, 2 * MEBIBYTE, MAP_LOCKED, EAGAIN);
	expect(builder, MMT_LIMIT_LOCKED, 8 * MEBIBYTE, 7 * MEBIBYTE);
}
END_TEST

/* The kernel refuses what it has promised already, or, by default, only what can never be. */
START_TEST(overcommit)
{
	struct recording_builder *builder = begin();

	if (_i == 0)
		note(builder, 0, NOTE_LIMIT_COMMIT, 100 * MEBIBYTE, 99 * MEBIBYTE);
	else
		note(builder, 0, NOTE_LIMIT_MEMORY, 4 * MEBIBYTE, 0);
	/* How much was committed at most counts. */
	if (_i == 0)
		note(builder, 0, NOTE_LIMIT_COMMIT, 100 * MEBIBYTE, 50 * MEBIBYTE);
	ask(builder, 5 * MEBIBYTE, _i == 2 ? MAP_NORESERVE : 0, ENOMEM);
	if (_i == 0)
		expect(builder, MMT_LIMIT_COMMIT, 100 * MEBIBYTE, 99 * MEBIBYTE);
	else if (_i == 1)
		expect(builder, MMT_LIMIT_MEMORY, 4 * MEBIBYTE, 0);
	else
		expect(builder, MMT_LIMIT_NONE, 0, 0);
}
END_TEST

/* The process has two mappings less than the limit, or three. */
START_TEST(mappings)
{
	const uint64_t count = BUILDER_MAPPING_LIMIT - 2 - (unsigned)_i;
	struct event_mapping *lines = calloc(count, sizeof(*lines));
	struct recording_builder *builder = builder_create(report_file_path());

	ck_assert_ptr_nonnull(lines);
	for (size_t i = 0; i < count; i++)
		lines[i] = (struct event_mapping){.start = 0x10000000 + i * 8192,
						  .length = 4096,
						  .protection = PROT_READ,
						  .flags = ANONYMOUS,
						  .path = ""};
	builder_snapshot(builder, SNAPSHOT_START, START_NS, PARENT, lines, count);
	free(lines);
	call(builder, CALL_MPROTECT, -ENOMEM, 0x10000000, 4096, WRITABLE, 0);
	if (_i)
		expect(builder, MMT_LIMIT_NONE, 0, 0);
	else
		expect(builder, MMT_LIMIT_MAPPINGS, BUILDER_MAPPING_LIMIT, BUILDER_MAPPING_LIMIT - 2);
}
END_TEST

/* A range with a hole, a wrong argument, and malloc, which maps memory when brk fails. */
START_TEST(other_failures)
{
	static const struct {
		enum call call;
		int64_t result;
		uint64_t arguments[4];
	} cases[] = {
	    {CALL_MMAP, -EEXIST, {0x400000, 4096, WRITABLE, ANONYMOUS}},
	    {CALL_MPROTECT, -ENOMEM, {0x10000000, 4096, WRITABLE}},
	    {CALL_BRK, HEAP_ADDRESS + HEAP_BYTES, {HEAP_ADDRESS + HEAP_BYTES + MEBIBYTE}},
	};
	struct recording_builder *builder = begin();
	struct mmt_report *report;

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		call(builder, cases[i].call, cases[i].result, cases[i].arguments[0], cases[i].arguments[1],
		     cases[i].arguments[2], cases[i].arguments[3]);
	builder_round(builder);
	builder_finish(builder, START_NS + 10 * MILLISECOND);
	report = report_file_report(NULL);
	ck_assert_uint_eq(report->failure_count, 3);
	for (size_t i = 0; i < report->failure_count; i++)
		ck_assert(!report->failures[i].refused);
	mmt_report_destroy(report);
}
END_TEST

/* Huge pages are of the pool, not of what is committed. */
START_TEST(huge_pages)
{
	struct recording_builder *builder = begin();

	note(builder, 0, NOTE_LIMIT_COMMIT, 100 * MEBIBYTE, 99 * MEBIBYTE);
	note(builder, 0, NOTE_LIMIT_HUGE_PAGES, 16 * MEBIBYTE, 14 * MEBIBYTE);
	ask(builder, 4 * MEBIBYTE, MAP_HUGETLB, ENOMEM);
	expect(builder, MMT_LIMIT_HUGE_PAGES, 16 * MEBIBYTE, 14 * MEBIBYTE);
}
END_TEST

/* A short-lived child is not read: it has the limits of its parent. */
START_TEST(child)
{
	struct recording_builder *builder = begin();

	note(builder, PARENT, NOTE_LIMIT_ADDRESS_SPACE, 64 * MEBIBYTE, 0);
	builder_fork(builder, START_NS + 2 * MILLISECOND, CHILD, CHILD, PARENT, PARENT);
	builder_call(builder, &(struct builder_call){.time_ns = START_NS + 3 * MILLISECOND,
						     .pid = CHILD,
						     .tid = CHILD,
						     .call = CALL_MMAP,
						     .result = -ENOMEM,
						     .arguments = {0, 2 * MEBIBYTE, WRITABLE, ANONYMOUS}});
	expect(builder, MMT_LIMIT_ADDRESS_SPACE, 64 * MEBIBYTE, MAPPED_BYTES);
}
END_TEST

START_TEST(parses_the_kernels_files)
{
	struct memory_limit limits[NOTE_LIMITS] = {0};

	limits_parse_process("Limit                     Soft Limit           Hard Limit           Units     \n"
			     "Max data size             unlimited            unlimited            bytes     \n"
			     "Max locked memory         8388608              9000000              bytes     \n"
			     "Max address space         536870912            unlimited            bytes     \n",
			     "Name:\tx\nVmLck:\t      64 kB\n", limits);
	ck_assert_uint_eq(limits[NOTE_LIMIT_ADDRESS_SPACE - NOTE_LIMIT_FIRST].bytes, 536870912);
	ck_assert_uint_eq(limits[NOTE_LIMIT_DATA - NOTE_LIMIT_FIRST].bytes, UINT64_MAX);
	ck_assert_uint_eq(limits[NOTE_LIMIT_LOCKED - NOTE_LIMIT_FIRST].bytes, 8388608);
	ck_assert_uint_eq(limits[NOTE_LIMIT_LOCKED - NOTE_LIMIT_FIRST].used, 65536);
	limits_parse_machine("MemTotal:  1000 kB\nSwapTotal:  24 kB\nCommitLimit:  600 kB\nCommitted_AS:  500 kB\n"
			     "HugePages_Total:       8\nHugePages_Free:        5\nHugePages_Rsvd:        2\n"
			     "Hugepagesize:       2048 kB\n",
			     _i, limits);
	ck_assert_uint_eq(limits[NOTE_LIMIT_HUGE_PAGES - NOTE_LIMIT_FIRST].bytes, 16 * MEBIBYTE);
	ck_assert_uint_eq(limits[NOTE_LIMIT_HUGE_PAGES - NOTE_LIMIT_FIRST].used, 10 * MEBIBYTE);
	ck_assert_uint_eq(limits[NOTE_LIMIT_MEMORY - NOTE_LIMIT_FIRST].bytes, _i == 0 ? 1024 * 1024 : 0);
	ck_assert_uint_eq(limits[NOTE_LIMIT_COMMIT - NOTE_LIMIT_FIRST].bytes, _i == 2 ? 600 * 1024 : 0);
	ck_assert_uint_eq(limits[NOTE_LIMIT_COMMIT - NOTE_LIMIT_FIRST].used, _i == 2 ? 500 * 1024 : 0);
}
END_TEST

Suite *test_suite(void)
{
	Suite *suite = suite_create("refused-calls");
	TCase *tests = add_tcase(suite, "limits");

	tcase_add_checked_fixture(tests, report_file_setup, report_file_teardown);
	tcase_add_tests(tests, address_space, size_of_a_later_call, limits_with_room, beyond_address_space, locked_memory,
			huge_pages, child, other_failures);
	tcase_add_loop_test(tests, mappings, 0, 2);
	tcase_add_loop_test(tests, data, 0, 4);
	tcase_add_loop_test(tests, not_data, 0, 2);
	tcase_add_loop_test(tests, overcommit, 0, 3);
	tcase_add_loop_test(tests, parses_the_kernels_files, 0, 3);
	return suite;
}
