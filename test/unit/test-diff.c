// SPDX-License-Identifier: LGPL-2.1-or-later
/* Matching the stacks of two recordings. */
#include <check.h>

#include <mmtrace/diff.h>
#include <mmtrace/output.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "support/suite.h"

#define FRAME(name, at)                                                                                                \
	&(const struct mmt_frame)                                                                                      \
	{                                                                                                              \
		.kind = MMT_FRAME_NATIVE, .function = name, .raw_function = name, .module = "program",                 \
		.module_path = "/usr/bin/program", .address = at, .module_offset = (at)&0xfff                          \
	}
#define JIT_FRAME(at)                                                                                                  \
	&(const struct mmt_frame)                                                                                      \
	{                                                                                                              \
		.kind = MMT_FRAME_JIT, .module = "[jit]", .address = at                                                \
	}
#define ROW(number, stack, bytes)                                                                                      \
	{                                                                                                              \
		.id = number, .frames = stack, .frame_count = sizeof(stack) / sizeof(*stack), .unfreed_bytes = bytes,  \
		.unfreed_count = (bytes) / 4096, .resident_bytes = MMT_UNKNOWN                                         \
	}
#define REPORT(list, seconds)                                                                                          \
	{                                                                                                              \
		.input = "file", .start_ns = 0, .end_ns = (seconds)*1000000000ULL, .rows = list,                       \
		.row_count = sizeof(list) / sizeof(*list)                                                              \
	}

static const struct mmt_frame *const leak_before[] = {FRAME("mmap", 0x7f0000001010), FRAME("leak", 0x550000001020)};
static const struct mmt_frame *const leak_after[] = {FRAME("mmap", 0x7e0000001010), FRAME("leak", 0x560000001020)};
static const struct mmt_frame *const cache[] = {FRAME("mmap", 0x7f0000001010), FRAME("cache", 0x550000001030)};
static const struct mmt_frame *const other[] = {FRAME("mmap", 0x7f0000001010), FRAME("other", 0x550000001040)};

static struct mmt_diff *make_diff(const struct mmt_report *before, const struct mmt_report *after)
{
	struct mmt_diff *diff = NULL;

	ck_assert_ptr_null(mmt_diff_create(before, after, &diff));
	return diff;
}

START_TEST(addresses_do_not_matter)
{
	struct mmt_row before_rows[] = {ROW(1, leak_before, 8192)};
	struct mmt_row after_rows[] = {ROW(1, leak_after, 40960)};
	struct mmt_report before = REPORT(before_rows, 2), after = REPORT(after_rows, 4);
	struct mmt_diff *diff = make_diff(&before, &after);

	ck_assert_uint_eq(diff->entry_count, 1);
	ck_assert_int_eq(diff->entries[0].change, MMT_CHANGE_GROWN);
	ck_assert_int_eq(diff->entries[0].bytes, 32768);
	ck_assert_int_eq(diff->entries[0].count, 8);
	ck_assert_double_eq_tol(diff->entries[0].before_bytes_per_second, 4096, 0.001);
	ck_assert_double_eq_tol(diff->entries[0].after_bytes_per_second, 10240, 0.001);
	mmt_diff_destroy(diff);
}
END_TEST

/* Another arena for one more thread is 64 MiB of addresses, of which the program uses what it made accessible. */
START_TEST(reserved_memory_of_arenas)
{
	struct mmt_row before_rows[] = {ROW(1, cache, 64 << 20), ROW(2, leak_before, 8 << 20)};
	struct mmt_row after_rows[] = {ROW(1, cache, 128 << 20), ROW(2, leak_after, 8 << 20)};
	struct mmt_report before = REPORT(before_rows, 1), after = REPORT(after_rows, 1);
	struct mmt_diff *diff;

	for (unsigned i = 0; i < 2; i++) {
		before_rows[0].pattern = after_rows[0].pattern = i ? MMT_PATTERN_ARENA : MMT_PATTERN_NONE;
		before_rows[0].committed_bytes = 1 << 20;
		after_rows[0].committed_bytes = 3 << 20;
		diff = make_diff(&before, &after);
		ck_assert_int_eq(diff->bytes, 64 << 20);
		ck_assert_uint_eq(diff->growth_bytes, i ? 2 << 20 : 64 << 20);
		ck_assert_uint_eq(diff->committed_growth_bytes, 2 << 20);
		mmt_diff_destroy(diff);
	}
}
END_TEST

START_TEST(every_kind_of_change)
{
	struct mmt_row before_rows[] = {ROW(1, cache, 16384), ROW(2, leak_before, 8192), ROW(3, other, 0)};
	struct mmt_row after_rows[] = {ROW(1, other, 12288), ROW(2, leak_after, 8192)};
	struct mmt_report before = REPORT(before_rows, 1), after = REPORT(after_rows, 1);
	struct mmt_diff *diff = make_diff(&before, &after);

	ck_assert_uint_eq(diff->entry_count, 2);
	ck_assert_int_eq(diff->entries[0].change, MMT_CHANGE_NEW);
	ck_assert_ptr_null(diff->entries[0].before);
	ck_assert_int_eq(diff->entries[0].bytes, 12288);
	ck_assert_int_eq(diff->entries[1].change, MMT_CHANGE_GONE);
	ck_assert_ptr_null(diff->entries[1].after);
	ck_assert_int_eq(diff->entries[1].bytes, -16384);
	ck_assert_uint_eq(diff->same_count, 1);
	ck_assert_int_eq(diff->bytes, -4096);
	mmt_diff_destroy(diff);
}
END_TEST

/* Without a stack, but for different reasons: lost calls differ from calls whose stack was not recorded. */
START_TEST(lost_calls_match_lost_calls)
{
	struct mmt_row before_rows[] = {{.id = 1, .unfreed_bytes = 8192}, {.id = 2, .unfreed_bytes = 4096}};
	struct mmt_row after_rows[] = {{.id = 1, .unfreed_bytes = 8192}, {.id = 2, .unfreed_bytes = 4096}};
	struct mmt_report before = REPORT(before_rows, 1), after = REPORT(after_rows, 1);
	struct mmt_diff *diff;

	before_rows[0].lost = after_rows[1].lost = true;
	diff = make_diff(&before, &after);
	ck_assert_uint_eq(diff->entry_count, 2);
	for (size_t i = 0; i < 2; i++) {
		ck_assert_ptr_nonnull(diff->entries[i].before);
		ck_assert_ptr_nonnull(diff->entries[i].after);
		ck_assert_int_eq(diff->entries[i].before->lost, diff->entries[i].after->lost);
	}
	ck_assert_int_eq(diff->bytes, 0);
	mmt_diff_destroy(diff);
}
END_TEST

