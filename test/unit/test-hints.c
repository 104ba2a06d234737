// SPDX-License-Identifier: LGPL-2.1-or-later
#include <check.h>
#include <string.h>

#include "analysis/report/report-build.h"
#include "support/suite.h"

#define MIB (1ull << 20)
#define SEVERAL ARENAS_OF_SEVERAL_THREADS

static struct mmt_row make_row(enum mmt_pattern pattern, uint64_t bytes, uint64_t count)
{
	struct mmt_row row = {.pattern = pattern,
			      .unfreed_bytes = bytes,
			      .committed_bytes = bytes,
			      .unfreed_count = count,
			      .allocated_count = count};

	row.class_bytes[pattern == MMT_PATTERN_SHM ? MMT_CLASS_SHM : MMT_CLASS_FILE] = bytes;
	return row;
}

static void assert_hint(const struct mmt_row *row, uint64_t live_threads, const char *words)
{
	const char *hint = hints_of_row(row, live_threads, SEVERAL);

	ck_assert_ptr_nonnull(hint);
	ck_assert_msg(strstr(hint, words), "\"%s\" is not in: %s", words, hint);
}

START_TEST(no_hint_without_a_cause)
{
	struct mmt_row row = make_row(MMT_PATTERN_NONE, 64 * MIB, 64);

	ck_assert_ptr_null(hints_of_row(&row, 1, SEVERAL));
}
END_TEST

START_TEST(small_rows_get_no_hint)
{
	static const enum mmt_pattern patterns[] = {MMT_PATTERN_ARENA,	    MMT_PATTERN_HEAP,
						    MMT_PATTERN_GC_HEAP,    MMT_PATTERN_DIRECT_BUFFER,
						    MMT_PATTERN_JVM_NATIVE, MMT_PATTERN_ARRAY_BUFFER};

	for (size_t i = 0; i < sizeof(patterns) / sizeof(*patterns); i++) {
		struct mmt_row row = make_row(patterns[i], MIB - 1, 1);

		ck_assert_ptr_null(hints_of_row(&row, 1, SEVERAL));
		row.committed_before_bytes = 1;
		ck_assert_ptr_nonnull(hints_of_row(&row, 1, SEVERAL));
	}
}
END_TEST

/* A limit of arenas does not help against the memory of one. */
START_TEST(one_arena_has_other_advice)
{
	struct mmt_row row = make_row(MMT_PATTERN_ARENA, 64 * MIB, 1);

	ck_assert_ptr_nonnull(strstr(hints_of_row(&row, 1, SEVERAL), "MALLOC_ARENA_MAX"));
	ck_assert_ptr_null(strstr(hints_of_row(&row, 1, ARENAS_OF_ONE_THREAD), "MALLOC_ARENA_MAX"));
	ck_assert_ptr_nonnull(strstr(hints_of_row(&row, 1, ARENAS_OF_ONE_THREAD), "heap profiler"));
	ck_assert_ptr_null(strstr(hints_of_row(&row, 1, ARENAS_LIMITED), "try MALLOC_ARENA_MAX"));
	ck_assert_ptr_nonnull(strstr(hints_of_row(&row, 1, ARENAS_LIMITED), "heap profiler"));
}
END_TEST

START_TEST(few_mappings_get_no_hint)
{
	static const enum mmt_pattern patterns[] = {MMT_PATTERN_FILE, MMT_PATTERN_MEMFD, MMT_PATTERN_SHM,
						    MMT_PATTERN_AIO};

	for (size_t i = 0; i < sizeof(patterns) / sizeof(*patterns); i++) {
		struct mmt_row row = make_row(patterns[i], 32 * MIB, 8), few = row, busy = row, other = row;

		ck_assert_ptr_nonnull(hints_of_row(&row, 1, SEVERAL));
		few.unfreed_count = 7;
		ck_assert_ptr_null(hints_of_row(&few, 1, SEVERAL));
		busy.freed_count = 8;
		ck_assert_ptr_null(hints_of_row(&busy, 1, SEVERAL));
		/* The stack's other mappings are most of it. */
		other.unfreed_bytes = 64 * MIB;
		ck_assert_ptr_null(hints_of_row(&other, 1, SEVERAL));
	}
}
END_TEST

/* Every program loads libraries. */
START_TEST(little_code_gets_no_hint)
{
	struct mmt_row few = make_row(MMT_PATTERN_CODE, 31 * MIB, 31), many = few, large = few;

	ck_assert_ptr_null(hints_of_row(&few, 1, SEVERAL));
	many.unfreed_count = 32;
	ck_assert_ptr_nonnull(hints_of_row(&many, 1, SEVERAL));
	large.committed_bytes = 32 * MIB;
	ck_assert_ptr_nonnull(hints_of_row(&large, 1, SEVERAL));
}
END_TEST

