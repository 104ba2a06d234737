// SPDX-License-Identifier: LGPL-2.1-or-later
/* Which pages of this process are resident. */
#include <check.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "capture/procfs/residency.h"
#include "support/run-suite.h"

static void deinit(struct residency_reader *reader, struct process_residency *residency)
{
	residency_close(reader);
	vector_deinit(&residency->runs);
}

/* With the ioctl, if the kernel has it, and without. */
START_TEST(written_pages_are_resident)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	uint8_t *memory = mmap(NULL, 8 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	uint64_t start = (uint64_t)(uintptr_t)memory;
	struct process_residency residency = {0};
	struct residency_reader reader;

	ck_assert_ptr_ne(memory, MAP_FAILED);
	ck_assert_int_eq(madvise(memory, 8 * page, MADV_NOHUGEPAGE), 0);
	memory[page] = memory[2 * page] = memory[5 * page] = 1;
	ck_assert(residency_open(&reader, getpid()));
	reader.scan = _i == 0;
	ck_assert_ptr_null(residency_read(&reader, start, start + 8 * page, &residency));
	ck_assert(!reader.gave_up);
	ck_assert_uint_eq(residency.runs.count, 2);
	ck_assert_uint_eq(residency.runs.items[0].start, start + page);
	ck_assert_uint_eq(residency.runs.items[0].end, start + 3 * page);
	ck_assert_uint_eq(residency.runs.items[1].start, start + 5 * page);
	ck_assert_uint_eq(residency.runs.items[1].end, start + 6 * page);
	deinit(&reader, &residency);
	munmap(memory, 8 * page);
}
END_TEST

/* Mappings that merge between two reads of the maps make the second range start within the first. */
START_TEST(overlapping_ranges_give_each_page_once)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	uint8_t *memory = mmap(NULL, 8 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	uint64_t start = (uint64_t)(uintptr_t)memory;
	struct process_residency residency = {0};
	struct residency_reader reader;

	ck_assert_ptr_ne(memory, MAP_FAILED);
	ck_assert_int_eq(madvise(memory, 8 * page, MADV_NOHUGEPAGE), 0);
	memory[page] = memory[2 * page] = memory[3 * page] = memory[6 * page] = 1;
	ck_assert(residency_open(&reader, getpid()));
	reader.scan = _i == 0;
	ck_assert_ptr_null(residency_read(&reader, start, start + 3 * page, &residency));
	memory[0] = 1;
	ck_assert_ptr_null(residency_read(&reader, start, start + 8 * page, &residency));
	ck_assert_uint_eq(residency.runs.count, 2);
	ck_assert_uint_eq(residency.runs.items[0].start, start + page);
	ck_assert_uint_eq(residency.runs.items[0].end, start + 4 * page);
	ck_assert_uint_eq(residency.runs.items[1].start, start + 6 * page);
	ck_assert_uint_eq(residency.runs.items[1].end, start + 7 * page);
	deinit(&reader, &residency);
	munmap(memory, 8 * page);
}
END_TEST

/* Ranges are read together, and pages between them do not count. The first two overlap, the last is far away. */
START_TEST(near_ranges_are_read_together)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE), size = 32 * page;
	uint8_t *memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	uint64_t start = (uint64_t)(uintptr_t)memory, stack = (uint64_t)(uintptr_t)&size / page * page;
	const struct mapped_range ranges[] = {{.start = start, .end = start + 4 * page},
					      {.start = start + 2 * page, .end = start + 8 * page},
					      {.start = start + 16 * page, .end = start + 18 * page},
					      {.start = stack, .end = stack + page}};
	struct process_residency residency = {0};
	struct residency_reader reader;

	ck_assert_ptr_ne(memory, MAP_FAILED);
	ck_assert_uint_gt(stack, start);
	ck_assert_int_eq(madvise(memory, size, MADV_NOHUGEPAGE), 0);
	memory[3 * page] = memory[4 * page] = memory[9 * page] = 1;
	memset(memory + 15 * page, 1, 4 * page);
	ck_assert(residency_open(&reader, getpid()));
	reader.scan = _i == 0;
	ck_assert_ptr_null(residency_read_ranges(&reader, ranges, 4, &residency));
	ck_assert(!reader.gave_up);
	ck_assert_uint_eq(residency.runs.count, 3);
	ck_assert_uint_eq(residency.runs.items[0].start, start + 3 * page);
	ck_assert_uint_eq(residency.runs.items[0].end, start + 5 * page);
	ck_assert_uint_eq(residency.runs.items[1].start, start + 16 * page);
	ck_assert_uint_eq(residency.runs.items[1].end, start + 18 * page);
	ck_assert_uint_eq(residency.runs.items[2].start, stack);
	ck_assert_uint_eq(residency.runs.items[2].end, stack + page);
	deinit(&reader, &residency);
	munmap(memory, size);
}
END_TEST

