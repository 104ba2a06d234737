// SPDX-License-Identifier: LGPL-2.1-or-later
/* Children end one after the other while their parent lives: the memory that they held, when, and what is stored of
 * them. */
#include <check.h>
#include <malloc.h>
#include <mmtrace/pack.h>
#include <mmtrace/report.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "base/cleanup.h"
#include "support/report-file.h"
#include "support/suite.h"
#include "trace/sections/sections.h"

enum { PARENT = 100, DAEMON = 101, FIRST_CHILD = 1000, MILLISECOND = 1000000 };

#define MEBIBYTE (1ull << 20)
#define START_NS (1000ull * MILLISECOND)
#define PARENT_ADDRESS 0x10000000000ull
#define CHILD_ADDRESS 0x20000000000ull

static void snapshot(struct recording_builder *builder, enum snapshot_kind kind, uint64_t time_ns, size_t before_count,
		     size_t own_count)
{
	struct event_mapping *lines = calloc(before_count + own_count + 1, sizeof(*lines));

	ck_assert_ptr_nonnull(lines);
	/* Every second page, so that the intervals are not merged. */
	for (size_t i = 0; i < before_count; i++)
		lines[i] = (struct event_mapping){.start = 0x1000000 + i * 8192,
						  .length = 4096,
						  .protection = PROT_READ | PROT_WRITE,
						  .flags = MAP_PRIVATE | MAP_ANONYMOUS,
						  .path = ""};
	for (size_t i = 0; i < own_count; i++)
		lines[before_count + i] = (struct event_mapping){.start = PARENT_ADDRESS,
								 .length = MEBIBYTE,
								 .protection = PROT_READ | PROT_WRITE,
								 .flags = MAP_PRIVATE | MAP_ANONYMOUS,
								 .path = ""};
	builder_snapshot(builder, kind, time_ns, PARENT, lines, before_count + own_count);
	free(lines);
}

/* A parent with `mappings` mappings maps 1 MiB, then each of its children 10 MiB and unmaps one mapping. */
static void record(unsigned children, size_t mappings, bool parent_survives)
{
	struct recording_builder *builder = builder_create(report_file_path());
	uint64_t time_ns = START_NS + MILLISECOND;

	builder_comm(builder, START_NS, PARENT, PARENT, "parent");
	snapshot(builder, SNAPSHOT_START, START_NS, mappings, 0);
	builder_mmap_exit(builder, time_ns, PARENT, PARENT, PARENT_ADDRESS, MEBIBYTE, 0x401000);
	/* Its next call ends the wait for a stack dump. */
	builder_munmap_exit(builder, time_ns + 1000, PARENT, PARENT, CHILD_ADDRESS, MEBIBYTE);
	for (unsigned i = 0; i < children; i++) {
		int32_t pid = (int32_t)(FIRST_CHILD + i);

		time_ns += MILLISECOND;
		builder_fork(builder, time_ns, pid, pid, PARENT, PARENT);
		builder_mmap_exit(builder, time_ns + 1000, pid, pid, CHILD_ADDRESS, 10 * MEBIBYTE, 0x402000);
		builder_munmap_exit(builder, time_ns + 2000, pid, pid, CHILD_ADDRESS, MEBIBYTE);
		builder_exit(builder, time_ns + 3000, pid, pid);
		builder_round(builder);
	}
	time_ns += MILLISECOND;
	if (parent_survives) {
		snapshot(builder, SNAPSHOT_STOP, time_ns, mappings, 1);
		report_file_survive(builder, PARENT);
	} else {
		builder_exit(builder, time_ns, PARENT, PARENT);
	}
	builder_round(builder);
	builder_finish(builder, time_ns + MILLISECOND);
}

static struct mmt_report *report_all(void)
{

	return report_file_report(NULL);
}