/* A stack that maps nothing but makes reserved memory of other stacks accessible still uses memory. */
START_TEST(commits_count_without_mappings)
{
	struct mmt_row before_rows[] = {ROW(1, cache, 65536), ROW(2, leak_before, 0)};
	struct mmt_row after_rows[] = {ROW(1, cache, 65536), ROW(2, leak_after, 0), ROW(3, other, 0)};
	struct mmt_report before = REPORT(before_rows, 1), after = REPORT(after_rows, 1);
	struct mmt_diff *diff;

	before_rows[1].committed_bytes = 4096;
	after_rows[1].committed_bytes = 8192;
	after_rows[1].committed_before_bytes = 16384;
	after_rows[2].committed_bytes = 4096;
	diff = make_diff(&before, &after);
	ck_assert_uint_eq(diff->entry_count, 2);
	ck_assert_int_eq(diff->entries[0].change, MMT_CHANGE_GROWN);
	ck_assert_int_eq(diff->entries[0].bytes, 0);
	ck_assert_int_eq(diff->entries[0].committed_bytes, 20480);
	ck_assert_int_eq(diff->entries[1].change, MMT_CHANGE_NEW);
	ck_assert_int_eq(diff->entries[1].committed_bytes, 4096);
	ck_assert_uint_eq(diff->same_count, 1);
	ck_assert_int_eq(diff->bytes, 0);
	ck_assert_int_eq(diff->committed_bytes, 24576);
	mmt_diff_destroy(diff);
}
END_TEST

START_TEST(shrunk_comes_last)
{
	struct mmt_row before_rows[] = {ROW(1, cache, 16384), ROW(2, leak_before, 8192)};
	struct mmt_row after_rows[] = {ROW(1, leak_after, 12288), ROW(2, cache, 4096)};
	struct mmt_report before = REPORT(before_rows, 1), after = REPORT(after_rows, 1);
	struct mmt_diff *diff = make_diff(&before, &after);

	ck_assert_uint_eq(diff->entry_count, 2);
	ck_assert_int_eq(diff->entries[0].change, MMT_CHANGE_GROWN);
	ck_assert_int_eq(diff->entries[1].change, MMT_CHANGE_SHRUNK);
	mmt_diff_destroy(diff);
}
END_TEST

/* Unnamed JIT code is at another address in each run: it is matched by rank, and nothing is counted twice. */
START_TEST(unnamed_code_is_matched_by_rank)
{
	const struct mmt_frame *const jit_a[] = {JIT_FRAME(0x1000)};
	const struct mmt_frame *const jit_b[] = {JIT_FRAME(0x2000)};
	const struct mmt_frame *const jit_c[] = {JIT_FRAME(0x3000)};
	struct mmt_row before_rows[] = {ROW(1, jit_a, 16384), ROW(2, jit_b, 8192)};
	struct mmt_row after_rows[] = {ROW(1, jit_c, 20480)};
	struct mmt_report before = REPORT(before_rows, 1), after = REPORT(after_rows, 1);
	struct mmt_diff *diff = make_diff(&before, &after);

	ck_assert_uint_eq(diff->entry_count, 2);
	ck_assert_ptr_eq(diff->entries[0].before, &before_rows[0]);
	ck_assert_int_eq(diff->entries[0].bytes, 4096);
	ck_assert_ptr_eq(diff->entries[1].before, &before_rows[1]);
	ck_assert_int_eq(diff->bytes, -4096);
	mmt_diff_destroy(diff);
}
END_TEST

static void identify(struct mmt_report *report, struct mmt_process *process, uint64_t start_ns)
{
	report->processes = process;
	report->process_count = 1;
	report->host = "host";
	report->end_ns += start_ns;
	report->start_ns += start_ns;
}

/* What the later recording of one process has is growth, whatever the earlier one had. */
START_TEST(recordings_of_one_process_are_recognized)
{
	struct mmt_row before_rows[] = {ROW(1, leak_before, 40960), ROW(2, other, 4096)};
	struct mmt_row after_rows[] = {ROW(1, leak_after, 8192), ROW(2, cache, 4096)};
	struct mmt_report before = REPORT(before_rows, 20), after = REPORT(after_rows, 40);
	struct mmt_process first = {
	    .pid = 7, .name = "a", .start_boot_ns = 50, .unfreed_bytes = 45056, .before_bytes = 8192};
	struct mmt_process second = {.pid = 7,
				     .name = "b",
				     .start_boot_ns = 50,
				     .unfreed_bytes = 12288,
				     .before_bytes = 49152,
				     .kernel_bytes = 4096};
	struct mmt_diff *diff;

	identify(&before, &first, 0);
	identify(&after, &second, 25000000000);
	diff = make_diff(&before, &after);
	ck_assert_int_eq(diff->relation, MMT_DIFF_SAME_PROCESS);
	ck_assert_uint_eq(diff->same_process_count, 1);
	ck_assert_ptr_null(diff->executed_after);
	mmt_diff_destroy(diff);
	/* The path of a program that was replaced changes, too, but not the name of the process. */
	first.program = "/usr/bin/a";
	second.program = "/usr/bin/b";
	diff = make_diff(&before, &after);
	ck_assert_ptr_eq(diff->executed_before, &first);
	ck_assert_ptr_eq(diff->executed_after, &second);
	ck_assert_uint_eq(diff->between_ns, 5000000000);
	ck_assert_uint_eq(diff->mapped_before_bytes, 53248);
	ck_assert_uint_eq(diff->mapped_after_bytes, 65536);
	ck_assert_uint_eq(diff->entry_count, 2);
	ck_assert_int_eq(diff->entries[0].change, MMT_CHANGE_GROWN);
	ck_assert_int_eq(diff->entries[0].bytes, 8192);
	ck_assert_int_eq(diff->entries[1].change, MMT_CHANGE_NEW);
	ck_assert_int_eq(diff->bytes, 12288);
	ck_assert(diff->rated);
	mmt_diff_destroy(diff);

	/* The same PID is another process later, and an old recording does not show that. */
	second.start_boot_ns = 51;
	diff = make_diff(&before, &after);
	ck_assert_int_eq(diff->relation, MMT_DIFF_OTHER_PROGRAM);
	mmt_diff_destroy(diff);
	first.start_boot_ns = second.start_boot_ns = 0;
	second.name = "a";
	diff = make_diff(&before, &after);
	ck_assert_int_eq(diff->relation, MMT_DIFF_RUNS);
	ck_assert_uint_eq(diff->entry_count, 3);
	mmt_diff_destroy(diff);
}
END_TEST

#define KIND(kind, start, end, ...)                                                                                    \
	{                                                                                                              \
		.memory_class = MMT_CLASS_##kind, .start_bytes = start, .end_bytes = end, __VA_ARGS__                  \
	}