/* Page-by-page reading is bounded, and a partial reading does not count as complete. */
START_TEST(reading_a_huge_address_space_is_bounded)
{
	struct process_residency residency = {0};
	struct residency_reader reader;

	ck_assert(residency_open(&reader, getpid()));
	reader.scan = false;
	reader.bytes = RESIDENCY_BYTES_MAX - 4096;
	ck_assert_ptr_null(residency_read(&reader, 0x10000, 0x11000, &residency));
	ck_assert(!reader.gave_up);
	ck_assert_ptr_null(residency_read(&reader, 0x11000, 0x12000, &residency));
	ck_assert(reader.gave_up);
	residency_close(&reader);

	ck_assert(residency_open(&reader, getpid()));
	ck_assert(!reader.gave_up);
	reader.scan = false;
	reader.begin_ns = 1;
	ck_assert_ptr_null(residency_read(&reader, 0x10000, 0x11000, &residency));
	ck_assert(reader.gave_up);
	deinit(&reader, &residency);
}
END_TEST

static struct mmt_error *count_steps(struct residency_reader *reader, uint64_t start, uint64_t end,
				     struct process_residency *residency, size_t *count_ret)
{
	struct mmt_error *error = NULL;

	for (*count_ret = 0; !error && start < end; ++*count_ret) {
		uint64_t begin = start;

		error = residency_step(reader, begin, end, residency, &start);
		ck_assert_uint_gt(start, begin);
	}
	return error;
}