START_TEST(children_end_one_after_the_other)
{
	struct mmt_report *report;

	record(100, 3, true);
	report = report_all();
	ck_assert_uint_eq(report->process_count, 101);
	ck_assert_uint_eq(report->unfreed_bytes, MEBIBYTE);
	ck_assert_uint_eq(report->allocated_bytes, 1001 * MEBIBYTE);
	ck_assert_uint_eq(report->freed_bytes, 1000 * MEBIBYTE);
	ck_assert_uint_eq(report->ended_bytes, 900 * MEBIBYTE);
	ck_assert_uint_eq(report->before_bytes, 3 * 4096);
	ck_assert_uint_eq(report->peak_bytes, 11 * MEBIBYTE);
	ck_assert_uint_eq(report->peak_ns, START_NS + 2 * MILLISECOND + 1000);
	for (size_t i = 1; i < report->process_count; i++) {
		ck_assert(report->processes[i].ended);
		ck_assert_uint_eq(report->processes[i].unfreed_bytes, 9 * MEBIBYTE);
		ck_assert_uint_eq(report->processes[i].before_bytes, MEBIBYTE + 3 * 4096);
	}
	for (size_t i = 0; i < report->row_count; i++) {
		if (report->rows[i].unfreed_bytes)
			continue;
		ck_assert_uint_eq(report->rows[i].peak_bytes, 10 * MEBIBYTE);
		ck_assert_uint_eq(report->rows[i].trend[MMT_TREND_POINTS - 1], 0);
		for (unsigned point = 0; point < MMT_TREND_POINTS; point++)
			ck_assert_uint_le(report->rows[i].trend[point], 10 * MEBIBYTE);
	}
	mmt_report_destroy(report);
}
END_TEST

/* If no process is left, or one is selected by PID, each counts as it was just before its end, unless another followed. */
START_TEST(selected_processes_that_have_ended)
{
	const int32_t pid = FIRST_CHILD + 1;
	struct mmt_report_options options;
	struct mmt_report *report;

	record(3, 3, false);
	report = report_all();
	ck_assert_uint_eq(report->unfreed_bytes, 10 * MEBIBYTE);
	ck_assert_uint_eq(report->ended_bytes, 18 * MEBIBYTE);
	mmt_report_destroy(report);
	record(3, 3, true);
	mmt_report_options_init(&options);
	options.pids = &pid;
	options.pid_count = 1;
	report = report_file_report(&options);
	ck_assert_uint_eq(report->unfreed_bytes, 9 * MEBIBYTE);
	ck_assert_uint_eq(report->peak_bytes, 10 * MEBIBYTE);
	ck_assert_uint_eq(report->process_count, 1);
	ck_assert_uint_eq(report->left_out_process_count, 3);
	mmt_report_destroy(report);
}
END_TEST

/* What it had freed before its end, but not of its parent or an earlier program, nor stacks of threads. */
START_TEST(a_command_has_a_largest_size)
{
	struct recording_builder *builder = builder_create(report_file_path());
	uint64_t time_ns = START_NS + MILLISECOND;
	struct mmt_report_options options;
	struct mmt_report *report;

	mmt_report_options_init(&options);
	options.keep_ended = true;
	builder_comm(builder, START_NS, PARENT, PARENT, "shell");
	snapshot(builder, SNAPSHOT_START, START_NS, 3, 0);
	for (int32_t pid = FIRST_CHILD; pid < FIRST_CHILD + 2; pid++, time_ns += MILLISECOND) {
		builder_fork(builder, time_ns, pid, pid, PARENT, PARENT);
		builder_mmap_exit(builder, time_ns + 100, pid, pid, CHILD_ADDRESS, 90 * MEBIBYTE, 0x402000);
		if (pid == FIRST_CHILD)
			builder_exec(builder, time_ns + 200, pid, pid, "command");
		builder_mmap_exit(builder, time_ns + 300, pid, pid, 2 * CHILD_ADDRESS, 10 * MEBIBYTE, 0x402000);
		builder_munmap_exit(builder, time_ns + 400, pid, pid, 2 * CHILD_ADDRESS, 10 * MEBIBYTE);
		builder_mmap_exit(builder, time_ns + 500, pid, pid, 3 * CHILD_ADDRESS, 4 * MEBIBYTE, 0x402000);
		builder_munmap_exit(builder, time_ns + 600, pid, pid, 3 * CHILD_ADDRESS, 4 * MEBIBYTE);
		builder_exit(builder, time_ns + 700, pid, pid);
	}
	builder_exit(builder, time_ns, PARENT, PARENT);
	builder_round(builder);
	builder_finish(builder, time_ns + MILLISECOND);
	report = report_file_report(&options);
	ck_assert_uint_eq(report->process_count, 3);
	ck_assert_uint_eq(report->processes[0].peak_kib, 0);
	ck_assert_str_eq(report->processes[1].name, "command");
	ck_assert_uint_eq(report->processes[1].peak_kib, 10 * 1024);
	ck_assert_uint_eq(report->processes[1].unfreed_bytes, 0);
	ck_assert_uint_eq(report->processes[2].peak_kib, 0);
	mmt_report_destroy(report);
}
END_TEST

