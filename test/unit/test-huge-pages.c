// SPDX-License-Identifier: LGPL-2.1-or-later
/* Transparent huge pages: which memory has them, and samples of their contents. Skipped if the system has none. */
#include <check.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "capture/recorder/recorder.h"
#include "support/recorder-state.h"
#include "support/suite.h"

#ifndef MADV_COLLAPSE
#define MADV_COLLAPSE 25 /* since Linux 6.1 */
#endif

#define HUGE_BYTES (2ull << 20)
#define NO_HUGE_PAGES "this kernel provides no huge pages, or does not show which pages are huge (before 6.7)"

/* Memory for huge pages; false if this system has none. */
static bool map_huge(size_t count, uint8_t **memory_ret)
{
	uint8_t *memory =
	    mmap(NULL, (count + 1) * HUGE_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	ck_assert_ptr_ne(memory, MAP_FAILED);
	*memory_ret = (uint8_t *)(((uintptr_t)memory + HUGE_BYTES - 1) / HUGE_BYTES * HUGE_BYTES);
	return huge_pages_setting() != HUGE_NEVER && huge_pages_setting() != HUGE_SETTING_UNKNOWN &&
	       !madvise(*memory_ret, count * HUGE_BYTES, MADV_HUGEPAGE);
}

/* If free memory is fragmented, the kernel provides small pages instead. False: it provides no huge ones. */
static bool make_huge(uint8_t *memory, size_t count)
{
	return !madvise(memory, count * HUGE_BYTES, MADV_COLLAPSE);
}

/* Finds the huge pages of these ranges in the reader's `huge`. */
static void read_huge(struct residency_reader *reader, const struct mapped_range *ranges, size_t count)
{
	struct process_residency residency = {0};

	reader->wants[PAGES_HUGE] = true;
	reader->found[PAGES_HUGE].runs.count = 0;
	ck_assert_ptr_null(residency_read_ranges(reader, ranges, count, &residency));
	ck_assert(!reader->gave_up);
	vector_deinit(&residency.runs);
}

/* The first reading shows whether the kernel has PAGEMAP_SCAN. */
static void open_pages(struct residency_reader *reader, pid_t pid)
{
	uint64_t page = (uint64_t)(uintptr_t)&suite_create & ~4095ull;

	residency_take(reader, NULL, pid, process_file_open(NULL, pid, "pagemap"));
	ck_assert_int_ge(reader->fd, 0);
	read_huge(reader, &(struct mapped_range){page, page + 4096, true, false}, 1);
}

/* False: this kernel or machine has no huge pages, or does not show them. */
static bool open_full_huge(size_t count, uint8_t **memory_ret, struct residency_reader *reader)
{
	if (!map_huge(count, memory_ret))
		return false;
	memset(*memory_ret, 1, count * HUGE_BYTES);
	if (!make_huge(*memory_ret, count))
		return false;
	open_pages(reader, getpid());
	return reader->scan;
}

static struct process_huge_pages sample(struct residency_reader *reader, uint64_t end_ns)
{
	struct process_huge_pages huge = {0};

	huge_pages_sample(reader, end_ns, &huge);
	return huge;
}

#define SAMPLE_BYTES (32ull * 4096) /* of one huge page */

/* 16 huge pages with one small page written each, 16 full ones, and 16 half full ones, of which half have no anonymous
 * memory. */
START_TEST(huge_pages_are_found_and_sampled)
{
	struct process_huge_pages huge;
	struct mapped_range ranges[2];
	struct residency_reader reader;
	uint8_t *memory;
	uint64_t start;

	if (!map_huge(48, &memory))
		SKIP_TEST(NO_HUGE_PAGES);
	start = (uint64_t)(uintptr_t)memory;
	for (size_t i = 0; i < 48 * HUGE_BYTES; i += HUGE_BYTES) {
		memory[i + 12345] = 1;
		if (i >= 32 * HUGE_BYTES)
			memset(memory + i, 1, HUGE_BYTES / 2);
		else if (i >= 16 * HUGE_BYTES)
			memset(memory + i, 1, HUGE_BYTES);
	}
	if (!make_huge(memory, 48))
		SKIP_TEST(NO_HUGE_PAGES);
	open_pages(&reader, getpid());
	if (!reader.scan)
		SKIP_TEST(NO_HUGE_PAGES);
	ranges[0] = (struct mapped_range){start, start + 40 * HUGE_BYTES, true, false};
	ranges[1] = (struct mapped_range){start + 40 * HUGE_BYTES, start + 48 * HUGE_BYTES, false, false};
	read_huge(&reader, ranges, 2);
	ck_assert_uint_eq(reader.found[PAGES_HUGE].runs.count, 1);
	ck_assert_uint_eq(reader.found[PAGES_HUGE].runs.items[0].start, start);
	ck_assert_uint_eq(reader.found[PAGES_HUGE].runs.items[0].end, ranges[0].end);
	/* The samples are spread over all huge pages: 16 of 40 are empty, and 4 of 40 in halves. */
	huge = sample(&reader, UINT64_MAX);
	ck_assert_uint_eq(huge.sampled_bytes, 40 * SAMPLE_BYTES);
	ck_assert_uint_ge(huge.zero_bytes, 17 * SAMPLE_BYTES);
	ck_assert_uint_le(huge.zero_bytes, 23 * SAMPLE_BYTES);
	/* If time runs out, there is no sample. */
	ck_assert_uint_eq(sample(&reader, 1).sampled_bytes, 0);

	/* Each part by itself. */
	ranges[0].end = start + 16 * HUGE_BYTES;
	read_huge(&reader, ranges, 1);
	ck_assert_uint_ge(sample(&reader, UINT64_MAX).zero_bytes, 16 * (SAMPLE_BYTES - 4096));
	ranges[0] = (struct mapped_range){start + 16 * HUGE_BYTES, start + 32 * HUGE_BYTES, true, false};
	read_huge(&reader, ranges, 1);
	ck_assert_uint_eq(sample(&reader, UINT64_MAX).zero_bytes, 0);
	ranges[0] = (struct mapped_range){start + 32 * HUGE_BYTES, start + 48 * HUGE_BYTES, true, false};
	read_huge(&reader, ranges, 1);
	huge = sample(&reader, UINT64_MAX);
	ck_assert_uint_eq(huge.sampled_bytes, 16 * SAMPLE_BYTES);
	ck_assert_uint_eq(huge.zero_bytes, 8 * SAMPLE_BYTES);

	/* Too little for a sample. */
	ranges[0].end = ranges[0].start + HUGE_BYTES;
	read_huge(&reader, ranges, 1);
	ck_assert_uint_eq(reader.found[PAGES_HUGE].runs.count, 1);
	ck_assert_uint_eq(sample(&reader, UINT64_MAX).sampled_bytes, 0);
	residency_close(&reader);
	munmap(memory, 48 * HUGE_BYTES);
}
END_TEST

/* The huge zero page of unwritten memory does not count as the process's memory, and discarded memory is not
 * touched. */
START_TEST(sampling_causes_no_page_faults)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	struct process_huge_pages huge;
	struct residency_reader reader;
	struct mapped_range range;
	unsigned char resident;
	uint8_t *memory;

	if (!open_full_huge(8, &memory, &reader))
		SKIP_TEST(NO_HUGE_PAGES);
	range = (struct mapped_range){(uintptr_t)memory, (uintptr_t)memory + 8 * HUGE_BYTES, true, false};
	read_huge(&reader, &range, 1);
	ck_assert_int_eq(madvise(memory, 4 * HUGE_BYTES, MADV_DONTNEED), 0);
	ck_assert_int_eq(((volatile uint8_t *)memory)[HUGE_BYTES], 0);
	huge = sample(&reader, UINT64_MAX);
	ck_assert_uint_gt(huge.sampled_bytes, 0);
	ck_assert_uint_lt(huge.sampled_bytes, 8 * SAMPLE_BYTES);
	ck_assert_uint_eq(huge.zero_bytes, 0);
	ck_assert_int_eq(mincore(memory, page, &resident), 0);
	ck_assert_int_eq(resident & 1, 0);
	residency_close(&reader);
	munmap(memory, 8 * HUGE_BYTES);
}
END_TEST