/* By kind, in any order; missing kinds shrank, and the remainder belongs to no kind. */
START_TEST(growth_between_recordings_of_one_process)
{
	const struct mmt_resident_kind first[] = {KIND(HEAP, 1, 4 << 20, ), KIND(ANON, 1, 100, .arena = true),
						  KIND(FILE, 1, 500, .name = "/gone"), KIND(JIT, 1, 70, )};
	const struct mmt_resident_kind second[] = {KIND(ANON, 4000, 1, ), KIND(JIT, 70, 1, ),
						   KIND(ANON, 300, 1, .arena = true), KIND(HEAP, 7 << 20, 1, ),
						   KIND(ANON, 9, 1, .runtime = "Java")};
	const struct {
		enum mmt_class memory_class;
		int64_t bytes;
	} expected[] = {{MMT_CLASS_HEAP, 3 << 20},
			{MMT_CLASS_ANON, 4000},
			{MMT_CLASS_FILE, -500},
			{MMT_CLASS_ANON, 200},
			{MMT_CLASS_ANON, 9}};
	struct mmt_row rows[] = {ROW(1, leak_before, 40960)};
	struct mmt_report before = REPORT(rows, 20), after = REPORT(rows, 40);
	struct mmt_process process = {.pid = 7, .name = "a", .start_boot_ns = 50};
	int64_t sum = 0;
	struct mmt_diff *diff;

	identify(&before, &process, 0);
	identify(&after, &process, 25000000000);
	before.growth = (struct mmt_growth){.verdict = MMT_VERDICT_STEADY,
					    .end_bytes = 5 << 20,
					    .kinds_at_end = true,
					    .kinds = first,
					    .kind_count = sizeof(first) / sizeof(*first)};
	after.growth = (struct mmt_growth){.verdict = MMT_VERDICT_STEADY,
					   .start_bytes = (8 << 20) + 4000,
					   .kinds_at_start = true,
					   .kinds = second,
					   .kind_count = sizeof(second) / sizeof(*second)};
	diff = make_diff(&before, &after);
	ck_assert(diff->between_parts_known);
	ck_assert_int_eq(diff->between_bytes, (3 << 20) + 4000);
	ck_assert_uint_eq(diff->between_part_count, sizeof(expected) / sizeof(*expected));
	for (size_t i = 0; i < diff->between_part_count; i++) {
		ck_assert_int_eq(diff->between_parts[i].memory_class, expected[i].memory_class);
		ck_assert_int_eq(diff->between_parts[i].bytes, expected[i].bytes);
		sum += expected[i].bytes;
	}
	ck_assert_ptr_nonnull(diff->between_parts[0].hint);
	ck_assert(diff->between_parts[3].arena && diff->between_parts[3].pattern == MMT_PATTERN_ARENA);
	ck_assert_int_eq(diff->between_unexplained_bytes, diff->between_bytes - sum);
	mmt_diff_destroy(diff);

	/* One of the two has no page readings. */
	after.growth.kinds_at_start = false;
	diff = make_diff(&before, &after);
	ck_assert(!diff->between_parts_known);
	ck_assert_uint_eq(diff->between_part_count, 0);
	mmt_diff_destroy(diff);
}
END_TEST

static char *write_diff(const struct mmt_diff *diff)
{
	const struct mmt_text_options options = {0};
	char *text = NULL;
	size_t size;
	FILE *stream = open_memstream(&text, &size);

	ck_assert_ptr_nonnull(stream);
	ck_assert_ptr_null(mmt_diff_write_text(diff, &options, stream));
	ck_assert_int_eq(fclose(stream), 0);
	return text;
}

/* What the second report calls a leak, the diff calls a leak, and the memory that grew between the recordings, of which
 * no call is known, is never "not a leak". */
START_TEST(leaks_of_a_report_are_leaks_of_a_diff)
{
	static const struct mmt_resident_kind first[] = {KIND(FILE, 1, 1 << 20, .name = "/var/cache"),
							 KIND(THREAD_STACK, 1, 1 << 20, ), KIND(ANON, 1, 1 << 20, )},
					      second[] = {KIND(FILE, 9 << 20, 1, .name = "/var/cache"),
							  KIND(THREAD_STACK, 8 << 20, 1, ), KIND(ANON, 7 << 20, 1, )};
	struct mmt_row rows[] = {ROW(1, leak_before, 40960)}, leaking[] = {ROW(1, leak_before, 4096000)};
	struct mmt_report before = REPORT(rows, 20), after = REPORT(leaking, 40);
	struct mmt_process process = {.pid = 7, .name = "a", .start_boot_ns = 50};
	struct mmt_diff *diff;
	char *text;

	identify(&before, &process, 0);
	identify(&after, &process, 25000000000);
	before.recorded_by = after.recorded_by = "mmtrace";
	leaking[0].verdict = MMT_ROW_LEAK;
	before.growth = (struct mmt_growth){.verdict = MMT_VERDICT_STEADY,
					    .end_bytes = 3 << 20,
					    .kinds_at_end = true,
					    .kinds = first,
					    .kind_count = sizeof(first) / sizeof(*first)};
	after.growth = (struct mmt_growth){.verdict = MMT_VERDICT_STEADY,
					   .start_bytes = 24 << 20,
					   .kinds_at_start = true,
					   .kinds = second,
					   .kind_count = sizeof(second) / sizeof(*second)};
	diff = make_diff(&before, &after);
	ck_assert_uint_eq(diff->between_part_count, 3);
	text = write_diff(diff);
	ck_assert_ptr_nonnull(strstr(text, "LEAK"));
	ck_assert_ptr_nonnull(strstr(text, "/var/cache"));
	ck_assert_msg(!strstr(text, "not a leak"), "%s", text);
	free(text);
	mmt_diff_destroy(diff);
}
END_TEST

/* A parent and its children have one name: they are paired in the order in which they started, not by size. */
START_TEST(processes_of_one_name_pair_by_start)
{
	static const int32_t pids[] = {70, 71, 72};
	struct mmt_row before_rows[] = {
	    {.id = 1, .name = "w (70)", .pids = &pids[0], .pid_count = 1, .unfreed_bytes = 40960},
	    {.id = 2, .name = "w (71)", .pids = &pids[1], .pid_count = 1, .unfreed_bytes = 8192},
	};
	struct mmt_row after_rows[] = {
	    {.id = 1, .name = "w (72)", .pids = &pids[2], .pid_count = 1, .unfreed_bytes = 12288},
	    {.id = 2, .name = "w (70)", .pids = &pids[0], .pid_count = 1},
	};
	struct mmt_process first[] = {{.pid = 71, .name = "w", .start_boot_ns = 60},
				      {.pid = 70, .name = "w", .start_boot_ns = 50}};
	struct mmt_process second[] = {{.pid = 70, .name = "w", .start_boot_ns = 80},
				       {.pid = 72, .name = "w", .start_boot_ns = 90}};
	struct mmt_report before = REPORT(before_rows, 1), after = REPORT(after_rows, 1);
	struct mmt_diff *diff;

	before.by = after.by = MMT_BY_PROCESS;
	before.processes = first;
	after.processes = second;
	before.process_count = after.process_count = 2;
	diff = make_diff(&before, &after);
	ck_assert_uint_eq(diff->entry_count, 2);
	ck_assert_ptr_eq(diff->entries[0].before, &before_rows[1]);
	ck_assert_ptr_eq(diff->entries[0].after, &after_rows[0]);
	ck_assert_ptr_eq(diff->entries[1].before, &before_rows[0]);
	ck_assert_ptr_eq(diff->entries[1].after, &after_rows[1]);
	mmt_diff_destroy(diff);
}
END_TEST