/* What differs from a usual command that ends. */
enum difference { NO_DIFFERENCE, LOST_END, LIVING_DAEMON, OLD_PACKED };

/* A section of stacks as it was before it said which processes do not count. */
static void add_old_stacks(struct recording_builder *builder, int32_t processes)
{
	const struct packed_process process = {.runtime = RESOLVED_NO_TEXT, .jitdump_failure = RESOLVED_NO_TEXT};
	struct packed_stacks stacks = {.damage = RESOLVED_NO_TEXT};
	struct buffer buffer;

	for (int32_t i = 0; i < processes; i++)
		ck_assert(vector_push(&stacks.processes, process));
	buffer_init(&buffer, 1 << 16);
	ck_assert_ptr_null(section_write(&section_stacks, &stacks, &buffer));
	builder_section(builder, FEATURE_MMTRACE_STACKS, buffer.data, buffer.size);
	buffer_deinit(&buffer);
	section_stacks.deinit(&stacks);
}

/* A shell runs programs of these sizes one after the other, each in a process of a subshell. */
static void record_shell(const unsigned *mebibytes, int32_t count, enum difference difference)
{
	struct recording_builder *builder = builder_create_of_command(report_file_path());
	uint64_t time_ns = START_NS;

	builder_comm(builder, START_NS, PARENT, PARENT, "shell");
	snapshot(builder, SNAPSHOT_START, START_NS, 1, 0);
	if (difference == LIVING_DAEMON)
		builder_fork(builder, time_ns + 1, DAEMON, DAEMON, PARENT, PARENT);
	for (int32_t i = 0; i < count; i++) {
		int32_t subshell = FIRST_CHILD + 2 * i, program = subshell + 1;

		time_ns += MILLISECOND;
		builder_fork(builder, time_ns, subshell, subshell, PARENT, PARENT);
		builder_fork(builder, time_ns + 1000, program, program, subshell, subshell);
		builder_exec(builder, time_ns + 1500, program, program, "program");
		builder_mmap_exit(builder, time_ns + 2000, program, program, CHILD_ADDRESS, mebibytes[i] * MEBIBYTE,
				  0x402000);
		if (difference == LOST_END && !i) {
			builder_lost(builder, time_ns + 3000, BUILDER_SIDE_BAND_ID, 2);
		} else {
			builder_exit(builder, time_ns + 3000, program, program);
			builder_exit(builder, time_ns + 4000, subshell, subshell);
		}
		builder_round(builder);
	}
	builder_exit(builder, time_ns + 5000, PARENT, PARENT);
	builder_round(builder);
	if (difference == LIVING_DAEMON)
		report_file_survive(builder, DAEMON);
	if (difference == OLD_PACKED)
		add_old_stacks(builder, 2 * count + 1);
	builder_finish(builder, time_ns + MILLISECOND);
}

/* The one that is much larger than the others may be what the user wants to see; two of a size are usual, whatever the
 * others are. */