START_TEST(threads_that_run_or_finished)
{
	struct mmt_row row = make_row(MMT_PATTERN_THREAD_STACK, 48 * 8 * MIB, 48);
	struct mmt_row few = make_row(MMT_PATTERN_THREAD_STACK, 7 * 8 * MIB, 7);
	struct mmt_row cached = make_row(MMT_PATTERN_THREAD_STACK, 5 * MIB * 8, 20);

	assert_hint(&row, 1, "pthread_join()");
	assert_hint(&row, 49, "still run");
	assert_hint(&row, 40, "glibc caches");
	/* 20 small stacks, which glibc may all cache */
	assert_hint(&cached, 1, "glibc caches");
	ck_assert_ptr_null(hints_of_row(&few, 1, SEVERAL));
	/* The mappings of a function are not all stacks. */
	row.name = "start (server)";
	assert_hint(&row, 1, "glibc caches");
}
END_TEST

/* The command is the last sentence, and fits on a line with any PID. */
static void assert_next(const char *hint)
{
	const char *next = strstr(hint, "Next: ");

	if (!next)
		return;
	ck_assert_msg(!strncmp(next - 2, ". ", 2) && next[strlen("Next: ")] == '`' && !strstr(next + 1, ". "), "%s",
		      hint);
	ck_assert_msg(strlen(next) + strlen("1234567") - strlen("PID") <= 80, "%s", hint);
}

START_TEST(tools_of_the_runtime)
{
	static const struct {
		const char *module, *function, *words;
		enum mmt_pattern pattern;
	} cases[] = {
	    {"libjvm.so", "os::commit_memory", "jcmd PID GC.heap_info", MMT_PATTERN_GC_HEAP},
	    {"libcoreclr.so", NULL, "dotnet-gcdump", MMT_PATTERN_GC_HEAP},
	    {"libclrgc.so", NULL, "dotnet-gcdump", MMT_PATTERN_GC_HEAP},
	    {"node", "v8::internal::Heap::Grow", "node inspect -p PID", MMT_PATTERN_GC_HEAP},
	    {"libnode.so.108", "v8::internal::Heap::Grow", "node inspect -p PID", MMT_PATTERN_GC_HEAP},
	    /* Its signal would kill Chromium. */
	    {"chromium", "v8::internal::Heap::Grow", "two heap snapshots", MMT_PATTERN_GC_HEAP},
	    {"node", "v8::internal::BackingStore::Allocate", "node inspect -p PID", MMT_PATTERN_ARRAY_BUFFER},
	    {"chromium", "v8::internal::BackingStore::Allocate", "a heap snapshot", MMT_PATTERN_ARRAY_BUFFER},
	    {"node_exporter", "runtime.sysMap", "go tool pprof", MMT_PATTERN_GC_HEAP},
	    {"server", "runtime.sysMap", "go tool pprof", MMT_PATTERN_GC_HEAP},
	    {"something", NULL, "a heap dump", MMT_PATTERN_GC_HEAP},
	    {"python3.11", "_PyObject_ArenaMmap", "tracemalloc", MMT_PATTERN_PYTHON},
	    {"libjemalloc.so.2", NULL, "jeprof", MMT_PATTERN_HEAP},
	    {"libtcmalloc_minimal.so.4", NULL, "libtcmalloc_minimal writes none", MMT_PATTERN_HEAP},
	    {"libmimalloc.so.2", NULL, "MIMALLOC_RESET_DELAY=0", MMT_PATTERN_HEAP},
	    {"libc.so.6", "sbrk", "heaptrack", MMT_PATTERN_HEAP},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		const struct mmt_frame call = {.module = "libc.so.6", .function = "mmap"};
		const struct mmt_frame frame = {.module = cases[i].module, .function = cases[i].function};
		const struct mmt_frame *const frames[] = {&call, &frame};
		struct mmt_row row = make_row(cases[i].pattern, 2 * MIB, 1);

		row.frames = frames;
		row.frame_count = 2;
		assert_hint(&row, 1, cases[i].words);
		assert_next(hints_of_row(&row, 1, SEVERAL));
	}
}
END_TEST

