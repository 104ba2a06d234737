// SPDX-License-Identifier: LGPL-2.1-or-later
/* Processes that share an address space: each has the bytes that it mapped, whichever process owns the address space
 * and whichever is selected. */
#include <check.h>
#include <mmtrace/report.h>
#include <sched.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "support/report-file.h"
#include "support/suite.h"

enum { OWNER = 100, SHARER = 200, BYSTANDER = 300 };

#define MEBIBYTE (1ull << 20)
#define OWN_ADDRESS 0x10000000000ull
#define SHARED_ADDRESS 0x20000000000ull
#define OTHER_ADDRESS 0x30000000000ull

/* The owner maps 8 MiB, its sharer 16 MiB, of which it unmaps 1; another process 4 MiB. `first` ends before the
 * second; `survivor` lives on, 0: neither does. */
static void record(int32_t first, int32_t second, int32_t survivor)
{
	struct recording_builder *builder = builder_create(report_file_path());

	builder_comm(builder, 1000, OWNER, OWNER, "owner");
	builder_comm(builder, 1000, BYSTANDER, BYSTANDER, "bystander");
	builder_snapshot(builder, SNAPSHOT_START, 1000, OWNER, NULL, 0);
	builder_snapshot(builder, SNAPSHOT_START, 1000, BYSTANDER, NULL, 0);
	builder_mmap_exit(builder, 2000, BYSTANDER, BYSTANDER, OTHER_ADDRESS, 4 * MEBIBYTE, 0x403000);
	builder_mmap_exit(builder, 2000, OWNER, OWNER, OWN_ADDRESS, 8 * MEBIBYTE, 0x401000);
	builder_fork(builder, 3000, SHARER, SHARER, OWNER, OWNER);
	builder_new_task(builder, 3000, OWNER, OWNER, SHARER, CLONE_VM);
	builder_mmap_exit(builder, 4000, SHARER, SHARER, SHARED_ADDRESS, 16 * MEBIBYTE, 0x402000);
	builder_munmap_exit(builder, 5000, SHARER, SHARER, SHARED_ADDRESS, MEBIBYTE);
	builder_exit(builder, 6000, first, first);
	if (second != survivor)
		builder_exit(builder, 7000, second, second);
	if (survivor != BYSTANDER)
		builder_exit(builder, 8000, BYSTANDER, BYSTANDER);
	builder_round(builder);
	if (survivor)
		report_file_survive(builder, survivor);
	builder_finish(builder, 9000);
}

static struct mmt_report *report_of(const int32_t *pids, size_t pid_count, enum mmt_row_key by)
{
	struct mmt_report_options options;

	mmt_report_options_init(&options);
	options.pids = pids;
	options.pid_count = pid_count;
	options.by = by;
	return report_file_report(&options);
}

static uint64_t bytes_in_table(const struct mmt_report *report, int32_t pid)
{
	for (size_t i = 0; i < report->process_count; i++) {
		if (report->processes[i].pid == pid)
			return report->processes[i].unfreed_bytes;
	}
	ck_abort_msg("%d is not in the table", pid);
}

static uint64_t bytes_in_groups(const struct mmt_report *report, int32_t pid)
{
	uint64_t bytes = 0;

	for (size_t i = 0; i < report->row_count; i++) {
		if (report->rows[i].pid_count && report->rows[i].pids[0] == pid)
			bytes += report->rows[i].unfreed_bytes;
	}
	return bytes;
}

static void check_alone(int32_t pid, uint64_t mebibytes)
{
	struct mmt_report *report = report_of(&pid, 1, MMT_BY_STACK);

	ck_assert_uint_eq(report->process_count, 1);
	ck_assert_uint_eq(report->unfreed_bytes, mebibytes * MEBIBYTE);
	ck_assert_uint_eq(report->committed_bytes, mebibytes * MEBIBYTE);
	ck_assert_uint_eq(bytes_in_table(report, pid), mebibytes * MEBIBYTE);
	mmt_report_destroy(report);
}

