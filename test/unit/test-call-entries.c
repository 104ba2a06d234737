// SPDX-License-Identifier: LGPL-2.1-or-later
/* Recordings of aarch64: the exit of a call does not have the first argument, which its entry has. */
#include <check.h>
#include <errno.h>
#include <mmtrace/pack.h>
#include <mmtrace/report.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "support/recording-builder.h"
#include "support/suite.h"
#include "support/temporary.h"

enum { PID = 100, OTHER = 101 };

#define MEBIBYTE (1ull << 20)
#define FIRST 0x10000000000ull
#define SECOND 0x20000000000ull

static char directory[TEMPORARY_PATH_SIZE], path[TEMPORARY_PATH_SIZE + 32];
static struct recording_builder *builder;
static uint64_t now_ns;

static void make_call(int32_t tid, bool enter, const struct builder_call *described)
{
	struct builder_call call = *described;

	call.enter = enter;
	call.pid = PID;
	call.tid = tid;
	call.time_ns = ++now_ns;
	builder_call(builder, &call);
}

/* With an address that only its result has. */
static void map(uint64_t address)
{
	const uint64_t caller = 0x401000;

	make_call(PID, false,
		  &(struct builder_call){
		      .call = CALL_MMAP,
		      .arguments = {0, MEBIBYTE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, UINT64_MAX, 0},
		      .result = (int64_t)address,
		      .callchain = &caller,
		      .callchain_count = 1});
}

static void unmap(int32_t tid, bool enter, uint64_t address, uint64_t length)
{
	make_call(tid, enter, &(struct builder_call){.call = CALL_MUNMAP, .arguments = {address, length}});
}

static void create(void)
{
	temporary_directory(directory);
	snprintf(path, sizeof(path), "%s/a.data", directory);
	builder = builder_create_for_aarch64(path);
	now_ns = 1000;
	builder_comm(builder, 1000, PID, PID, "program");
	builder_comm(builder, 1000, PID, OTHER, "other");
	builder_snapshot(builder, SNAPSHOT_START, 1000, PID, NULL, 0);
	map(FIRST);
	map(SECOND);
}

static void destroy(void)
{
	unlink(path);
	ck_assert_int_eq(rmdir(directory), 0);
}

/* Whether the report says that a call has no arguments. */
static bool lacks_arguments(const struct mmt_report *report)
{
	for (size_t i = 0; i < report->completeness.warning_count; i++) {
		if (report->completeness.warning_codes[i] == MMT_WARNING_MISSING_ARGUMENTS)
			return true;
	}
	return false;
}

static void check_report(uint64_t unfreed_bytes, bool without_arguments)
{
	struct mmt_report_options options;
	struct mmt_report *report;
	struct mmt_error *error;
	uint64_t bytes = 0;

	mmt_report_options_init(&options);
	options.input = path;
	error = mmt_report_create(&options, &report);
	ck_assert_msg(!error, "%s", error ? error->message : "");
	for (size_t i = 0; i < report->row_count; i++)
		bytes += report->rows[i].unfreed_bytes;
	ck_assert_uint_eq(bytes, unfreed_bytes);
	ck_assert(lacks_arguments(report) == without_arguments);
	mmt_report_destroy(report);
}

/* The recording, and the same when it is packed. */
static void check(uint64_t unfreed_bytes, bool without_arguments)
{
	const struct mmt_pack_options pack = {.input = path};
	struct mmt_pack_summary summary;
	struct mmt_error *error;

	builder_round(builder);
	builder_finish(builder, 100000);
	check_report(unfreed_bytes, without_arguments);
	error = mmt_pack(&pack, &summary);
	ck_assert_msg(!error, "%s", error ? error->message : "");
	check_report(unfreed_bytes, without_arguments);
}

START_TEST(entry_has_the_address)
{
	unmap(PID, true, FIRST, MEBIBYTE / 2);
	unmap(PID, false, FIRST, MEBIBYTE / 2);
	check(3 * MEBIBYTE / 2, false);
}
END_TEST

/* The kernel ignores the tag of a pointer. */
START_TEST(address_has_a_tag)
{
	unmap(PID, true, FIRST | 0xb7ull << 56, MEBIBYTE);
	unmap(PID, false, FIRST, MEBIBYTE);
	check(MEBIBYTE, false);
}
END_TEST

START_TEST(two_threads_are_in_calls)
{
	unmap(PID, true, FIRST, MEBIBYTE);
	unmap(OTHER, true, SECOND, MEBIBYTE / 2);
	unmap(PID, false, FIRST, MEBIBYTE);
	unmap(OTHER, false, SECOND, MEBIBYTE / 2);
	check(MEBIBYTE / 2, false);
}
END_TEST

/* Recording began when the thread was in the call. */
START_TEST(exit_without_an_entry)
{
	unmap(PID, false, FIRST, MEBIBYTE);
	check(2 * MEBIBYTE, true);
}
END_TEST

/* The length, which is in a register at the exit, shows that the events between were lost. */
START_TEST(entry_of_a_call_with_another_length)
{
	unmap(PID, true, FIRST, MEBIBYTE);
	unmap(PID, false, SECOND, MEBIBYTE / 2);
	check(2 * MEBIBYTE, true);
}
END_TEST

START_TEST(entry_before_another_call)
{
	unmap(PID, true, FIRST, MEBIBYTE);
	make_call(PID, false,
		  &(struct builder_call){.call = CALL_MPROTECT, .arguments = {SECOND, MEBIBYTE, PROT_READ}});
	unmap(PID, false, FIRST, MEBIBYTE);
	check(2 * MEBIBYTE, true);
}
END_TEST

/* A driver refuses the mapping after the kernel has unmapped what was there. */
START_TEST(refused_mapping_at_a_fixed_address)
{
	const struct builder_call call = {.call = CALL_MMAP,
					  .arguments = {FIRST, MEBIBYTE, PROT_READ, MAP_PRIVATE | MAP_FIXED, 3, 0},
					  .result = -EINVAL};

	make_call(PID, true, &call);
	make_call(PID, false, &call);
	check(MEBIBYTE, false);
}
END_TEST

/* Without MREMAP_FIXED the kernel does not read the fifth argument, which packing removes from the exit. */
START_TEST(argument_that_the_call_does_not_read)
{
	const struct builder_call call = {
	    .call = CALL_MREMAP, .arguments = {FIRST, MEBIBYTE, 2 * MEBIBYTE, 0, 0x5ec4e7}, .result = FIRST};

	make_call(PID, true, &call);
	make_call(PID, false, &call);
	check(3 * MEBIBYTE, false);
}
END_TEST

Suite *test_suite(void)
{
	Suite *suite = suite_create("call-entries");
	TCase *tests = add_tcase(suite, "call-entries");

	tcase_add_checked_fixture(tests, create, destroy);
	tcase_add_tests(tests, entry_has_the_address, address_has_a_tag, two_threads_are_in_calls,
			exit_without_an_entry, entry_of_a_call_with_another_length, entry_before_another_call,
			refused_mapping_at_a_fixed_address, argument_that_the_call_does_not_read);
	return suite;
}