START_TEST(usual_processes_end_when_the_next_begins)
{
	static const struct {
		unsigned mebibytes[4];
		uint64_t unfreed, ended, peak;
	} shells[] = {{{10, 40, 10, 10}, 50, 20, 50},
		    {{13, 0, 0, 0}, 13, 0, 13}, {{50, 10, 50, 4}, 4, 110, 50}, {{50, 45, 50, 1}, 1, 145, 50}};

	for (size_t i = 0; i < sizeof(shells) / sizeof(shells[0]); i++) {
		struct mmt_report_options options;
		struct mmt_report *report;
		uint64_t released = 0;

		record_shell(shells[i].mebibytes, 4, NO_DIFFERENCE);
		mmt_report_options_init(&options);
		options.keep_ended = true;
		report = report_file_report(&options);
		ck_assert_uint_eq(report->unfreed_bytes, (shells[i].unfreed + shells[i].ended) * MEBIBYTE);
		ck_assert_uint_eq(report->ended_bytes, 0);
		for (size_t j = 0; j < report->process_count; j++)
			ck_assert(!report->processes[j].released || !report->processes[j].unfreed_bytes);
		mmt_report_destroy(report);
		report = report_all();
		ck_assert_uint_eq(report->process_count, 9);
		ck_assert_uint_eq(report->unfreed_bytes, shells[i].unfreed * MEBIBYTE);
		ck_assert_uint_eq(report->ended_bytes, shells[i].ended * MEBIBYTE);
		ck_assert_uint_eq(report->peak_bytes, shells[i].peak * MEBIBYTE);
		for (size_t j = 0; j < report->process_count; j++) {
			ck_assert(!report->processes[j].released ||
				  (report->processes[j].ended && report->processes[j].parent_pid));
			released += report->processes[j].released ? report->processes[j].unfreed_bytes : 0;
		}
		ck_assert_uint_eq(released, report->ended_bytes);
		mmt_report_destroy(report);
		record_shell(shells[i].mebibytes, 4, OLD_PACKED);
		report = report_all();
		ck_assert_uint_eq(report->unfreed_bytes, shells[i].unfreed * MEBIBYTE);
		ck_assert_uint_eq(report->ended_bytes, shells[i].ended * MEBIBYTE);
		mmt_report_destroy(report);
	}
}
END_TEST

/* A process for a request is gone when its server goes on for long, however large it was and even if it was the last one.
 * Of a shell, or of a server that ends soon, the last one counts, and the one that is much larger than the others. To
 * compare commands, all programs of a shell do. */
START_TEST(a_server_goes_on_without_the_processes_of_its_requests)
{
	static const unsigned mebibytes[] = {20, 90, 20, 20};
	struct recording_builder *builder = builder_create(report_file_path());
	uint64_t time_ns = START_NS + MILLISECOND, end_ns;
	struct mmt_report_options options;
	struct mmt_report *report;

	builder_comm(builder, START_NS, PARENT, PARENT, "server");
	snapshot(builder, SNAPSHOT_START, START_NS, 1, 0);
	builder_mmap_exit(builder, time_ns, PARENT, PARENT, PARENT_ADDRESS, 10 * MEBIBYTE, 0x401000);
	builder_munmap_exit(builder, time_ns + 1000, PARENT, PARENT, CHILD_ADDRESS, MEBIBYTE);
	for (int32_t i = 0; i < 4; i++) {
		int32_t pid = FIRST_CHILD + i;

		builder_fork(builder, time_ns += 50 * MILLISECOND, pid, pid, PARENT, PARENT);
		if (_i == 1)
			builder_exec(builder, time_ns + 500, pid, pid, "tool");
		builder_mmap_exit(builder, time_ns + 1000, pid, pid, CHILD_ADDRESS, mebibytes[i] * MEBIBYTE, 0x402000);
		builder_munmap_exit(builder, time_ns + 2000, pid, pid, 2 * CHILD_ADDRESS, MEBIBYTE);
		builder_exit(builder, time_ns += 60 * MILLISECOND, pid, pid);
		builder_round(builder);
	}
	end_ns = time_ns + (_i == 2 ? 50 : 1200) * MILLISECOND;
	builder_exit(builder, end_ns, PARENT, PARENT);
	builder_round(builder);
	builder_finish(builder, end_ns + MILLISECOND);
	mmt_report_options_init(&options);
	for (unsigned kept = 0; kept < 2; kept++) {
		uint64_t held = !_i ? 10 : kept && _i == 1 ? 160 : 10 + 90 + 20;

		options.keep_ended = kept;
		report = report_file_report(&options);
		ck_assert_uint_eq(report->unfreed_bytes, held * MEBIBYTE);
		ck_assert_uint_eq(report->ended_bytes, (160 - held) * MEBIBYTE);
		mmt_report_destroy(report);
	}
}
END_TEST

/* A packed recording has the same figures as the raw one, also of a window or to compare, where other processes are
 * released than usual. */
