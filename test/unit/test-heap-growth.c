// SPDX-License-Identifier: LGPL-2.1-or-later
/* What reports show of the censuses of malloc heaps. */
#include <check.h>
#include <mmtrace/output.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "support/report-file.h"
#include "support/suite.h"
#include "trace/sections/sections.h"

#define SECOND UINT64_C(1000000000)
#define MEBIBYTE (UINT64_C(1) << 20)
#define PID 42
#define CHILD 43
#define HEAP 0x100000000u

#define GROUP(kind, size, number, name_, ...)                                                                          \
	{                                                                                                              \
		.content = (kind), .smallest_bytes = (size), .largest_bytes = (size), .count = (number),               \
		.bytes = (uint64_t)(size) * (number), .name = (char[]){name_}, __VA_ARGS__                             \
	}
#define CENSUS(process, time, mapped, in_use, ...)                                                                     \
	{                                                                                                              \
		.pid = (process), .time_ns = (time), .allocator = MMT_ALLOCATOR_GLIBC, .result = MMT_HEAP_COMPLETE,    \
		.allocator_name = (char[]){"glibc 2.36"}, .mapped_bytes = (mapped), .walked_bytes = (mapped),          \
		.in_use_low = (in_use), .in_use_high = (in_use), __VA_ARGS__                                           \
	}
#define GROUPS(...)                                                                                                    \
	.groups = (struct mmt_heap_group[]){__VA_ARGS__},                                                              \
	.group_count = sizeof((struct mmt_heap_group[]){__VA_ARGS__}) / sizeof(struct mmt_heap_group)

static struct recording_builder *begin(void)
{
	const struct event_mapping heap = {.start = HEAP,
					   .length = 1024 * MEBIBYTE,
					   .protection = PROT_READ | PROT_WRITE,
					   .flags = MAP_PRIVATE | MAP_ANONYMOUS,
					   .path = "[heap]"};
	struct recording_builder *builder = builder_create(report_file_path());

	builder_comm(builder, 900, PID, PID, "server");
	builder_snapshot(builder, SNAPSHOT_START, 1000, PID, &heap, 1);
	return builder;
}

static void add_pages(struct recording_builder *builder, uint64_t end_bytes)
{
	struct recording_residency residency = {0};

	for (unsigned i = 0; i < 2; i++) {
		const struct resident_run run = {HEAP, HEAP + (i ? end_bytes : 26 * MEBIBYTE)};
		struct process_residency *process =
		    i ? vector_append(&residency.processes) : vector_append(&residency.at_start);

		ck_assert_ptr_nonnull(process);
		process->pid = PID;
		process->resident_bytes = run.end - run.start;
		ck_assert(vector_push(&process->runs, run));
	}
	report_file_add_residency(builder, &residency);
}

/* `end_bytes`: RSS, all of it in the heap. */
static void end(struct recording_builder *builder, struct mmt_heap_census *censuses, size_t count, uint64_t end_bytes)
{
	const struct heap_censuses heaps = {.items = {.items = censuses, .count = count}};
	struct buffer buffer;

	builder_mmap_exit(builder, 5 * SECOND, PID, PID, HEAP - 4096, 4096, 0x1234);
	for (unsigned i = 0; i <= 20; i++)
		builder_note(builder, 1001 + i * SECOND, PID, NOTE_RESIDENT, i < 5 ? 26 * MEBIBYTE : end_bytes, i + 1);
	add_pages(builder, end_bytes);
	buffer_init(&buffer, 1 << 20);
	ck_assert_ptr_null(section_write(&section_heap, &heaps, &buffer));
	builder_section(builder, FEATURE_MMTRACE_HEAP, buffer.data, buffer.size);
	buffer_deinit(&buffer);
	builder_finish(builder, 21 * SECOND);
}

typedef struct mmt_error *(*writer_fn)(const struct mmt_report *report, const struct mmt_text_options *options,
				       FILE *stream);

