// SPDX-License-Identifier: LGPL-2.1-or-later
/* Matching the stacks of two recordings. */
#include <check.h>

#include <mmtrace/diff.h>
#include <stdio.h>
#include <stdlib.h>
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
#define GROUP(number, stack, bytes)                                                                                    \
	{                                                                                                              \
		.id = number, .frames = stack, .frame_count = sizeof(stack) / sizeof(*stack), .unfreed_bytes = bytes,  \
		.unfreed_count = (bytes) / 4096, .resident_bytes = MMT_UNKNOWN                                         \
	}
#define REPORT(list, seconds)                                                                                          \
	{                                                                                                              \
		.input = "file", .start_ns = 0, .end_ns = (seconds)*1000000000ULL, .groups = list,                     \
		.group_count = sizeof(list) / sizeof(*list)                                                            \
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
	struct mmt_group before_groups[] = {GROUP(1, leak_before, 8192)};
	struct mmt_group after_groups[] = {GROUP(1, leak_after, 40960)};
	struct mmt_report before = REPORT(before_groups, 2), after = REPORT(after_groups, 4);
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

START_TEST(every_kind_of_change)
{
	struct mmt_group before_groups[] = {GROUP(1, cache, 16384), GROUP(2, leak_before, 8192), GROUP(3, other, 0)};
	struct mmt_group after_groups[] = {GROUP(1, other, 12288), GROUP(2, leak_after, 8192)};
	struct mmt_report before = REPORT(before_groups, 1), after = REPORT(after_groups, 1);
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
	struct mmt_group before_groups[] = {{.id = 1, .unfreed_bytes = 8192}, {.id = 2, .unfreed_bytes = 4096}};
	struct mmt_group after_groups[] = {{.id = 1, .unfreed_bytes = 8192}, {.id = 2, .unfreed_bytes = 4096}};
	struct mmt_report before = REPORT(before_groups, 1), after = REPORT(after_groups, 1);
	struct mmt_diff *diff;

	before_groups[0].lost = after_groups[1].lost = true;
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
	struct mmt_group before_groups[] = {GROUP(1, cache, 65536), GROUP(2, leak_before, 0)};
	struct mmt_group after_groups[] = {GROUP(1, cache, 65536), GROUP(2, leak_after, 0), GROUP(3, other, 0)};
	struct mmt_report before = REPORT(before_groups, 1), after = REPORT(after_groups, 1);
	struct mmt_diff *diff;

	before_groups[1].committed_bytes = 4096;
	after_groups[1].committed_bytes = 8192;
	after_groups[1].committed_before_bytes = 16384;
	after_groups[2].committed_bytes = 4096;
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
	struct mmt_group before_groups[] = {GROUP(1, cache, 16384), GROUP(2, leak_before, 8192)};
	struct mmt_group after_groups[] = {GROUP(1, leak_after, 12288), GROUP(2, cache, 4096)};
	struct mmt_report before = REPORT(before_groups, 1), after = REPORT(after_groups, 1);
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
	struct mmt_group before_groups[] = {GROUP(1, jit_a, 16384), GROUP(2, jit_b, 8192)};
	struct mmt_group after_groups[] = {GROUP(1, jit_c, 20480)};
	struct mmt_report before = REPORT(before_groups, 1), after = REPORT(after_groups, 1);
	struct mmt_diff *diff = make_diff(&before, &after);

	ck_assert_uint_eq(diff->entry_count, 2);
	ck_assert_ptr_eq(diff->entries[0].before, &before_groups[0]);
	ck_assert_int_eq(diff->entries[0].bytes, 4096);
	ck_assert_ptr_eq(diff->entries[1].before, &before_groups[1]);
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
	struct mmt_group before_groups[] = {GROUP(1, leak_before, 40960), GROUP(2, other, 4096)};
	struct mmt_group after_groups[] = {GROUP(1, leak_after, 8192), GROUP(2, cache, 4096)};
	struct mmt_report before = REPORT(before_groups, 20), after = REPORT(after_groups, 40);
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
	struct mmt_group groups[] = {GROUP(1, leak_before, 40960)};
	struct mmt_report before = REPORT(groups, 20), after = REPORT(groups, 40);
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
	struct mmt_group groups[] = {GROUP(1, leak_before, 40960)};
	struct mmt_report before = REPORT(groups, 10), after = REPORT(groups, 9);
	struct mmt_diff *diff = make_diff(&before, &after);

	ck_assert(!diff->rated);
	mmt_diff_destroy(diff);
	diff = make_diff(&before, &before);
	ck_assert(diff->rated);
	mmt_diff_destroy(diff);
}
END_TEST

Suite *test_suite(void)
{
	Suite *suite = suite_create("diff");
	TCase *tcase = add_tcase(suite, "diff");

	tcase_add_tests(tcase, addresses_do_not_matter, growth_between_recordings_of_one_process, every_kind_of_change,
			lost_calls_match_lost_calls, commits_count_without_mappings, shrunk_comes_last,
			unnamed_code_is_matched_by_rank, recordings_of_one_process_are_recognized, many_processes,
			short_recordings_have_no_rates);
	return suite;
}