START_TEST(packed_recordings_release_the_same)
{
	struct mmt_pack_options pack = {.input = report_file_path()};
	struct mmt_pack_summary summary;
	struct mmt_report_options options;
	struct mmt_report *reports[2];

	record(30, 3, _i == 2);
	mmt_report_options_init(&options);
	options.keep_ended = _i != 1;
	if (_i)
		options.to = (struct mmt_timestamp){MMT_TIMESTAMP_CLOCK, START_NS + 20 * MILLISECOND};
	for (unsigned packed = 0; packed < 2; packed++) {
		if (packed)
			ck_assert_ptr_null(mmt_pack(&pack, &summary));
		reports[packed] = report_file_report(&options);
	}
	ck_assert_uint_gt(reports[0]->ended_bytes, 0);
	ck_assert_uint_eq(reports[1]->ended_bytes, reports[0]->ended_bytes);
	ck_assert_uint_eq(reports[1]->unfreed_bytes, reports[0]->unfreed_bytes);
	ck_assert_uint_eq(reports[1]->peak_bytes, reports[0]->peak_bytes);
	ck_assert_uint_eq(reports[1]->peak_ns, reports[0]->peak_ns);
	mmt_report_destroy(reports[0]);
	mmt_report_destroy(reports[1]);
}
END_TEST

/* To compare commands, those processes count that ended before their command did, even if a daemon runs on. */
START_TEST(a_daemon_outlives_a_command)
{
	struct mmt_report_options options;
	struct mmt_report *report;

	record_shell((const unsigned[]){10, 40, 10, 10}, 4, LIVING_DAEMON);
	mmt_report_options_init(&options);
	for (unsigned kept = 0; kept < 2; kept++) {
		options.keep_ended = kept;
		report = report_file_report(&options);
		ck_assert_uint_eq(report->process_count, 10);
		ck_assert_uint_eq(report->options.keep_ended, kept);
		ck_assert_uint_eq(report->unfreed_bytes, kept * 70 * MEBIBYTE);
		ck_assert_uint_eq(report->ended_bytes, !kept * 70 * MEBIBYTE);
		ck_assert_uint_eq(report->peak_bytes, (kept ? 70 : 40) * MEBIBYTE);
		mmt_report_destroy(report);
	}
	/* Those of a process that was attached to do not. */
	record(3, 3, true);
	report = report_file_report(&options);
	ck_assert(!report->options.keep_ended);
	ck_assert_uint_eq(report->unfreed_bytes, MEBIBYTE);
	mmt_report_destroy(report);
}
END_TEST

/* The memory of a command that ended lives on in a daemon, which the command or its child had forked; or the daemon
 * unmaps it. */
START_TEST(a_daemon_inherits_from_a_command)
{
	for (unsigned i = 0; i < 4; i++) {
		struct recording_builder *builder = builder_create(report_file_path());
		bool twice = i & 1, unmaps = i & 2;
		int32_t daemon = FIRST_CHILD + twice;
		struct mmt_report *report;

		builder_comm(builder, START_NS, PARENT, PARENT, "parent");
		snapshot(builder, SNAPSHOT_START, START_NS, twice ? 30000 : 3, 0); /* it may have had more before */
		builder_mmap_exit(builder, START_NS + 1000, PARENT, PARENT, PARENT_ADDRESS, 40 * MEBIBYTE, 0x401000);
		builder_munmap_exit(builder, START_NS + 2000, PARENT, PARENT, CHILD_ADDRESS, MEBIBYTE);
		builder_fork(builder, START_NS + 3000, FIRST_CHILD, FIRST_CHILD, PARENT, PARENT);
		builder_exit(builder, START_NS + 4000, PARENT, PARENT);
		if (twice) {
			builder_fork(builder, START_NS + 5000, daemon, daemon, FIRST_CHILD, FIRST_CHILD);
			builder_exit(builder, START_NS + 6000, FIRST_CHILD, FIRST_CHILD);
		}
		if (unmaps)
			builder_munmap_exit(builder, START_NS + 7000, daemon, daemon, PARENT_ADDRESS, 40 * MEBIBYTE);
		builder_round(builder);
		report_file_survive(builder, daemon);
		builder_finish(builder, START_NS + MILLISECOND);
		report = report_all();
		ck_assert_uint_eq(report->unfreed_bytes, unmaps ? 0 : 40 * MEBIBYTE);
		ck_assert_uint_eq(report->ended_bytes, unmaps ? 40 * MEBIBYTE : 0);
		ck_assert_uint_eq(report->peak_bytes, 40 * MEBIBYTE);
		mmt_report_destroy(report);
	}
}
END_TEST