static char *render(const struct mmt_report *report, writer_fn write)
{
	const struct mmt_text_options options = {.stack_frames = SIZE_MAX};
	char *text = NULL;
	size_t size;
	FILE *stream = open_memstream(&text, &size);

	ck_assert_ptr_null(write(report, &options, stream));
	ck_assert_int_eq(fclose(stream), 0);
	return text;
}

static void assert_has(const char *text, const char *part)
{
	ck_assert_msg(strstr(text, part) != NULL, "no '%s' in %s", part, text);
}

/* The report on one process must have this line. */
static struct mmt_report *report_with(struct mmt_heap_census *censuses, size_t count, const char *line)
{
	struct mmt_report *report;
	char *text;

	end(begin(), censuses, count, censuses[count - 1].mapped_bytes);
	report = report_file_report(NULL);
	text = render(report, mmt_report_write_text);
	assert_has(text, line);
	free(text);
	return report;
}

#define REPORT_WITH(line, ...)                                                                                         \
	report_with((struct mmt_heap_census[]){__VA_ARGS__},                                                           \
		    sizeof((struct mmt_heap_census[]){__VA_ARGS__}) / sizeof(struct mmt_heap_census), line)

#define FIRST CENSUS(PID, 1100, 26 * MEBIBYTE, 26 * MEBIBYTE - 4096, .top_bytes = 4096)

START_TEST(objects_that_are_kept)
{
	struct mmt_report *report = REPORT_WITH(
	    "\n  malloc heap +26.55 MiB: in use +26.55 MiB, free 0 B: 29,998 more app::Session "
	    "(sizeof 905 to 920, blocks of 928 to 944 bytes).\n",
	    CENSUS(PID, 1100, 26 * MEBIBYTE, 26 * MEBIBYTE - 4096, .top_bytes = 4096,
		   GROUPS(GROUP(MMT_HEAP_TYPE, 928, 2, "N3app7SessionE"), GROUP(MMT_HEAP_TYPE, 176, 6000, "5Cache"))),
	    CENSUS(PID, 20 * SECOND, 26 * MEBIBYTE + 29998 * 928 + 160, 26 * MEBIBYTE + 29998 * 928 + 160 - 4096,
		   .top_bytes = 4096,
		   GROUPS(GROUP(MMT_HEAP_TYPE, 928, 29990, "N3app7SessionE"),
			  GROUP(MMT_HEAP_TYPE, 944, 10, "N3app7SessionE"), GROUP(MMT_HEAP_TYPE, 176, 6000, "5Cache"))));
	const struct mmt_heap *heap = report->heaps;
	char *json = render(report, mmt_report_write_json);

	ck_assert_uint_eq(report->heap_count, 1);
	ck_assert_int_eq(heap->process->pid, PID);
	ck_assert_uint_eq(heap->kind_count, 2);
	ck_assert_str_eq(heap->kinds[0].name, "app::Session");
	ck_assert_uint_eq(heap->kinds[0].start_count, 2);
	ck_assert_uint_eq(heap->kinds[0].end_count, 30000);
	ck_assert_str_eq(heap->kinds[1].name, "Cache");
	ck_assert_int_eq(heap->verdict, MMT_HEAP_NO_VERDICT);
	assert_has(json, "\"name\": \"app::Session\"");
	free(json);
	ck_assert_int_eq(report->growth.parts[0].pattern, MMT_PATTERN_HEAP);
	assert_has(report->growth.parts[0].hint, "The line \"malloc heap\" shows");
	mmt_report_destroy(report);
}
END_TEST