/* Commands that free what they had are compared by their largest sizes: in MiB, up to a 0. */
START_TEST(commands_are_compared_at_their_largest_sizes)
{
	enum { MOST = 12, MIB = 1 << 20 };
	static const struct {
		unsigned before[MOST + 1], after[MOST + 1], larger;
	} cases[] = {
	    {{10, 10, 10, 10}, {10, 10, 10, 10}, 0},
	    {{10, 10, 10, 10}, {80, 80, 80, 80}, 280},
	    {{80, 80, 80, 80}, {10, 10, 10, 10}, 0},
	    /* Not the largest one. */
	    {{120, 10, 10, 60}, {80, 60, 10, 120}, 70},
	    /* Fewer with more each, and fewer of the same. */
	    {{22, 22, 22, 22, 22, 22, 22, 22}, {42, 42, 42, 42}, 80},
	    {{22, 22, 22, 22, 22, 22, 22, 22}, {22, 22, 22, 22}, 0},
	    {{100, 2, 2, 2}, {100}, 0},
	    /* Additional ones may be as large as any. */
	    {{10, 10, 10, 10}, {10, 10, 10, 10, 10, 10, 10, 10}, 0},
	    {{100, 2}, {100, 2, 100, 80}, 0},
	    {{10, 10}, {10, 10, 90}, 80},
	    {{10, 10}, {0}, 0},
	    {{0}, {10, 10}, 0},
	    /* Sizes vary. */
	    {{100}, {130}, 0},
	    {{100}, {140}, 40},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct mmt_process processes[2][MOST + 2] = {0};
		struct mmt_report reports[2] = {{.end_ns = 16}, {.end_ns = 16}};
		struct mmt_diff *diff;

		for (unsigned side = 0; side < 2; side++) {
			const unsigned *sizes = side ? cases[i].after : cases[i].before;
			size_t count = 0;

			reports[side].processes = processes[side];
			for (; sizes[count]; count++)
				processes[side][count] =
				    (struct mmt_process){.name = "command",
							 .ended = true,
							 .started_ns = 1,
							 .ended_ns = 12,
							 .peak_kib = sizes[count] * 1024};
			/* What runs for most of the time is no command, and a copy of a server has an end of its own.
			 */
			processes[side][count++] = (struct mmt_process){
			    .name = "shell", .ended = true, .ended_ns = 16, .peak_kib = side * 500 * 1024};
			processes[side][count++] = (struct mmt_process){.name = "command",
									.ended = true,
									.released = true,
									.started_ns = 1,
									.ended_ns = 2,
									.peak_kib = side * 500 * 1024};
			reports[side].process_count = count;
		}
		diff = make_diff(&reports[0], &reports[1]);
		ck_assert_msg(diff->larger_bytes == cases[i].larger * (uint64_t)MIB, "case %zu: %llu", i,
			      (unsigned long long)diff->larger_bytes);
		if (cases[i].larger)
			ck_assert_str_eq(diff->larger->name, "command");
		mmt_diff_destroy(diff);
		/* Which of them run for most of the time may be chance. */
		processes[1][reports[1].process_count++] =
		    (struct mmt_process){.name = "command", .ended = true, .ended_ns = 12, .peak_kib = 1024};
		diff = make_diff(&reports[0], &reports[1]);
		ck_assert_uint_eq(diff->larger_bytes, 0);
		mmt_diff_destroy(diff);
	}
}
END_TEST

/* Comparing each process with each takes hundreds of seconds of CPU time; the kernel ends the test after 60. */
START_TEST(many_processes)
{
	enum { COUNT = 200000 };
	const struct rlimit seconds = {60, RLIM_INFINITY};
	struct mmt_process *processes = calloc(2 * COUNT, sizeof(*processes));
	char(*names)[16] = calloc(2 * COUNT, sizeof(*names));
	struct mmt_report before = {.process_count = COUNT, .end_ns = 1, .host = "host"};
	struct mmt_report after = {.process_count = COUNT, .start_ns = 2, .end_ns = 3, .host = "host"};
	struct mmt_diff *diff;

	ck_assert(processes && names && !setrlimit(RLIMIT_CPU, &seconds));
	for (int i = 0; i < 2 * COUNT; i++) {
		snprintf(names[i], sizeof(names[i]), "%d", i);
		processes[i] = (struct mmt_process){
		    .pid = i % COUNT, .start_boot_ns = (uint64_t)i + 1, .name = names[i], .unfreed_bytes = 4096};
	}
	before.processes = processes;
	after.processes = processes + COUNT;
	diff = make_diff(&before, &after);
	ck_assert_int_eq(diff->relation, MMT_DIFF_OTHER_PROGRAM);
	mmt_diff_destroy(diff);

	after.processes = processes;
	diff = make_diff(&before, &after);
	ck_assert_int_eq(diff->relation, MMT_DIFF_SAME_PROCESS);
	ck_assert_uint_eq(diff->mapped_before_bytes, COUNT * 4096ULL);
	ck_assert_uint_eq(diff->mapped_after_bytes, COUNT * 4096ULL);
	mmt_diff_destroy(diff);
	free(processes);
	free(names);
}
END_TEST

START_TEST(short_recordings_have_no_rates)
{
	struct mmt_row rows[] = {ROW(1, leak_before, 40960)};
	struct mmt_report before = REPORT(rows, 10), after = REPORT(rows, 9);
	struct mmt_diff *diff = make_diff(&before, &after);

	ck_assert(!diff->rated);
	mmt_diff_destroy(diff);
	diff = make_diff(&before, &before);
	ck_assert(diff->rated);
	mmt_diff_destroy(diff);
}
END_TEST

/* The frames of a stack: named ones, or places in a module. */
#define NAMED(name, ...)                                                                                               \
	&(const struct mmt_frame)                                                                                      \
	{                                                                                                              \
		.kind = MMT_FRAME_NATIVE, .function = name, .raw_function = name, .module = "program",                 \
		.module_path = "/usr/bin/program", __VA_ARGS__                                                         \
	}