/* Selected one by one or all together, with rows of stacks or of processes. */
static void check_everywhere(void)
{
	struct mmt_report *report = report_of(NULL, 0, MMT_BY_PROCESS);

	ck_assert_uint_eq(report->unfreed_bytes, 27 * MEBIBYTE);
	ck_assert_uint_eq(bytes_in_table(report, OWNER), 8 * MEBIBYTE);
	ck_assert_uint_eq(bytes_in_table(report, SHARER), 15 * MEBIBYTE);
	ck_assert_uint_eq(bytes_in_groups(report, OWNER), 8 * MEBIBYTE);
	ck_assert_uint_eq(bytes_in_groups(report, SHARER), 15 * MEBIBYTE);
	mmt_report_destroy(report);
	check_alone(OWNER, 8);
	check_alone(SHARER, 15);
	check_alone(BYSTANDER, 4);
}

START_TEST(the_sharer_ends_first)
{
	record(SHARER, OWNER, 0);
	check_everywhere();
}
END_TEST

START_TEST(the_owner_ends_first)
{
	record(OWNER, SHARER, 0);
	check_everywhere();
}
END_TEST

/* What an ended process mapped in an address space that still exists is unfreed. */
START_TEST(the_survivor_keeps_its_memory)
{
	static const int32_t lives[][2] = {{SHARER, OWNER}, {OWNER, SHARER}};

	for (size_t i = 0; i < 2; i++) {
		struct mmt_report *report;

		record(lives[i][0], lives[i][1], lives[i][1]);
		report = report_of(NULL, 0, MMT_BY_STACK);
		ck_assert_uint_eq(report->unfreed_bytes, 23 * MEBIBYTE);
		ck_assert_uint_eq(report->ended_bytes, 4 * MEBIBYTE);
		ck_assert_uint_eq(bytes_in_table(report, OWNER), 8 * MEBIBYTE);
		ck_assert_uint_eq(bytes_in_table(report, SHARER), 15 * MEBIBYTE);
		mmt_report_destroy(report);
		check_alone(OWNER, 8);
		check_alone(SHARER, 15);
		unlink(report_file_path());
	}
}
END_TEST

/* The address space ends with the last of them, and with it everything that each had mapped. */
START_TEST(both_end_while_another_lives)
{
	struct mmt_report *report;

	record(OWNER, SHARER, BYSTANDER);
	report = report_of(NULL, 0, MMT_BY_STACK);
	ck_assert_uint_eq(report->unfreed_bytes, 4 * MEBIBYTE);
	ck_assert_uint_eq(report->ended_bytes, 23 * MEBIBYTE);
	ck_assert_uint_eq(bytes_in_table(report, OWNER), 8 * MEBIBYTE);
	ck_assert_uint_eq(bytes_in_table(report, SHARER), 15 * MEBIBYTE);
	mmt_report_destroy(report);
	check_alone(OWNER, 8);
	check_alone(SHARER, 15);
}
END_TEST

/* A child of vfork maps 2 MiB and executes a program that maps 16; the 2 MiB belong to its parent. */
START_TEST(a_child_of_vfork_executes_a_program)
{
	struct recording_builder *builder = builder_create(report_file_path());
	struct mmt_report *report;

	builder_comm(builder, 1000, OWNER, OWNER, "owner");
	builder_snapshot(builder, SNAPSHOT_START, 1000, OWNER, NULL, 0);
	builder_mmap_exit(builder, 2000, OWNER, OWNER, OWN_ADDRESS, 8 * MEBIBYTE, 0x401000);
	builder_fork(builder, 3000, SHARER, SHARER, OWNER, OWNER);
	builder_new_task(builder, 3000, OWNER, OWNER, SHARER, CLONE_VM | CLONE_VFORK);
	builder_mmap_exit(builder, 4000, SHARER, SHARER, OTHER_ADDRESS, 2 * MEBIBYTE, 0x402000);
	builder_exec(builder, 5000, SHARER, SHARER, "program");
	builder_mmap_exit(builder, 6000, SHARER, SHARER, SHARED_ADDRESS, 16 * MEBIBYTE, 0x403000);
	builder_round(builder);
	builder_finish(builder, 9000);
	report = report_of(NULL, 0, MMT_BY_PROCESS);
	ck_assert_uint_eq(report->row_count, 2);
	ck_assert_uint_eq(report->rows[0].unfreed_bytes, 16 * MEBIBYTE);
	ck_assert_ptr_nonnull(strstr(report->rows[0].name, "(200)"));
	ck_assert_uint_eq(report->rows[1].unfreed_bytes, 10 * MEBIBYTE);
	ck_assert_ptr_nonnull(strstr(report->rows[1].name, "(100)"));
	ck_assert_uint_eq(bytes_in_table(report, OWNER), 10 * MEBIBYTE);
	ck_assert_uint_eq(bytes_in_table(report, SHARER), 16 * MEBIBYTE);
	mmt_report_destroy(report);
	check_alone(OWNER, 10);
	check_alone(SHARER, 16);
}
END_TEST