/* A process that is alive at the end has the PID of one that ended. */
START_TEST(a_pid_is_used_again)
{
	struct recording_builder *builder = builder_create(report_file_path());
	static const unsigned mebibytes[] = {30, 20, 5};
	uint64_t time_ns = START_NS;
	struct mmt_report *report;

	builder_comm(builder, START_NS, PARENT, PARENT, "parent");
	snapshot(builder, SNAPSHOT_START, START_NS, 1, 0);
	for (int32_t i = 0; i < 3; i++) {
		int32_t pid = FIRST_CHILD + i % 2;

		time_ns += MILLISECOND;
		builder_fork(builder, time_ns, pid, pid, PARENT, PARENT);
		builder_mmap_exit(builder, time_ns + 1000, pid, pid, CHILD_ADDRESS, mebibytes[i] * MEBIBYTE, 0x402000);
		if (i < 2)
			builder_exit(builder, time_ns + 2000, pid, pid);
		builder_round(builder);
	}
	report_file_survive(builder, FIRST_CHILD);
	builder_finish(builder, time_ns + MILLISECOND);
	report = report_all();
	ck_assert_uint_eq(report->unfreed_bytes, 5 * MEBIBYTE);
	ck_assert_uint_eq(report->ended_bytes, 50 * MEBIBYTE);
	ck_assert_uint_eq(report->peak_bytes, 30 * MEBIBYTE);
	mmt_report_destroy(report);
}
END_TEST

/* After a loss, a process seems to end and to return: a thread of it lives on. The next child that its parent forks, of its
 * size, does not release what it maps from then on, nor what it had. */
START_TEST(a_process_that_returns_is_not_followed)
{
	struct recording_builder *builder = builder_create(report_file_path());
	const int32_t thread = FIRST_CHILD + 1, next = FIRST_CHILD + 10;
	uint64_t time_ns = START_NS + MILLISECOND;
	struct mmt_report *report;

	builder_comm(builder, START_NS, PARENT, PARENT, "parent");
	snapshot(builder, SNAPSHOT_START, START_NS, 1, 0);
	builder_fork(builder, time_ns, FIRST_CHILD, FIRST_CHILD, PARENT, PARENT);
	builder_mmap_exit(builder, time_ns + 1000, FIRST_CHILD, FIRST_CHILD, CHILD_ADDRESS, 10 * MEBIBYTE, 0x402000);
	builder_exit(builder, time_ns + 2000, FIRST_CHILD, FIRST_CHILD);
	builder_mmap_exit(builder, time_ns + 3000, FIRST_CHILD, thread, 2 * CHILD_ADDRESS, 7 * MEBIBYTE, 0x402100);
	builder_round(builder);
	builder_fork(builder, time_ns + 4000, next, next, PARENT, PARENT);
	builder_mmap_exit(builder, time_ns + 5000, next, next, CHILD_ADDRESS, 10 * MEBIBYTE, 0x402200);
	builder_exit(builder, time_ns + 6000, next, next);
	builder_fork(builder, time_ns + 7000, next + 1, next + 1, PARENT, PARENT);
	builder_mmap_exit(builder, time_ns + 8000, FIRST_CHILD, thread, 3 * CHILD_ADDRESS, 5 * MEBIBYTE, 0x402300);
	builder_exit(builder, time_ns + 9000, next + 1, next + 1);
	builder_round(builder);
	builder_finish(builder, time_ns + MILLISECOND);
	report = report_all();
	ck_assert_uint_eq(report->unfreed_bytes, 22 * MEBIBYTE);
	mmt_report_destroy(report);
}
END_TEST