#define PLACE(at) NAMED(NULL, .module_offset = at)
#define STACK(name, ...) const struct mmt_frame *const name[] = {__VA_ARGS__}
#define OUTER NAMED("run"), NAMED("main"), NAMED("_start")
#define FROM(number, stack, bytes, at)                                                                                 \
	{                                                                                                              \
		.id = number, .frames = stack, .frame_count = sizeof(stack) / sizeof(*stack), .unfreed_bytes = bytes,  \
		.unfreed_count = (bytes) / 4096, .resident_bytes = MMT_UNKNOWN, .origin = at                           \
	}

/* A leak grows with time; what another program does before it ends does not. */
START_TEST(durations_are_no_growth)
{
	static const struct mmt_process running = {.pid = 1, .name = "program"};
	static const struct mmt_process over = {.pid = 1, .name = "program", .ended = true};
	static const struct {
		uint64_t seconds, bytes;
		bool ended;
		enum mmt_row_verdict verdict;
		int64_t change;
		bool incomparable;
	} cases[] = {
	    {40, 4096000, false, MMT_ROW_LEAK, 0, false},	{40, 4200000, false, MMT_ROW_LEAK, 0, false},
	    {40, 8192000, false, MMT_ROW_LEAK, 4096000, false}, {40, 2048000, false, MMT_ROW_LEAK, -2048000, false},
	    {40, 4096000, true, MMT_ROW_LEAK, 2048000, false},	{40, 4096000, false, MMT_ROW_UNKNOWN, 2048000, false},
	    {21, 2150400, false, MMT_ROW_LEAK, 102400, false},	{11, 1126400, false, MMT_ROW_LEAK, 0, false},
	    {11, 2048000, false, MMT_ROW_LEAK, 921600, false},	{9, 921600, false, MMT_ROW_LEAK, -1126400, true},
	    {9, 921600, true, MMT_ROW_LEAK, -1126400, false},	{60, 6144000, false, MMT_ROW_LEAK, 0, false},
	    {70, 7168000, false, MMT_ROW_LEAK, 0, true},	{70, 7168000, true, MMT_ROW_LEAK, 5120000, false},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct mmt_row before_rows[] = {ROW(1, leak_before, 2048000)};
		struct mmt_row after_rows[] = {ROW(1, leak_after, cases[i].bytes)};
		struct mmt_report before = REPORT(before_rows, 20), after = REPORT(after_rows, cases[i].seconds);
		struct mmt_diff *diff;

		for (unsigned point = 0; point < MMT_TREND_POINTS; point++)
			before_rows[0].trend[point] = (point + 1) * 2048000 / MMT_TREND_POINTS;
		before_rows[0].committed_bytes = 2048000;
		after_rows[0].committed_bytes = cases[i].bytes;
		before_rows[0].verdict = cases[i].verdict;
		before.to_ns = before.end_ns;
		after.to_ns = after.end_ns;
		before.processes = &running;
		after.processes = cases[i].ended ? &over : &running;
		before.process_count = after.process_count = 1;
		diff = make_diff(&before, &after);
		ck_assert_int_eq(diff->bytes, cases[i].change);
		ck_assert_int_eq(diff->left_out_bytes, (int64_t)cases[i].bytes - 2048000 - cases[i].change);
		ck_assert_int_eq(diff->incomparable, cases[i].incomparable);
		ck_assert_uint_eq(diff->growth_bytes, cases[i].change > 0 ? (uint64_t)cases[i].change : 0);
		ck_assert_uint_eq(diff->entry_count, cases[i].change ? 1 : 0);
		mmt_diff_destroy(diff);
	}
}
END_TEST

/* Processes that ended count in a recording of a command that ended, and not in one that was cut short. */
START_TEST(ended_processes_count_in_both_recordings)
{
	static const struct mmt_process running = {.pid = 1, .name = "program"};
	static const struct {
		bool keeps[2], incomparable;
		uint64_t ended_bytes[2];
	} cases[] = {
	    {{false, false}, false, {4096, 4096}}, {{true, true}, false, {4096, 4096}},
	    {{true, false}, true, {0, 4096}},	   {{false, true}, true, {4096, 0}},
	    {{false, true}, false, {0, 4096}},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct mmt_row rows[] = {ROW(1, leak_before, 4096)};
		struct mmt_report reports[] = {REPORT(rows, 2), REPORT(rows, 2)};
		struct mmt_diff *diff;

		for (unsigned j = 0; j < 2; j++) {
			reports[j].processes = &running;
			reports[j].process_count = 1;
			reports[j].options.keep_ended = cases[i].keeps[j];
			reports[j].ended_bytes = cases[i].ended_bytes[j];
		}
		diff = make_diff(&reports[0], &reports[1]);
		ck_assert_int_eq(diff->incomparable, cases[i].incomparable);
		ck_assert_int_eq(diff->counted_unlike, cases[i].incomparable);
		mmt_diff_destroy(diff);
	}
}
END_TEST

/* RSS that did not keep growing is not expected to, and figures of a hostile recording stop at the ends of their range.
 */
START_TEST(growth_in_the_longer_time)
{
	static const struct mmt_process running = {.pid = 1, .name = "program"};
	static const struct {
		uint64_t end_ns, bytes;
		enum mmt_verdict verdict;
		int64_t bytes_per_minute, left_out_resident_bytes, change;
	} cases[] = {
	    {40000000000, 2, MMT_VERDICT_GROWING, 3 << 20, 1 << 20, 0},
	    {40000000000, 2, MMT_VERDICT_TOO_SHORT, 3 << 20, 0, 0},
	    {40000000000, 2, MMT_VERDICT_PLATEAU, 3 << 20, 0, 0},
	    {40000000000, 2, MMT_VERDICT_GROWING, MMT_RATE_UNKNOWN, 0, 0},
	    {UINT64_MAX, UINT64_MAX / 2, MMT_VERDICT_GROWING, INT64_MAX, INT64_MAX, -INT64_MAX},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct mmt_row before_rows[] = {ROW(1, leak_before, cases[i].bytes)};
		struct mmt_row after_rows[] = {ROW(1, leak_after, 0)};
		struct mmt_report before = REPORT(before_rows, 20), after = REPORT(after_rows, 40);
		struct mmt_diff *diff;

		for (unsigned point = 0; point < MMT_TREND_POINTS; point++)
			before_rows[0].trend[point] = point * (cases[i].bytes / MMT_TREND_POINTS);
		before_rows[0].verdict = MMT_ROW_LEAK;
		before.to_ns = 20000000000;
		after.end_ns = cases[i].end_ns;
		before.growth.verdict = cases[i].verdict;
		before.growth.bytes_per_minute = cases[i].bytes_per_minute;
		before.processes = after.processes = &running;
		before.process_count = after.process_count = 1;
		diff = make_diff(&before, &after);
		ck_assert_int_gt(diff->longer_ns, 0);
		ck_assert_int_eq(diff->left_out_resident_bytes, cases[i].left_out_resident_bytes);
		if (cases[i].change)
			ck_assert_int_le(diff->bytes, cases[i].change);
		mmt_diff_destroy(diff);
	}
}
END_TEST