START_TEST(free_memory_that_is_held_apart)
{
	mmt_report_destroy(REPORT_WITH("\n  malloc heap +200.0 MiB: in use +7.00 MiB, free +193.0 MiB: fragmentation; "
				       "4,007 blocks of 512 bytes keep "
				       "it apart; malloc_trim(0) gives back at most 150.0 MiB.\n",
				       FIRST,
				       CENSUS(PID, 20 * SECOND, 226 * MEBIBYTE, 33 * MEBIBYTE - 4096, .top_bytes = 4096,
					      .free_bytes = 193 * MEBIBYTE, .trimmable_bytes = 150 * MEBIBYTE,
					      GROUPS(GROUP(MMT_HEAP_UNKNOWN, 512, 4010, "", .after_free_count = 4007,
							   .after_free_bytes = 193 * MEBIBYTE),
						     GROUP(MMT_HEAP_TEXT, 64, 4010, "")))));
}
END_TEST

START_TEST(trends)
{
	const enum mmt_heap_verdict verdicts[] = {MMT_HEAP_IN_USE_GROWS, MMT_HEAP_NO_VERDICT, MMT_HEAP_FREE_GROWS};
	struct mmt_heap_census steady[3] = {FIRST, FIRST, FIRST};

	for (unsigned i = 0; i < 3; i++) {
		struct mmt_heap_census censuses[4] = {FIRST, FIRST, FIRST, FIRST};
		struct mmt_report *report;

		for (unsigned j = 1; j < 4; j++) {
			censuses[j].time_ns = j * 5 * SECOND;
			censuses[j].walked_bytes = censuses[j].mapped_bytes += j * 10 * MEBIBYTE;
			*(i == 2 ? &censuses[j].free_bytes : &censuses[j].in_use_high) += j * 10 * MEBIBYTE;
			censuses[j].in_use_low = censuses[j].in_use_high;
		}
		if (i == 1)
			censuses[2].in_use_low = censuses[0].in_use_low;
		report = report_with(censuses, 4,
				     i == 0   ? "; in use grew in each of 4 readings: a leak, or a cache that fills."
				     : i == 2 ? "; free grew in each of 4 readings."
					      : "in use +30.00 MiB");
		ck_assert_int_eq(report->heaps->verdict, verdicts[i]);
		mmt_report_destroy(report);
	}
	steady[1].time_ns = 10 * SECOND;
	steady[2].time_ns = 20 * SECOND;
	mmt_report_destroy(report_with(steady, 3, "; level from the first of 3 readings on."));
}
END_TEST

START_TEST(near_sizes_are_one_kind)
{
	struct mmt_report *report =
	    REPORT_WITH("2,000 more blocks of 2,064 to 4,080 bytes with text", FIRST,
			CENSUS(PID, 20 * SECOND, 36 * MEBIBYTE, 36 * MEBIBYTE - 4096, .top_bytes = 4096,
			       GROUPS(GROUP(MMT_HEAP_TEXT, 2064, 1000, ""), GROUP(MMT_HEAP_TEXT, 4080, 1000, ""),
				      GROUP(MMT_HEAP_UNKNOWN, 3008, 900, ""), GROUP(MMT_HEAP_UNKNOWN, 2064, 10, ""),
				      GROUP(MMT_HEAP_UNKNOWN, 2560, 10, ""),
				      GROUP(MMT_HEAP_POINTER, 96, 10, "/usr/lib/libz.so", .offset = 0x1000))));
	const struct mmt_heap *heap = report->heaps;

	ck_assert_uint_eq(heap->kind_count, 4);
	ck_assert_uint_eq(heap->kinds[1].smallest_bytes, 3008);
	ck_assert_uint_eq(heap->kinds[1].largest_bytes, 3008);
	ck_assert_uint_eq(heap->kinds[1].end_count, 900);
	ck_assert_uint_eq(heap->kinds[2].end_count, 20);
	mmt_report_destroy(report);
}
END_TEST