/* A process of a finished command whose end is not recorded did not survive it. */
START_TEST(an_end_is_lost)
{
	struct mmt_report_options options;
	struct mmt_report *report;

	record_shell((const unsigned[]){10, 10, 10, 10}, 4, LOST_END);
	report = report_all();
	ck_assert_uint_eq(report->unfreed_bytes, 20 * MEBIBYTE);
	ck_assert_uint_eq(report->ended_bytes, 20 * MEBIBYTE);
	for (size_t i = 0; i < report->completeness.warning_count; i++)
		ck_assert_ptr_null(strstr(report->completeness.warnings[i], "still ran"));
	mmt_report_destroy(report);
	/* Who lived at an earlier time is not known from the end: the shell and the last program did. */
	record_shell((const unsigned[]){10, 50, 10, 10}, 4, LOST_END);
	mmt_report_options_init(&options);
	options.to = (struct mmt_timestamp){MMT_TIMESTAMP_CLOCK, START_NS + 4 * MILLISECOND + 2500};
	report = report_file_report(&options);
	ck_assert_uint_eq(report->unfreed_bytes, 20 * MEBIBYTE);
	mmt_report_destroy(report);
}
END_TEST

/* Memory that a child inherited belongs to its parent, except in a report without the parent. */
START_TEST(inherited_memory_counts_once)
{
	const int32_t pids[] = {FIRST_CHILD, PARENT};
	struct mmt_report_options options;

	record(1, 3, true);
	mmt_report_options_init(&options);
	options.pids = pids;
	for (options.pid_count = 1; options.pid_count <= 2; options.pid_count++) {
		struct mmt_report *report = report_file_report(&options);

		ck_assert_uint_eq(report->process_count, options.pid_count);
		ck_assert_uint_eq(report->before_bytes, (options.pid_count == 1) * MEBIBYTE + 3 * 4096);
		mmt_report_destroy(report);
	}
}
END_TEST

/* Bytes in use while the report exists. */
static size_t bytes_for(unsigned children)
{
	size_t before = mallinfo2().uordblks, bytes;
	struct mmt_report *report;

	record(children, 2000, true);
	report = report_all();
	bytes = mallinfo2().uordblks - before;
	mmt_report_destroy(report);
	return bytes;
}

enum { WORKER = 1000, BLOCKS = 60 };

/* A worker starts after 10 s, maps 1 MiB every 50 ms, and ends after 3 s of the 30 s that its parent lives. */
static void record_worker(void)
{
	struct recording_builder *builder = builder_create(report_file_path());
	uint64_t time_ns = START_NS + 10000ull * MILLISECOND;

	builder_comm(builder, START_NS, PARENT, PARENT, "parent");
	snapshot(builder, SNAPSHOT_START, START_NS, 3, 0);
	builder_fork(builder, time_ns, WORKER, WORKER, PARENT, PARENT);
	for (unsigned i = 0; i < BLOCKS; i++) {
		time_ns += 50ull * MILLISECOND;
		builder_mmap_exit(builder, time_ns, WORKER, WORKER, CHILD_ADDRESS + i * 2 * MEBIBYTE, MEBIBYTE,
				  0x402000);
	}
	builder_munmap_exit(builder, time_ns + 1000, WORKER, WORKER, PARENT_ADDRESS, MEBIBYTE);
	builder_exit(builder, time_ns + 2000, WORKER, WORKER);
	builder_round(builder);
	snapshot(builder, SNAPSHOT_STOP, START_NS + 30000ull * MILLISECOND, 3, 0);
	report_file_survive(builder, PARENT);
	builder_finish(builder, START_NS + 30000ull * MILLISECOND + 1);
}

/* It mapped nothing after its end, which does not make its mappings a cache; and its pages are not known to be 0. */
START_TEST(a_worker_that_ended_is_judged_by_its_life)
{
	const int32_t worker = WORKER, parent = PARENT;
	struct mmt_report_options options;
	struct mmt_report *report;

	record_worker();
	mmt_report_options_init(&options);
	options.pids = &worker;
	options.pid_count = 1;
	report = report_file_report(&options);
	ck_assert_uint_eq(report->row_count, 1);
	ck_assert_uint_eq(report->rows[0].unfreed_bytes, BLOCKS * MEBIBYTE);
	ck_assert_uint_eq(report->rows[0].verdict, MMT_ROW_LEAK);
	ck_assert_uint_eq(report->resident_bytes, MMT_UNKNOWN);
	mmt_report_destroy(report);
	options.pids = &parent;
	report = report_file_report(&options);
	ck_assert_uint_ne(report->resident_bytes, MMT_UNKNOWN);
	mmt_report_destroy(report);
}
END_TEST