/* Few steps find what is resident, with the ioctl; much resident memory takes small steps. */
START_TEST(steps_are_large_where_little_is_resident)
{
	const uint64_t size = 256ULL << 30, there = 2048 * (uint64_t)sysconf(_SC_PAGESIZE);
	uint8_t *memory = mmap(NULL, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	uint64_t start = (uint64_t)(uintptr_t)memory, middle = start + size / 2, end;
	struct process_residency residency = {0};
	struct residency_reader reader;
	size_t count;

	ck_assert_ptr_ne(memory, MAP_FAILED);
	ck_assert_int_eq(mprotect(memory + size / 2, there, PROT_READ | PROT_WRITE), 0);
	ck_assert_int_eq(madvise(memory + size / 2, there, MADV_NOHUGEPAGE), 0);
	memset(memory + size / 2, 1, there);
	ck_assert(residency_open(&reader, getpid()));
	ck_assert_ptr_null(residency_step(&reader, middle, start + size, &residency, &end));
	ck_assert_uint_eq(end, middle + there / 2);
	ck_assert_uint_eq(residency.runs.count, 1);
	ck_assert_uint_eq(residency.runs.items[0].end, end);
	residency.runs.count = 0;
	ck_assert_ptr_null(count_steps(&reader, start, start + size, &residency, &count));
	if (reader.scan) {
		ck_assert_uint_lt(count, 80);
		ck_assert_uint_eq(residency.runs.count, 1);
		ck_assert_uint_eq(residency.runs.items[0].start, middle);
		ck_assert_uint_eq(residency.runs.items[0].end, middle + there);
	}
	deinit(&reader, &residency);
	munmap(memory, size);
}
END_TEST

#ifndef MADV_COLLAPSE
#define MADV_COLLAPSE 25 /* since Linux 6.1 */
#endif

#define HUGE_BYTES (2ull << 20)

/* Memory of huge pages: false if this system has none. */
static bool map_huge(size_t count, uint8_t **memory_ret)
{
	uint8_t *memory =
	    mmap(NULL, (count + 1) * HUGE_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	ck_assert_ptr_ne(memory, MAP_FAILED);
	*memory_ret = (uint8_t *)(((uintptr_t)memory + HUGE_BYTES - 1) / HUGE_BYTES * HUGE_BYTES);
	return huge_pages_setting() != HUGE_NEVER && huge_pages_setting() != HUGE_SETTING_UNKNOWN &&
	       !madvise(*memory_ret, count * HUGE_BYTES, MADV_HUGEPAGE);
}

/* Where free memory is fragmented, the kernel gives small pages instead. False: it cannot give huge ones. */
static bool make_huge(uint8_t *memory, size_t count)
{
	return !madvise(memory, count * HUGE_BYTES, MADV_COLLAPSE);
}

/* False: this kernel or machine has no huge pages, or does not show them. */
static bool open_full_huge(size_t count, uint8_t **memory_ret, struct residency_reader *reader)
{
	if (!map_huge(count, memory_ret))
		return false;
	memset(*memory_ret, 1, count * HUGE_BYTES);
	if (!make_huge(*memory_ret, count))
		return false;
	ck_assert(residency_open(reader, getpid()));
	return reader->scan;
}

static void read_huge(struct residency_reader *reader, const struct mapped_range *ranges, size_t count,
		      struct process_huge_pages *huge)
{
	struct process_residency residency = {0};

	reader->wants_huge = true;
	ck_assert_ptr_null(residency_read_ranges(reader, ranges, count, &residency));
	ck_assert(!reader->gave_up);
	huge->runs = reader->huge.runs;
	reader->huge = (struct process_residency){0};
	vector_deinit(&residency.runs);
}

/* Pages that were read, and those of them that are zero, from START to END. */
static struct huge_sample sum_samples(const struct process_huge_pages *huge, uint64_t start, uint64_t end)
{
	struct huge_sample sum = {0};

	for (size_t i = 0; i < huge->samples.count; i++) {
		const struct huge_sample *sample = &huge->samples.items[i];

		if (sample->address < start || sample->address >= end)
			continue;
		sum.read_bytes += sample->read_bytes;
		sum.zero_bytes += sample->zero_bytes;
	}
	return sum;
}

/* 16 huge pages with one small page written each, 16 that were filled, and 16 that were filled by half. */
START_TEST(huge_pages_are_found_and_sampled)
{
	struct process_huge_pages huge = {0};
	struct mapped_range ranges[2];
	struct residency_reader reader;
	uint8_t *memory;
	uint64_t start;

	if (!map_huge(48, &memory))
		return;
	start = (uint64_t)(uintptr_t)memory;
	for (size_t i = 0; i < 48 * HUGE_BYTES; i += HUGE_BYTES) {
		memory[i + 12345] = 1;
		if (i >= 32 * HUGE_BYTES)
			memset(memory + i, 1, HUGE_BYTES / 2);
		else if (i >= 16 * HUGE_BYTES)
			memset(memory + i, 1, HUGE_BYTES);
	}
	if (!make_huge(memory, 48))
		return;
	ck_assert(residency_open(&reader, getpid()));
	if (!reader.scan)
		return;
	ranges[0] = (struct mapped_range){start, start + 40 * HUGE_BYTES, true};
	ranges[1] = (struct mapped_range){start + 40 * HUGE_BYTES, start + 48 * HUGE_BYTES, false};
	read_huge(&reader, ranges, 2, &huge);
	ck_assert_uint_eq(huge.runs.count, 1);
	ck_assert_uint_eq(huge.runs.items[0].start, start);
	ck_assert_uint_eq(huge.runs.items[0].end, ranges[0].end);
	ck_assert_ptr_null(huge_pages_sample(&reader, getpid(), UINT64_MAX, &huge));
	ck_assert_int_eq(huge.sampling, HUGE_SAMPLED);
	ck_assert_uint_eq(huge.samples.count, 40);
	for (size_t i = 1; i < huge.samples.count; i++)
		ck_assert_uint_gt(huge.samples.items[i].address, huge.samples.items[i - 1].address);
	ck_assert_uint_ge(sum_samples(&huge, start, start + 16 * HUGE_BYTES).zero_bytes, (16 * 32 - 16) * 4096);
	ck_assert_uint_eq(sum_samples(&huge, start + 16 * HUGE_BYTES, start + 32 * HUGE_BYTES).zero_bytes, 0);
	ck_assert_uint_eq(sum_samples(&huge, start + 32 * HUGE_BYTES, ranges[0].end).zero_bytes, 8 * 16 * 4096);
	process_huge_pages_deinit(&huge);

	/* Out of time, it has no sample rather than one of the low addresses. */
	read_huge(&reader, ranges, 2, &huge);
	ck_assert_ptr_null(huge_pages_sample(&reader, getpid(), 1, &huge));
	ck_assert_int_eq(huge.sampling, HUGE_NOT_SAMPLED);
	ck_assert_uint_eq(huge.samples.count, 0);
	process_huge_pages_deinit(&huge);
	residency_close(&reader);

	/* Not worth a sample. */
	ranges[0].end = start + HUGE_BYTES;
	ck_assert(residency_open(&reader, getpid()));
	read_huge(&reader, ranges, 1, &huge);
	ck_assert_ptr_null(huge_pages_sample(&reader, getpid(), UINT64_MAX, &huge));
	ck_assert_int_eq(huge.sampling, HUGE_TOO_LITTLE);
	ck_assert_uint_eq(huge.samples.count, 0);
	process_huge_pages_deinit(&huge);
	residency_close(&reader);
	munmap(memory, 48 * HUGE_BYTES);
}
END_TEST

/* Reading it could wait for the process that handles its page faults. */
START_TEST(a_process_with_userfaultfd_is_not_sampled)
{
	int userfaultfd = (int)syscall(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK);
	struct process_huge_pages huge = {0};
	struct residency_reader reader;
	struct mapped_range range;
	uint8_t *memory;

	if (userfaultfd < 0 || !open_full_huge(8, &memory, &reader))
		return;
	range = (struct mapped_range){(uintptr_t)memory, (uintptr_t)memory + 8 * HUGE_BYTES, true};
	read_huge(&reader, &range, 1, &huge);
	ck_assert_ptr_null(huge_pages_sample(&reader, getpid(), UINT64_MAX, &huge));
	ck_assert_int_eq(huge.sampling, HUGE_NOT_SAFE);
	ck_assert_uint_eq(huge.samples.count, 0);
	close(userfaultfd);
	ck_assert_ptr_null(huge_pages_sample(&reader, getpid(), UINT64_MAX, &huge));
	ck_assert_int_eq(huge.sampling, HUGE_SAMPLED);
	ck_assert_uint_eq(huge.samples.count, 8);
	process_huge_pages_deinit(&huge);
	residency_close(&reader);
	munmap(memory, 8 * HUGE_BYTES);
}
END_TEST

/* Where nothing was written, the huge zero page is no memory of the process, and discarded memory is not touched. */
START_TEST(sampling_causes_no_page_faults)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	struct process_huge_pages huge = {0};
	struct residency_reader reader;
	struct mapped_range range;
	unsigned char resident;
	uint8_t *memory;

	if (!open_full_huge(8, &memory, &reader))
		return;
	range = (struct mapped_range){(uintptr_t)memory, (uintptr_t)memory + 8 * HUGE_BYTES, true};
	read_huge(&reader, &range, 1, &huge);
	ck_assert_int_eq(madvise(memory, 4 * HUGE_BYTES, MADV_DONTNEED), 0);
	ck_assert_int_eq(((volatile uint8_t *)memory)[HUGE_BYTES], 0);
	ck_assert_ptr_null(huge_pages_sample(&reader, getpid(), UINT64_MAX, &huge));
	ck_assert_uint_eq(huge.samples.count, 4);
	ck_assert_uint_eq(huge.samples.items[0].address, range.start + 4 * HUGE_BYTES);
	ck_assert_int_eq(mincore(memory, page, &resident), 0);
	ck_assert_int_eq(resident & 1, 0);
	process_huge_pages_deinit(&huge);
	residency_close(&reader);
	munmap(memory, 8 * HUGE_BYTES);
}
END_TEST

/* Names of processes may look like other lines. */
START_TEST(swapped_size_in_status)
{
	ck_assert_uint_eq(residency_swapped("Name:\tVmSwap: 9\nVmRSS:\t 12 kB\nVmPTE:\t 44 kB\nVmSwap:\t    1040 kB\n"),
			  1040 * 1024);
	ck_assert_uint_eq(residency_swapped("Name:\tswapper\nVmSwap:\t       0 kB\nHugetlbPages:\t 4 kB\n"), 0);
	ck_assert_uint_eq(residency_swapped("Name:\tkthreadd\nThreads:\t1\n"), 0);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("residency");
	TCase *cases = tcase_create("pages");

	tcase_add_loop_test(cases, written_pages_are_resident, 0, 2);
	tcase_add_loop_test(cases, overlapping_ranges_give_each_page_once, 0, 2);
	tcase_add_loop_test(cases, near_ranges_are_read_together, 0, 2);
	tcase_add_test(cases, reading_a_huge_address_space_is_bounded);
	tcase_add_test(cases, steps_are_large_where_little_is_resident);
	tcase_add_test(cases, huge_pages_are_found_and_sampled);
	tcase_add_test(cases, a_process_with_userfaultfd_is_not_sampled);
	tcase_add_test(cases, sampling_causes_no_page_faults);
	tcase_add_test(cases, swapped_size_in_status);
	suite_add_tcase(suite, cases);
	return run_suite(suite);
}