/* Code that moved, in a renamed file, inlined or not, or cloned by the compiler, is the same code. */
START_TEST(names_identify_a_stack)
{
	STACK(old, NAMED("leak", .source_file = "a.c", .source_line = 5), NAMED("main"));
	STACK(moved, NAMED("leak", .source_file = "b.c", .source_line = 6, .inlined = true), NAMED("main"));
	STACK(cloned, NAMED("leak.constprop.0"), NAMED("main.cold"));
	STACK(cloned_twice, NAMED("leak.part.0.isra.1"), NAMED("main [clone .llvm.123]"));
	STACK(other_name, NAMED("leak.c"), NAMED("main"));
	struct mmt_row before_rows[] = {ROW(1, old, 8192)};
	struct mmt_row after_rows[] = {ROW(1, moved, 8192)};
	struct mmt_report before = REPORT(before_rows, 1), after = REPORT(after_rows, 1);
	const struct mmt_frame *const *const stacks[] = {moved, cloned, cloned_twice};
	struct mmt_diff *diff;

	for (size_t i = 0; i < sizeof(stacks) / sizeof(*stacks); i++) {
		after_rows[0].frames = stacks[i];
		diff = make_diff(&before, &after);
		ck_assert_uint_eq(diff->entry_count, 0);
		ck_assert_uint_eq(diff->same_count, 1);
		ck_assert_uint_eq(diff->unchanged_count, 1);
		ck_assert_ptr_eq(diff->unchanged[0].before, &before_rows[0]);
		mmt_diff_destroy(diff);
	}
	after_rows[0].frames = other_name;
	diff = make_diff(&before, &after);
	ck_assert_uint_eq(diff->entry_count, 2);
	mmt_diff_destroy(diff);
}
END_TEST

/* V8 has the place in the source as a part of the name. */
START_TEST(names_of_jit_code_can_contain_lines)
{
	static const struct mmt_frame frames[] = {
	    {.kind = MMT_FRAME_JIT, .module = "[jit]", .function = "JS:serve /a/server.js:10:5"},
	    {.kind = MMT_FRAME_JIT, .module = "[jit]", .function = "JS:serve /a/server.js:11:7"},
	    {.kind = MMT_FRAME_JIT, .module = "[jit]", .function = "JS:other /a/server.js:11:7"}};
	const struct mmt_frame *const stacks[][1] = {{&frames[0]}, {&frames[1]}, {&frames[2]}};
	struct mmt_row before_rows[] = {ROW(1, stacks[0], 8192)};
	struct mmt_row after_rows[] = {ROW(1, stacks[1], 8192), ROW(2, stacks[2], 4096)};
	struct mmt_report before = REPORT(before_rows, 1), after = REPORT(after_rows, 1);
	struct mmt_diff *diff = make_diff(&before, &after);

	ck_assert_uint_eq(diff->same_count, 1);
	ck_assert_uint_eq(diff->entry_count, 1);
	ck_assert_int_eq(diff->entries[0].change, MMT_CHANGE_NEW);
	ck_assert_ptr_eq(diff->entries[0].after, &after_rows[1]);
	mmt_diff_destroy(diff);
}
END_TEST

/* Of one build, places without names are the same functions; of two builds that is uncertain, wherever they are. */
START_TEST(build_ids_identify_frames_without_names)
{
	STACK(first, NAMED("mmap"), PLACE(0x1000), PLACE(0x2000), NAMED("_start"));
	STACK(same_place, NAMED("mmap"), PLACE(0x1000), PLACE(0x2000), NAMED("_start"));
	STACK(other_place, NAMED("mmap"), PLACE(0x1010), PLACE(0x2010), NAMED("_start"));
	STACK(with_names, NAMED("mmap"), NAMED("leak"), NAMED("main"), NAMED("_start"));
	struct mmt_module one = {"/usr/bin/program", "aaaa"}, two = {"/usr/bin/program", "bbbb"};
	struct mmt_row before_rows[] = {FROM(1, first, 8192, 1)};
	struct mmt_row after_rows[] = {FROM(1, same_place, 12288, 1)};
	struct mmt_report before = REPORT(before_rows, 1), after = REPORT(after_rows, 1);
	const struct {
		const struct mmt_frame *const *frames;
		const struct mmt_module *build;
		size_t entries, differing_frames;
		size_t build_ids;
	} cases[] = {{same_place, &one, 1, 0, 1},
		     {other_place, &one, 2, 0, 1},
		     {same_place, &two, 1, 2, 1},
		     {other_place, &two, 1, 2, 1},
		     {with_names, &two, 1, 2, 1},
		     {with_names, &one, 1, 2, 1},
		     /* Without build-ids, equal places are uncertain, too. */
		     {same_place, &one, 1, 2, 0}};

	before.modules = &one;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct mmt_diff *diff;

		after_rows[0].frames = cases[i].frames;
		after.modules = cases[i].build;
		before.module_count = after.module_count = cases[i].build_ids;
		diff = make_diff(&before, &after);
		ck_assert_uint_eq(diff->entry_count, cases[i].entries);
		ck_assert_uint_eq(diff->entries[0].differing_frames, cases[i].differing_frames);
		ck_assert_uint_eq(diff->uncertain_count, cases[i].differing_frames > 0);
		mmt_diff_destroy(diff);
	}
}
END_TEST

/* Without debug information, an inlined function is in no stack. Two stacks can then be one. */
START_TEST(inlined_functions_are_uncertain)
{
	STACK(open, NAMED("mmap"), NAMED("buffer"), NAMED("open"), OUTER);
	STACK(fill, NAMED("mmap"), NAMED("buffer"), NAMED("fill"), OUTER);
	STACK(inlined, NAMED("mmap"), OUTER);
	struct mmt_row before_rows[] = {FROM(1, open, 16384, 1), FROM(2, fill, 8192, 1)};
	struct mmt_row after_rows[] = {FROM(1, inlined, 24576, 1)};
	struct mmt_report before = REPORT(before_rows, 1), after = REPORT(after_rows, 1);
	struct mmt_diff *diff = make_diff(&before, &after);

	ck_assert_uint_eq(diff->entry_count, 2);
	ck_assert_int_eq(diff->entries[0].change, MMT_CHANGE_GROWN);
	ck_assert_int_eq(diff->entries[0].bytes, 8192);
	ck_assert_uint_eq(diff->entries[0].differing_frames, 2);
	ck_assert_ptr_null(diff->entries[0].part_of);
	ck_assert_int_eq(diff->entries[1].change, MMT_CHANGE_GONE);
	ck_assert_uint_eq(diff->entries[1].differing_frames, 2);
	ck_assert_ptr_eq(diff->entries[1].part_of, &after_rows[0]);
	ck_assert_uint_eq(diff->growth_bytes, 0);
	mmt_diff_destroy(diff);

	diff = make_diff(&after, &before);
	ck_assert_uint_eq(diff->entry_count, 2);
	ck_assert_int_eq(diff->entries[0].change, MMT_CHANGE_NEW);
	ck_assert_ptr_eq(diff->entries[0].part_of, &before_rows[0]);
	ck_assert_int_eq(diff->entries[1].change, MMT_CHANGE_SHRUNK);
	ck_assert_uint_eq(diff->growth_bytes, 0);
	mmt_diff_destroy(diff);
}
END_TEST