START_TEST(a_table_that_grew)
{
	mmt_report_destroy(REPORT_WITH(
	    ": one block of 20.00 MiB (was 10.00 MiB), such as a vector or hash table that grew.\n",
	    CENSUS(PID, 1100, 26 * MEBIBYTE, 26 * MEBIBYTE, GROUPS(GROUP(MMT_HEAP_UNKNOWN, 10 * MEBIBYTE, 1, ""))),
	    CENSUS(PID, 20 * SECOND, 36 * MEBIBYTE, 36 * MEBIBYTE,
		   GROUPS(GROUP(MMT_HEAP_UNKNOWN, 20 * MEBIBYTE, 1, "")))));
}
END_TEST

START_TEST(blocks_that_moved_into_the_heap)
{
	mmt_report_destroy(
	    REPORT_WITH("; blocks with mappings of their own -10.00 MiB, which may be in the heap now.\n",
			CENSUS(PID, 1100, 26 * MEBIBYTE, 26 * MEBIBYTE, .mmapped_bytes = 10 * MEBIBYTE),
			CENSUS(PID, 20 * SECOND, 36 * MEBIBYTE, 36 * MEBIBYTE)));
}
END_TEST

START_TEST(heaps_read_in_part)
{
	struct mmt_heap_census censuses[] = {FIRST, CENSUS(PID, 20 * SECOND, 226 * MEBIBYTE, 100 * MEBIBYTE,
							   GROUPS(GROUP(MMT_HEAP_UNKNOWN, MEBIBYTE, 100, "")))};

	censuses[1].result = MMT_HEAP_SAMPLED;
	censuses[1].walked_bytes = 113 * MEBIBYTE;
	censuses[1].in_use_high = 213 * MEBIBYTE;
	mmt_report_destroy(
	    report_with(censuses, 2, ": in use +74.00 MiB to +187.0 MiB, free -4.00 KiB; 50 % of it was read."));
	/* One reading: the part that was not read is either in use or free, too. */
	mmt_report_destroy(report_with(
	    &censuses[1], 1, "\n  malloc heap: 100.0 MiB to 213.0 MiB in use, 0 B free; 50 % of it was read.\n"));
}
END_TEST

START_TEST(what_is_not_known)
{
	struct mmt_heap_census census =
	    CENSUS(PID, 20 * SECOND, 36 * MEBIBYTE, 36 * MEBIBYTE - 4096, .top_bytes = 4096);
	struct mmt_report *report;

	/* One census shows sizes, but no growth, and replaces no advice. */
	report = report_with(&census, 1, "\n  malloc heap: 36.00 MiB in use, 4.00 KiB free.\n");
	ck_assert_ptr_null(report->heaps->start);
	assert_has(report->growth.parts[0].hint, "Only a heap profiler");
	mmt_report_destroy(report);
	census.result = MMT_HEAP_NOT_WALKED;
	census.allocator = MMT_ALLOCATOR_OTHER;
	census.allocator_name = (char[]){"jemalloc"};
	mmt_report_destroy(report_with(&census, 1, "\n  malloc heap not read: its blocks are those of jemalloc"));
	census.allocator = MMT_ALLOCATOR_GLIBC;
	census.result = MMT_HEAP_UNREADABLE;
	mmt_report_destroy(report_with(&census, 1, "\n  malloc heap not read: this was not permitted.\n"));
}
END_TEST

START_TEST(programs_that_start)
{
	struct mmt_heap_census censuses[] = {FIRST, CENSUS(CHILD, 15 * SECOND, 50 * MEBIBYTE, 50 * MEBIBYTE),
					     CENSUS(PID, 20 * SECOND, 27 * MEBIBYTE, 27 * MEBIBYTE)};

	for (unsigned execs = 0; execs < 2; execs++) {
		struct recording_builder *builder = begin();
		struct mmt_report *report;
		const struct mmt_heap *heap;

		builder_fork(builder, 6 * SECOND, CHILD, CHILD, PID, PID);
		builder_new_task(builder, 6 * SECOND + 1, PID, PID, CHILD, 0);
		if (execs)
			builder_exec(builder, 7 * SECOND, CHILD, CHILD, "job");
		end(builder, censuses, 3, 27 * MEBIBYTE);
		report = report_file_report(NULL);
		ck_assert_uint_eq(report->heap_count, 2);
		/* A new program has all of its heap since it started; a fork has inherited some, so its growth is not
		 * known. */
		heap = &report->heaps[execs ? 0 : 1];
		ck_assert_int_eq(heap->process->pid, CHILD);
		ck_assert_int_eq(heap->start != NULL, (int)execs);
		heap = &report->heaps[execs ? 1 : 0];
		ck_assert_int_eq(heap->process->pid, PID);
		ck_assert_uint_eq(heap->start->mapped_bytes, 26 * MEBIBYTE);
		mmt_report_destroy(report);
	}
}
END_TEST