static void become_nobody(struct blocking_call *call)
{
	*(int *)call->result = setuid(65534);
	call->result_bytes = sizeof(int);
}

/* As with the security module Yama, the helper may not read this memory, but the recorder may open it. */
START_TEST(the_recorder_opens_memory)
{
	const struct mmt_record_options options = {.stop_fd = -1};
	struct recorder *recorder = calloc(1, sizeof(*recorder));
	struct process_huge_pages huge;
	struct residency_reader reader;
	struct mapped_range range;
	uint8_t *memory;
	int failed = 1;
	struct blocking_call call = {
	    .place = 1, .run = become_nobody, .given = -1, .result = &failed, .result_bytes = sizeof(failed)};

	ck_assert_ptr_nonnull(recorder);
	if (getuid() != 0)
		SKIP_TEST("only root can give the helper fewer rights");
	if (!open_full_huge(8, &memory, &reader))
		SKIP_TEST(NO_HUGE_PAGES);
	memset(memory, 0, HUGE_BYTES); /* a fork of the helper would divide the huge page if it were written later */
	recorder->options = &options;
	ck_assert_ptr_null(ring_reader_start_helper(recorder));
	ck_assert(blocking_call(&recorder->calls, &call) && !failed);
	reader.calls = &recorder->calls;
	range = (struct mapped_range){(uintptr_t)memory, (uintptr_t)memory + 8 * HUGE_BYTES, true, false};
	read_huge(&reader, &range, 1);
	huge = sample(&reader, UINT64_MAX);
	ck_assert_uint_eq(huge.sampled_bytes, 8 * SAMPLE_BYTES);
	ck_assert_uint_eq(huge.zero_bytes, SAMPLE_BYTES);
	residency_close(&reader);
	blocking_calls_end(&recorder->calls);
	free(recorder);
	munmap(memory, 8 * HUGE_BYTES);
}
END_TEST

Suite *test_suite(void)
{
	Suite *suite = suite_create("huge-pages");
	TCase *cases = add_tcase(suite, "huge pages");

	tcase_add_tests(cases, huge_pages_are_found_and_sampled, sampling_causes_no_page_faults,
			the_recorder_opens_memory);
	return suite;
}
