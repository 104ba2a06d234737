// SPDX-License-Identifier: LGPL-2.1-or-later
/* Which pages of this process are resident. */
#include <check.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/limits.h"
#include "capture/memory/residency.h"
#include "capture/procfs/blocking-calls.h"
#include "capture/procfs/proc.h"
#include "support/suite.h"

static void open_pages(struct residency_reader *reader, pid_t pid)
{
	residency_take(reader, NULL, pid, process_file_open(NULL, pid, "pagemap"));
	ck_assert_int_ge(reader->fd, 0);
}

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
	open_pages(&reader, getpid());
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
	open_pages(&reader, getpid());
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
	open_pages(&reader, getpid());
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

	open_pages(&reader, getpid());
	reader.scan = false;
	reader.bytes = LIMIT_RESIDENCY_BYTES - 4096;
	ck_assert_ptr_null(residency_read(&reader, 0x10000, 0x11000, &residency));
	ck_assert(!reader.gave_up);
	ck_assert_ptr_null(residency_read(&reader, 0x11000, 0x12000, &residency));
	ck_assert(reader.gave_up);
	residency_close(&reader);

	open_pages(&reader, getpid());
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
	open_pages(&reader, getpid());
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

/* Memory keeps its pages when it becomes inaccessible, and RSS contains them. Without the ioctl, every page of a
 * reservation must be checked: one that is too large is left out, and the others still count. */
START_TEST(protected_pages_are_resident)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	uint8_t *memory = mmap(NULL, 8 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	uint8_t *large = mmap(NULL, LIMIT_RESIDENCY_RESERVED_BYTES + page, PROT_NONE,
			      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	uint64_t start = (uint64_t)(uintptr_t)memory, large_start = (uint64_t)(uintptr_t)large;
	const struct mapped_range written = {start, start + 8 * page, true, true};
	const struct mapped_range empty = {large_start, large_start + LIMIT_RESIDENCY_RESERVED_BYTES + page, true,
					   true};
	struct mapped_range ranges[] = {start < large_start ? written : empty, start < large_start ? empty : written};
	struct process_residency residency = {0};
	struct residency_reader reader;

	ck_assert_ptr_ne(memory, MAP_FAILED);
	ck_assert_ptr_ne(large, MAP_FAILED);
	ck_assert_int_eq(madvise(memory, 8 * page, MADV_NOHUGEPAGE), 0);
	memory[page] = memory[2 * page] = 1;
	ck_assert_int_eq(mprotect(memory, 8 * page, PROT_NONE), 0);
	open_pages(&reader, getpid());
	reader.scan = _i == 0;
	ck_assert_ptr_null(residency_read_ranges(&reader, ranges, 2, &residency));
	ck_assert(!reader.gave_up);
	ck_assert_uint_eq(residency.runs.count, 1);
	ck_assert_uint_eq(residency.runs.items[0].start, start + page);
	ck_assert_uint_eq(residency.runs.items[0].end, start + 3 * page);
	if (!reader.scan)
		ck_assert_uint_eq(reader.bytes, 8 * page);
	deinit(&reader, &residency);
	munmap(memory, 8 * page);
	munmap(large, LIMIT_RESIDENCY_RESERVED_BYTES + page);
}
END_TEST

/* A kernel without PAGEMAP_SCAN is found at the first group of ranges: of its reservations, too, those that are too
 * large are left out. The file is not a pagemap but has the same entries. */
START_TEST(ranges_are_read_one_by_one_without_the_ioctl)
{
	const uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE), start = 1ull << 32, entry = 1ull << 63;
	const struct mapped_range ranges[] = {
	    {start, start + 8 * page, true, false},
	    {start + 8 * page, start + 8 * page + LIMIT_RESIDENCY_RESERVED_BYTES + page, true, true}};
	struct process_residency residency = {0};
	struct residency_reader reader;
	FILE *file = tmpfile();

	ck_assert_ptr_nonnull(file);
	ck_assert_int_eq(pwrite(fileno(file), &entry, sizeof(entry), (off_t)((start / page + 2) * sizeof(entry))),
			 sizeof(entry));
	ck_assert_int_eq(ftruncate(fileno(file), (off_t)((1ull << 40) / page * sizeof(entry))), 0);
	residency_take(&reader, NULL, getpid(), dup(fileno(file)));
	ck_assert_ptr_null(residency_read_ranges(&reader, ranges, 2, &residency));
	ck_assert(!reader.scan && !reader.gave_up);
	ck_assert_uint_eq(residency.runs.count, 1);
	ck_assert_uint_eq(residency.runs.items[0].start, start + 2 * page);
	ck_assert_uint_eq(residency.runs.items[0].end, start + 3 * page);
	ck_assert_uint_eq(reader.bytes, 8 * page);
	deinit(&reader, &residency);
	fclose(file);
}
END_TEST