/* Functions whose arguments changed, and hidden classes of Java, are probably the same; others of their class are not.
 */
START_TEST(other_arguments_are_uncertain)
{
	static const struct {
		const char *before, *after;
		unsigned uncertain;
	} names[] = {{"Session<int>::open(int)", "Session<long>::open(int, bool)", 1},
		     {"(anonymous namespace)::open(int)", "(anonymous namespace)::open(long)", 1},
		     {"void V$$Lambda/0x0000000010040418.run()", "void V$$Lambda/0x0000000037040418.run()", 1},
		     {"main.Map[int]", "main.Map[string]", 1},
		     {"<Vec<u8> as Trait>::open", "<Vec<u16> as Trait>::open", 1},
		     {"<Vec<u8> as Trait>::open", "<Box<u8> as Trait>::open", 0},
		     {"(anonymous namespace)::open(int)", "(anonymous namespace)::fill(int)", 0},
		     {"Session::open(int)", "Session::close(int)", 0},
		     {"main.(*Server).load", "main.(*Client).load", 0},
		     {"main.(*Server).load[int]", "main.(*Server).load[string]", 1},
		     {"app::<impl app::Load for app::A>::load", "app::<impl app::Load for app::B>::load", 0},
		     {"Session::operator()(int)", "Session::operator[](int)", 0},
		     {"Session::operator()(int)", "Session::operator()(long)", 1},
		     {"py::<lambda>:/f", "py::<listcomp>:/f", 0},
		     {"operator<(A, B)", "open(int)", 0}};

	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
		STACK(first, NAMED("mmap"), NAMED(names[i].before), NAMED("serve"), OUTER);
		STACK(second, NAMED("mmap"), NAMED(names[i].after), NAMED("serve"), OUTER);
		struct mmt_row before_rows[] = {FROM(1, first, 8192, 1)};
		struct mmt_row after_rows[] = {FROM(1, second, 16384, 1)};
		struct mmt_report before = REPORT(before_rows, 1), after = REPORT(after_rows, 1);
		struct mmt_diff *diff = make_diff(&before, &after);

		ck_assert_msg(diff->uncertain_count == names[i].uncertain, "%s: %zu", names[i].before,
			      diff->uncertain_count);
		ck_assert_uint_eq(diff->growth_bytes, names[i].uncertain ? 8192 : 16384);
		mmt_diff_destroy(diff);
	}
}
END_TEST

/* A leak that was fixed and a new one are not one that was renamed, however similar their callers are. */
START_TEST(another_function_is_another_stack)
{
#define DEEP OUTER, OUTER, OUTER, OUTER, OUTER, OUTER
	STACK(leak_deep, NAMED("mmap"), NAMED("leak"), NAMED("parse"), DEEP);
	STACK(other_deep, NAMED("mmap"), NAMED("other"), NAMED("parse"), DEEP);
	STACK(by_other, NAMED("mmap"), NAMED("leak"), NAMED("load"), DEEP);
	STACK(main_before, NAMED("mmap"), NAMED("main"), OUTER);
	const struct mmt_frame other_main = {.function = "main", .raw_function = "main", .module = "other"};
	const struct mmt_frame *const main_after[] = {main_before[0], &other_main, main_before[2]};
	struct mmt_row before_rows[] = {FROM(1, leak_deep, 8192, 1)};
	struct mmt_row after_rows[] = {FROM(1, other_deep, 8192, 1)};
	struct mmt_report before = REPORT(before_rows, 1), after = REPORT(after_rows, 1);
	struct mmt_diff *diff = make_diff(&before, &after);

	ck_assert_uint_eq(diff->entry_count, 2);
	ck_assert_uint_eq(diff->uncertain_count, 0);
	ck_assert_uint_eq(diff->growth_bytes, 8192);
	mmt_diff_destroy(diff);

	/* One function with another caller: two rows, and its net. */
	after_rows[0].frames = by_other;
	diff = make_diff(&before, &after);
	ck_assert_uint_eq(diff->entry_count, 2);
	ck_assert_uint_eq(diff->uncertain_count, 0);
	ck_assert_uint_eq(diff->growth_bytes, 0);
	mmt_diff_destroy(diff);

	/* The main functions of two programs are two functions. */
	after_rows[0].frames = main_after;
	before_rows[0].frames = main_before;
	after_rows[0].frame_count = before_rows[0].frame_count = 3;
	diff = make_diff(&before, &after);
	ck_assert_uint_eq(diff->entry_count, 2);
	ck_assert_uint_eq(diff->uncertain_count, 0);
	mmt_diff_destroy(diff);
}
END_TEST

/* A function that maps memory for several callers is a wrapper: a fix in one does not hide a leak in another. */
START_TEST(growth_of_a_wrapper_is_that_of_its_callers)
{
	STACK(first, NAMED("mmap"), NAMED("wrapper"), NAMED("first"), OUTER);
	STACK(second, NAMED("mmap"), NAMED("wrapper"), NAMED("second"), OUTER);
	STACK(first_deeper, NAMED("mmap"), NAMED("wrapper"), NAMED("first"), NAMED("more"), OUTER);
	struct mmt_row before_rows[] = {FROM(1, first, 16384, 1), FROM(2, second, 8192, 1)};
	struct mmt_row after_rows[] = {FROM(1, first_deeper, 12288, 1), FROM(2, second, 12288, 1)};
	struct mmt_report before = REPORT(before_rows, 1), after = REPORT(after_rows, 1);
	struct mmt_diff *diff = make_diff(&before, &after);

	ck_assert_int_eq(diff->bytes, 0);
	ck_assert_uint_eq(diff->entry_count, 2);
	ck_assert_uint_eq(diff->uncertain_count, 1);
	ck_assert_uint_eq(diff->growth_bytes, 4096);
	mmt_diff_destroy(diff);
}
END_TEST