START_TEST(growth_before)
{
	struct mmt_growth_part part = {.place = MMT_GROWTH_BEFORE, .bytes = 2 * MIB};

	ck_assert_ptr_nonnull(strstr(hints_of_growth(&part, 0, SEVERAL), "--faults=sampled"));
	ck_assert_ptr_nonnull(strstr(hints_of_growth(&part, 0, SEVERAL), "touched without a system call"));
	ck_assert_ptr_nonnull(strstr(hints_of_growth(&part, HINTS_CALLS_UNKNOWN, SEVERAL), "may have mapped it"));
	ck_assert_ptr_null(strstr(hints_of_growth(&part, HINTS_BETWEEN, SEVERAL), "--faults"));
	ck_assert_ptr_nonnull(strstr(hints_of_growth(&part, MIB, SEVERAL), "after mprotect made it writable"));
	ck_assert_ptr_nonnull(strstr(hints_of_growth(&part, MIB - 1, SEVERAL), "touched without a system call"));
	ck_assert_ptr_null(strstr(hints_with_faults(hints_of_growth(&part, 0, SEVERAL), false), "--faults"));
	/* A started program needs no hint. */
	part.place = MMT_GROWTH_KERNEL;
	ck_assert_ptr_null(hints_of_growth(&part, 0, SEVERAL));
	part.place = MMT_GROWTH_MADE;
	ck_assert_ptr_null(hints_of_growth(&part, 0, SEVERAL));
	part.place = MMT_GROWTH_COMMITTED;
	ck_assert_ptr_null(hints_of_growth(&part, 0, SEVERAL));
	part.place = MMT_GROWTH_BEFORE;
	part.pattern = MMT_PATTERN_ARENA;
	ck_assert_ptr_nonnull(strstr(hints_of_growth(&part, 0, SEVERAL), "try MALLOC_ARENA_MAX"));
	ck_assert_ptr_null(strstr(hints_of_growth(&part, 0, ARENAS_LIMITED), "try MALLOC_ARENA_MAX"));
	part.pattern = MMT_PATTERN_GC_HEAP;
	part.runtime = "Java";
	ck_assert_ptr_nonnull(strstr(hints_of_growth(&part, 0, SEVERAL), "jcmd"));
	part.runtime = "Go";
	ck_assert_ptr_nonnull(strstr(hints_of_growth(&part, 0, SEVERAL), "pprof"));
	part.pattern = MMT_PATTERN_FILE;
	ck_assert_ptr_nonnull(strstr(hints_of_growth(&part, 0, SEVERAL), "not a leak"));
	part.copied_bytes = MIB;
	ck_assert_ptr_nonnull(strstr(hints_of_growth(&part, 0, SEVERAL), "not a leak"));
	part.copied_bytes = MIB + 1;
	ck_assert_ptr_null(strstr(hints_of_growth(&part, 0, SEVERAL), "not a leak"));
	ck_assert_ptr_nonnull(strstr(hints_of_growth(&part, 0, SEVERAL), "memory of its own"));
	part.bytes = MIB - 1;
	ck_assert_ptr_null(hints_of_growth(&part, 0, SEVERAL));
	part.bytes = -2 * (int64_t)MIB;
	ck_assert_ptr_null(hints_of_growth(&part, 0, SEVERAL));
}
END_TEST

static const char *hint_of_huge(uint64_t zero_bytes, uint64_t memory_bytes)
{
	const struct mmt_huge_pages huge = {.bytes = 64 * MIB, .sampled_bytes = 4 * MIB, .zero_bytes = zero_bytes};

	return hints_of_huge_pages(&huge, memory_bytes, false);
}

START_TEST(huge_pages_that_are_mostly_empty)
{
	struct mmt_huge_pages huge = {.bytes = 64 * MIB, .sampled_bytes = MIB / 2, .zero_bytes = 60 * MIB};

	ck_assert_ptr_nonnull(hints_of_huge_pages(&huge, 64 * MIB, false));
	/* Few or no huge pages were sampled, or few are used. */
	huge.sampled_bytes--;
	ck_assert_ptr_null(hints_of_huge_pages(&huge, 64 * MIB, false));
	huge.sampled_bytes = 0;
	huge.zero_bytes = MMT_UNKNOWN;
	ck_assert_ptr_null(hints_of_huge_pages(&huge, 64 * MIB, false));
	huge = (struct mmt_huge_pages){.bytes = 9 * MIB, .sampled_bytes = MIB, .zero_bytes = 8 * MIB - 1};
	ck_assert_ptr_null(hints_of_huge_pages(&huge, 9 * MIB, false));
	/* Densely used, and a small part of the memory. */
	ck_assert_ptr_null(hint_of_huge(0, 64 * MIB));
	ck_assert_ptr_null(hint_of_huge(16 * MIB - 1, 64 * MIB));
	ck_assert_ptr_nonnull(hint_of_huge(16 * MIB, 64 * MIB));
	ck_assert_ptr_nonnull(hint_of_huge(60 * MIB, 960 * MIB));
	ck_assert_ptr_null(hint_of_huge(60 * MIB, 1000 * MIB));
}
END_TEST

START_TEST(source_of_huge_pages)
{
	const struct mmt_huge_pages huge = {.bytes = 64 * MIB, .sampled_bytes = 4 * MIB, .zero_bytes = 60 * MIB};

	ck_assert_ptr_nonnull(strstr(hints_of_huge_pages(&huge, 0, true), "echo madvise"));
	ck_assert_ptr_nonnull(strstr(hints_of_huge_pages(&huge, 0, false), "MADV_HUGEPAGE"));
}
END_TEST

Suite *test_suite(void)
{
	Suite *suite = suite_create("hints");
	TCase *tests = add_tcase(suite, "hints");

	tcase_add_tests(tests, no_hint_without_a_cause, small_rows_get_no_hint, one_arena_has_other_advice,
			few_mappings_get_no_hint, little_code_gets_no_hint, threads_that_run_or_finished,
			tools_of_the_runtime, growth_before, huge_pages_that_are_mostly_empty, source_of_huge_pages);
	return suite;
}