/* Names of processes may look like other lines. */
START_TEST(swapped_size_in_status)
{
	ck_assert_uint_eq(
	    text_file_bytes("Name:\tVmSwap: 9\nVmRSS:\t 12 kB\nVmPTE:\t 44 kB\nVmSwap:\t    1040 kB\n", "VmSwap"),
	    1040 * 1024);
	ck_assert_uint_eq(text_file_bytes("Name:\tswapper\nVmSwap:\t       0 kB\nHugetlbPages:\t 4 kB\n", "VmSwap"), 0);
	ck_assert_uint_eq(text_file_bytes("Name:\tkthreadd\nThreads:\t1\n", "VmSwap"), 0);
}
END_TEST

/* Two descriptors: the child's exec closes its copy of the second one. */
static pid_t start_child(int input[2], int executed[2])
{
	char byte;
	pid_t child;

	ck_assert_int_eq(pipe(input), 0);
	ck_assert_int_eq(pipe2(executed, O_CLOEXEC), 0);
	child = fork();
	ck_assert_int_ge(child, 0);
	if (!child) {
		close(input[1]);
		dup2(input[0], STDIN_FILENO);
		if (read(STDIN_FILENO, &byte, 1) == 1)
			execlp("cat", "cat", NULL);
		_exit(1);
	}
	close(executed[1]);
	return child;
}

START_TEST(no_pages_of_the_program_after_an_exec)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	uint8_t *memory = mmap(NULL, page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct process_residency before = {0}, after = {0};
	struct residency_reader reader;
	int input[2], executed[2];
	char byte = 0;
	pid_t child;

	ck_assert_ptr_ne(memory, MAP_FAILED);
	*memory = 1;
	child = start_child(input, executed);
	open_pages(&reader, child);
	reader.scan = _i == 0;
	ck_assert_ptr_null(
	    residency_read(&reader, (uint64_t)(uintptr_t)memory, (uint64_t)(uintptr_t)memory + page, &before));
	ck_assert_uint_eq(before.runs.count, 1);
	ck_assert(residency_is_valid(&reader));
	ck_assert_int_eq(write(input[1], &byte, 1), 1);
	ck_assert_int_eq(read(executed[0], &byte, 1), 0);
	ck_assert_ptr_null(residency_read(&reader, page, 1ull << 47, &after));
	ck_assert_uint_eq(after.runs.count, 0);
	ck_assert(!residency_is_valid(&reader));
	close(input[1]);
	waitpid(child, NULL, 0);
	vector_deinit(&before.runs);
	deinit(&reader, &after);
}
END_TEST

Suite *test_suite(void)
{
	Suite *suite = suite_create("residency");
	TCase *cases = add_tcase(suite, "pages");

	tcase_add_loop_test(cases, written_pages_are_resident, 0, 2);
	tcase_add_loop_test(cases, overlapping_ranges_give_each_page_once, 0, 2);
	tcase_add_loop_test(cases, near_ranges_are_read_together, 0, 2);
	tcase_add_loop_test(cases, no_pages_of_the_program_after_an_exec, 0, 2);
	tcase_add_loop_test(cases, protected_pages_are_resident, 0, 2);
	tcase_add_tests(cases, reading_a_huge_address_space_is_bounded, steps_are_large_where_little_is_resident,
			ranges_are_read_one_by_one_without_the_ioctl, swapped_size_in_status);
	return suite;
}