/* Rows with names; IDs of tasks differ between runs. */
START_TEST(names_of_rows)
{
	struct mmt_row before_rows[] = {{.id = 1, .name = "worker (7) / pool (8)", .unfreed_bytes = 4096}};
	struct mmt_row after_rows[] = {{.id = 1, .name = "worker (17) / pool (18)", .unfreed_bytes = 8192},
				       {.id = 2, .name = "worker (17) / main (17)", .unfreed_bytes = 4096}};
	struct mmt_report before = REPORT(before_rows, 1), after = REPORT(after_rows, 2);
	struct mmt_diff *diff;

	before.by = after.by = MMT_BY_PROCESS;
	before.then_by = after.then_by = MMT_BY_THREAD;
	diff = make_diff(&before, &after);
	ck_assert_uint_eq(diff->entry_count, 2);
	ck_assert_int_eq(diff->bytes, 8192);
	ck_assert_ptr_eq(diff->entries[0].before, &before_rows[0]);
	ck_assert_int_eq(diff->entries[0].bytes, 4096);
	ck_assert_int_eq(diff->entries[1].change, MMT_CHANGE_NEW);
	mmt_diff_destroy(diff);

	after.row_count = 1;
	/* Elsewhere, parentheses belong to the name. */
	before.by = after.by = MMT_BY_FUNCTION;
	before.then_by = after.then_by = MMT_BY_STACK;
	diff = make_diff(&before, &after);
	ck_assert_uint_eq(diff->entry_count, 2);
	before_rows[0].name = "program+0x10";
	after_rows[0].name = "program+0x20";
	mmt_diff_destroy(diff);
	diff = make_diff(&before, &after);
	ck_assert_uint_eq(diff->entry_count, 1);
	ck_assert_uint_eq(diff->entries[0].differing_frames, 1);
	mmt_diff_destroy(diff);
}
END_TEST

enum { MANY = 10000, MANY_DEPTH = 60 };

struct many_stacks {
	struct mmt_report report;
	struct mmt_row *rows;
	struct mmt_frame *frames;
	const struct mmt_frame **places;
	char (*names)[16];
};

/* Stacks of MANY_DEPTH frames: those outside are equal in all stacks, `own` inside are of this stack alone, and then
 * every stack has `extra` frames that are only in this report. */
static struct many_stacks make_many(size_t own, size_t extra, const char *extra_name)
{
	struct many_stacks many = {.rows = calloc(MANY, sizeof(*many.rows)),
				   .frames = calloc((size_t)MANY * MANY_DEPTH, sizeof(*many.frames)),
				   .places = calloc((size_t)MANY * MANY_DEPTH, sizeof(*many.places)),
				   .names = calloc((size_t)MANY * MANY_DEPTH, sizeof(*many.names))};

	ck_assert(many.rows && many.frames && many.places && many.names);
	for (size_t i = 0; i < MANY; i++) {
		for (size_t j = 0; j < MANY_DEPTH; j++) {
			size_t place = i * MANY_DEPTH + j;

			snprintf(many.names[place], sizeof(many.names[place]), "f%zu.%zu", j, j < own ? i : 0);
			many.frames[place] = (struct mmt_frame){
			    .kind = MMT_FRAME_NATIVE, .module = "program", .function = many.names[place]};
			if (j >= own && j < own + extra)
				many.frames[place].function = extra_name;
			many.places[place] = &many.frames[place];
		}
		many.rows[i] = (struct mmt_row){.id = (uint32_t)i + 1,
						.frames = many.places + i * MANY_DEPTH,
						.frame_count = MANY_DEPTH,
						.unfreed_bytes = 4096 * (MANY - i),
						.unfreed_count = 1};
	}
	many.report = (struct mmt_report){.rows = many.rows, .row_count = MANY, .end_ns = 1};
	return many;
}

static void free_many(struct many_stacks *many)
{
	free(many->rows);
	free(many->frames);
	free(many->places);
	free(many->names);
}

/* Comparing each stack with each takes minutes of CPU time; the kernel ends the test after 60 seconds. */
START_TEST(many_similar_stacks)
{
	const struct rlimit seconds = {60, RLIM_INFINITY};
	struct many_stacks before = make_many(2, 0, NULL), after = make_many(2, 1, NULL);
	struct mmt_diff *diff;

	ck_assert(!setrlimit(RLIMIT_CPU, &seconds));
	diff = make_diff(&before.report, &after.report);
	ck_assert_uint_eq(diff->same_count, MANY);
	ck_assert(!diff->search_limited);
	for (size_t i = 0; i < MANY; i++) {
		ck_assert_ptr_eq(diff->unchanged[i].before, &before.rows[i]);
		ck_assert_uint_eq(diff->unchanged[i].differing_frames, 1);
	}
	mmt_diff_destroy(diff);
	free_many(&before);
	free_many(&after);
}
END_TEST

/* All stacks are similar to all: the work has a limit, and the diff says so. */
START_TEST(hostile_stacks)
{
	const struct rlimit seconds = {60, RLIM_INFINITY};
	struct many_stacks before = make_many(0, 0, NULL), after = make_many(0, 0, NULL);
	struct mmt_diff *diff;

	ck_assert(!setrlimit(RLIMIT_CPU, &seconds));
	/* Each stack differs in its first and its last frame, so that all of it is compared. */
	for (size_t i = 0; i < MANY; i++) {
		snprintf(before.names[i * MANY_DEPTH], sizeof(before.names[0]), "b%zu", i);
		snprintf(after.names[i * MANY_DEPTH], sizeof(after.names[0]), "a%zu", i);
		before.frames[(i + 1) * MANY_DEPTH - 1].function = "outer before";
		after.frames[(i + 1) * MANY_DEPTH - 1].function = "outer after";
		before.rows[i].origin = after.rows[i].origin = 1;
	}
	diff = make_diff(&before.report, &after.report);
	ck_assert_uint_eq(diff->entry_count, 2 * MANY);
	ck_assert(diff->search_limited);
	mmt_diff_destroy(diff);
	free_many(&before);
	free_many(&after);
}
END_TEST

Suite *test_suite(void)
{
	Suite *suite = suite_create("diff");
	TCase *tcase = add_tcase(suite, "diff");

	tcase_set_timeout(tcase, 600);

	tcase_add_tests(
	    tcase, addresses_do_not_matter, reserved_memory_of_arenas, growth_between_recordings_of_one_process,
	    leaks_of_a_report_are_leaks_of_a_diff, every_kind_of_change, lost_calls_match_lost_calls,
	    commits_count_without_mappings, shrunk_comes_last, unnamed_code_is_matched_by_rank,
	    recordings_of_one_process_are_recognized, processes_of_one_name_pair_by_start, many_processes,
	    commands_are_compared_at_their_largest_sizes, short_recordings_have_no_rates, durations_are_no_growth,
	    ended_processes_count_in_both_recordings, growth_in_the_longer_time, names_identify_a_stack,
	    names_of_jit_code_can_contain_lines, build_ids_identify_frames_without_names,
	    inlined_functions_are_uncertain, other_arguments_are_uncertain, another_function_is_another_stack,
	    growth_of_a_wrapper_is_that_of_its_callers, names_of_rows, many_similar_stacks, hostile_stacks);
	return suite;
}