/* A copy of the parent's mappings would be 250,000 bytes for each child. */
START_TEST(ended_children_cost_little)
{
	size_t few = bytes_for(10), many = bytes_for(1010);

	ck_assert_msg(many < few + 1000 * 8192, "%zu bytes for 10 children, %zu for 1,010", few, many);
}
END_TEST

/* The pages of PARENT were not read, or those of another program were: they are unknown, which is not 0. */
START_TEST(pages_of_a_program_that_an_exec_replaced_are_unknown)
{
	struct recording_builder *builder = builder_create(report_file_path());
	const uint64_t exec_ns = START_NS + 3 * MILLISECOND;
	struct mmt_report *report;

	builder_comm(builder, START_NS, PARENT, PARENT, "old");
	snapshot(builder, SNAPSHOT_START, START_NS, 1, 0);
	builder_mmap_exit(builder, START_NS + 1000, PARENT, PARENT, PARENT_ADDRESS, MEBIBYTE, 0x401000);
	snapshot(builder, SNAPSHOT_STOP, START_NS + MILLISECOND, 1, 1);
	if (_i) {
		builder_exec(builder, exec_ns, PARENT, PARENT, "new");
		builder_mmap_exit(builder, exec_ns + 1000, PARENT, PARENT, PARENT_ADDRESS, MEBIBYTE, 0x401000);
	}
	report_file_survive(builder, _i ? PARENT : FIRST_CHILD);
	builder_round(builder);
	builder_finish(builder, exec_ns + MILLISECOND);
	report = report_all();
	ck_assert_uint_eq(report->unfreed_bytes, MEBIBYTE);
	ck_assert_uint_eq(report->resident_bytes, MMT_UNKNOWN);
	ck_assert_uint_eq(report->processes[0].resident_bytes, MMT_UNKNOWN);
	ck_assert_uint_eq(report->rows[0].resident_bytes, MMT_UNKNOWN);
	mmt_report_destroy(report);
}
END_TEST

/* The recorder was blocked until the end. */
START_TEST(two_readings_in_a_long_recording_are_too_few)
{
	struct recording_builder *builder = builder_create(report_file_path());
	const uint64_t stop_ns = START_NS + 167000ull * MILLISECOND;
	struct mmt_report *report;

	builder_comm(builder, START_NS, PARENT, PARENT, "blocked");
	builder_note(builder, stop_ns - 60 * MILLISECOND, PARENT, NOTE_RESIDENT, MEBIBYTE, 1);
	builder_note(builder, stop_ns - MILLISECOND, PARENT, NOTE_RESIDENT, MEBIBYTE, 2);
	builder_round(builder);
	builder_finish(builder, stop_ns);
	report = report_all();
	ck_assert_uint_eq(report->resident_reading_count, 2);
	ck_assert_int_eq(report->growth.verdict, MMT_VERDICT_TOO_SHORT);
	ck_assert_uint_eq(report->growth.advised_ns, 0);
	mmt_report_destroy(report);
}
END_TEST

Suite *test_suite(void)
{
	Suite *suite = suite_create("ended");
	TCase *tcase = add_tcase(suite, "ended");

	tcase_set_timeout(tcase, 600);
	tcase_add_checked_fixture(tcase, report_file_setup, report_file_teardown);
	tcase_add_tests(tcase, a_command_has_a_largest_size);
	tcase_add_tests(tcase, children_end_one_after_the_other, selected_processes_that_have_ended, usual_processes_end_when_the_next_begins,
			a_process_that_returns_is_not_followed, an_end_is_lost, a_daemon_outlives_a_command,
			a_daemon_inherits_from_a_command, a_pid_is_used_again,
			inherited_memory_counts_once, a_worker_that_ended_is_judged_by_its_life,
			ended_children_cost_little, two_readings_in_a_long_recording_are_too_few);
	tcase_add_loop_test(tcase, a_server_goes_on_without_the_processes_of_its_requests, 0, 3);
	tcase_add_loop_test(tcase, packed_recordings_release_the_same, 0, 3);
	tcase_add_loop_test(tcase, pages_of_a_program_that_an_exec_replaced_are_unknown, 0, 2);
	return suite;
}