static void reserve_and_commit(struct recording_builder *builder)
{
	const uint64_t callers[] = {0x401000, 0x402000};

	builder_call(builder, &(struct builder_call){.call = CALL_MMAP,
						     .time_ns = 2000,
						     .pid = OWNER,
						     .tid = OWNER,
						     .arguments = {0, 8 * MEBIBYTE, 0, MAP_PRIVATE | MAP_ANONYMOUS},
						     .result = (int64_t)OWN_ADDRESS,
						     .callchain = &callers[0],
						     .callchain_count = 1});
	builder_call(builder, &(struct builder_call){.call = CALL_MPROTECT,
						     .time_ns = 4000,
						     .pid = SHARER,
						     .tid = SHARER,
						     .arguments = {OWN_ADDRESS, 3 * MEBIBYTE, PROT_READ | PROT_WRITE},
						     .callchain = &callers[1],
						     .callchain_count = 1});
}

/* Reserved by the owner, made accessible by the process that shares the address space: if selected alone, each has
 * its part. */
START_TEST(one_reserves_and_another_commits)
{
	static const struct {
		int32_t pid;
		uint64_t unfreed, committed, committed_before;
	} cases[] = {{OWNER, 8, 3, 0}, {SHARER, 0, 0, 3}};
	struct recording_builder *builder = builder_create(report_file_path());
	struct mmt_report *report;

	builder_comm(builder, 1000, OWNER, OWNER, "owner");
	builder_snapshot(builder, SNAPSHOT_START, 1000, OWNER, NULL, 0);
	builder_fork(builder, 1500, SHARER, SHARER, OWNER, OWNER);
	builder_new_task(builder, 1500, OWNER, OWNER, SHARER, CLONE_VM);
	reserve_and_commit(builder);
	builder_round(builder);
	builder_finish(builder, 9000);
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		report = report_of(&cases[i].pid, 1, MMT_BY_STACK);
		ck_assert_uint_eq(report->unfreed_bytes, cases[i].unfreed * MEBIBYTE);
		ck_assert_uint_eq(report->committed_bytes, cases[i].committed * MEBIBYTE);
		ck_assert_uint_eq(report->committed_before_bytes, cases[i].committed_before * MEBIBYTE);
		mmt_report_destroy(report);
	}
	report = report_of(NULL, 0, MMT_BY_STACK);
	ck_assert_uint_eq(report->unfreed_bytes, 8 * MEBIBYTE);
	ck_assert_uint_eq(report->committed_bytes, 3 * MEBIBYTE);
	ck_assert_uint_eq(report->committed_before_bytes, 0);
	mmt_report_destroy(report);
}
END_TEST

Suite *test_suite(void)
{
	Suite *suite = suite_create("shared-space");
	TCase *tcase = add_tcase(suite, "shared-space");

	tcase_add_checked_fixture(tcase, report_file_setup, report_file_teardown);
	tcase_add_tests(tcase, the_sharer_ends_first, the_owner_ends_first, the_survivor_keeps_its_memory,
			both_end_while_another_lives, a_child_of_vfork_executes_a_program,
			one_reserves_and_another_commits);
	return suite;
}