/* Blocks that point into mappings without a path are distinguished by nothing but the offset. */
START_TEST(modules_without_a_name)
{
	struct mmt_report *report = REPORT_WITH(
	    "\n  malloc heap +2.75 MiB: ", FIRST,
	    CENSUS(PID, 20 * SECOND, 26 * MEBIBYTE + 30000 * 96, 26 * MEBIBYTE + 30000 * 96 - 4096, .top_bytes = 4096,
		   GROUPS(GROUP(MMT_HEAP_POINTER, 96, 10000, "", .offset = 0x1000),
			  GROUP(MMT_HEAP_POINTER, 96, 10000, "", .offset = 0x2000),
			  GROUP(MMT_HEAP_POINTER, 96, 10000, "/usr/lib/libz.so", .offset = 0x1000))));

	ck_assert_uint_eq(report->heaps[0].kind_count, 3);
	ck_assert_ptr_null(report->heaps[0].kinds[0].name);
	ck_assert_ptr_null(report->heaps[0].kinds[1].name);
	ck_assert_str_eq(report->heaps[0].kinds[2].name, "/usr/lib/libz.so");
	mmt_report_destroy(report);
}
END_TEST

/* Children for requests end before their heaps are read. */
START_TEST(heaps_of_processes_that_ended)
{
	enum { CHILDREN = 5 };
	struct recording_builder *builder = begin();
	struct mmt_heap_census censuses[CHILDREN + 1] = {FIRST};
	char no_allocator[] = "";
	struct mmt_report *report;
	char *text;

	for (int i = 0; i < CHILDREN; i++) {
		int32_t pid = CHILD + i;

		censuses[i + 1] = (struct mmt_heap_census){
		    .pid = pid, .time_ns = 7 * SECOND, .result = MMT_HEAP_ENDED, .allocator_name = no_allocator};
		builder_fork(builder, 6 * SECOND, pid, pid, PID, PID);
		builder_new_task(builder, 6 * SECOND + 1, PID, PID, pid, 0);
	}
	for (int i = 0; i < CHILDREN; i++)
		builder_exit(builder, 8 * SECOND, CHILD + i, CHILD + i);
	end(builder, censuses, CHILDREN + 1, 27 * MEBIBYTE);
	report = report_file_report(NULL);
	ck_assert_uint_eq(report->heap_count, CHILDREN + 1);
	text = render(report, mmt_report_write_text);
	assert_has(text, "malloc heap of snapshot (pid 42): ");
	ck_assert_ptr_null(strstr(text, "not read"));
	ck_assert_ptr_null(strstr(text, "more heap"));
	free(text);
	mmt_report_destroy(report);
}
END_TEST

Suite *test_suite(void)
{
	Suite *suite = suite_create("heap growth");
	TCase *cases = add_tcase(suite, "reports");

	tcase_add_checked_fixture(cases, report_file_setup, report_file_teardown);
	tcase_add_tests(cases, objects_that_are_kept, free_memory_that_is_held_apart, trends, near_sizes_are_one_kind,
			a_table_that_grew, blocks_that_moved_into_the_heap, heaps_read_in_part, what_is_not_known,
			programs_that_start, modules_without_a_name, heaps_of_processes_that_ended);
	return suite;
}
