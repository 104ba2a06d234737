// SPDX-License-Identifier: LGPL-2.1-or-later
#include "capture/perf/clock.h"
#include "capture/proc/proc.h"
#include "capture/proc/residency.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "capture/recorder.h"

#define PIECE_BYTES (64ull << 20)
#define STEP_BYTES (4ull << 30) /* the kernel skips sparse ranges quickly */
#define STEP_PAGES 1024
#define GROUP_GAP_BYTES (64ull << 20) /* largest gap between ranges that are read together */
#define REGIONS_PER_CALL 512
#define ENTRIES_PER_READ 2048
#define ENTRY_PRESENT (1ull << 63)

/* From linux/fs.h of Linux 6.7, for older headers. */
#define SCAN_PRESENT (1ull << 3)
#define SCAN_ZERO_PAGE (1ull << 5)

struct scan_region {
	uint64_t start, end;
	uint64_t categories;
};

struct scan_argument {
	uint64_t size;
	uint64_t flags;
	uint64_t start, end;
	uint64_t walk_end;
	uint64_t regions;
	uint64_t region_count;
	uint64_t page_count_max;
	uint64_t category_inverted;
	uint64_t category_mask;
	uint64_t category_anyof_mask;
	uint64_t return_mask;
};

#define SCAN_IOCTL _IOWR('f', 16, struct scan_argument)

bool residency_open(struct residency_reader *reader, pid_t pid)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/pagemap", proc_living_thread(pid));
	reader->fd = open(path, O_RDONLY | O_CLOEXEC);
	reader->scan = true;
	reader->gave_up = false;
	reader->bytes = reader->begin_ns = reader->waited_ns = 0;
	return reader->fd >= 0;
}

void residency_close(struct residency_reader *reader)
{
	close(reader->fd);
	reader->fd = -1;
}

/* Two reads of the maps overlap if mappings were merged in between: do not count the same pages twice. */
static struct mmt_error *append_run(struct residency_reader *reader, struct process_residency *residency,
				    uint64_t start, uint64_t end)
{
	size_t count = residency->runs.count;
	uint64_t previous_end = count ? residency->runs.items[count - 1].end : 0;
	struct resident_run run = {start > previous_end ? start : previous_end, end};

	if (run.start >= run.end)
		return NULL;
	if (count && previous_end == run.start) {
		residency->runs.items[count - 1].end = end;
		return NULL;
	}
	if (count >= RESIDENCY_RUNS_MAX) {
		reader->gave_up = true;
		return NULL;
	}
	return vector_push(&residency->runs, run) ? NULL : &error_no_memory;
}

/* *end_ret: address reached when `page_max` pages were found or the limit of runs per call was hit. The shared zero
 * page, which backs memory that was only read, does not count. */
static struct mmt_error *scan_once(struct residency_reader *reader, uint64_t start, uint64_t end, uint64_t page_max,
				   struct process_residency *residency, uint64_t *end_ret)
{
	struct scan_region regions[REGIONS_PER_CALL];
	struct scan_argument argument = {
	    .size = sizeof(argument),
	    .start = start,
	    .end = end,
	    .regions = (uint64_t)(uintptr_t)regions,
	    .region_count = REGIONS_PER_CALL,
	    .page_count_max = page_max,
	    .category_inverted = SCAN_ZERO_PAGE,
	    .category_mask = SCAN_PRESENT | SCAN_ZERO_PAGE,
	    .return_mask = SCAN_PRESENT,
	};
	struct mmt_error *error = NULL;
	uint64_t began_ns = clock_now_ns(), work_began_ns = clock_thread_ns(), took_ns, worked_ns;
	long count;

	do
		count = ioctl(reader->fd, SCAN_IOCTL, &argument);
	while (count < 0 && errno == EINTR);
	worked_ns = clock_thread_ns() - work_began_ns;
	took_ns = clock_now_ns() - began_ns;
	reader->waited_ns += took_ns > worked_ns ? took_ns - worked_ns : 0; /* the two clocks differ slightly */
	reader->gave_up |= reader->waited_ns > RESIDENCY_WAIT_NS_MAX;
	*end_ret = end;
	if (count < 0) {
		reader->scan = errno != ENOTTY && errno != EINVAL && errno != ENOSYS; /* the last from emulators */
		return NULL;
	}
	for (long i = 0; !error && i < count; i++)
		error = append_run(reader, residency, regions[i].start, regions[i].end);
	if (argument.walk_end > start)
		*end_ret = argument.walk_end;
	return error;
}

static struct mmt_error *scan_range(struct residency_reader *reader, uint64_t start, uint64_t end,
				    struct process_residency *residency)
{
	uint64_t page_max = PIECE_BYTES / (uint64_t)sysconf(_SC_PAGESIZE);
	struct mmt_error *error = NULL;

	while (!error && start < end && reader->scan && !reader->gave_up) {
		uint64_t step_end = end - start > STEP_BYTES ? start + STEP_BYTES : end;

		error = scan_once(reader, start, step_end, page_max, residency, &start);
	}
	return error;
}

static struct mmt_error *read_piece(struct residency_reader *reader, uint64_t start, uint64_t end,
				    struct process_residency *residency)
{
	uint64_t page_bytes = (uint64_t)sysconf(_SC_PAGESIZE);
	uint64_t entries[ENTRIES_PER_READ];

	while (start < end) {
		uint64_t wanted = (end - start) / page_bytes * sizeof(uint64_t);
		ssize_t count;

		if (wanted > sizeof(entries))
			wanted = sizeof(entries);
		count = pread(reader->fd, entries, wanted, (off_t)(start / page_bytes * sizeof(uint64_t)));
		if (count < (ssize_t)sizeof(uint64_t))
			return NULL;
		for (size_t i = 0; i < (size_t)count / sizeof(uint64_t); i++, start += page_bytes) {
			struct mmt_error *error = NULL;

			if (entries[i] & ENTRY_PRESENT)
				error = append_run(reader, residency, start, start + page_bytes);
			if (error)
				return error;
		}
	}
	return NULL;
}

/* Terabytes may be mapped of which only a few pages are resident. */
static bool takes_too_long(struct residency_reader *reader, uint64_t bytes)
{
	uint64_t now_ns = clock_now_ns();

	if (!reader->begin_ns)
		reader->begin_ns = now_ns;
	reader->bytes += bytes;
	return reader->bytes > RESIDENCY_BYTES_MAX || now_ns - reader->begin_ns > RESIDENCY_NS_MAX;
}

struct mmt_error *residency_read(struct residency_reader *reader, uint64_t start, uint64_t end,
				 struct process_residency *residency)
{
	if (reader->scan && !reader->gave_up) {
		struct mmt_error *error = scan_range(reader, start, end, residency);

		if (error || reader->scan)
			return error;
	}
	while (start < end && !reader->gave_up) {
		uint64_t piece_end = end - start > PIECE_BYTES ? start + PIECE_BYTES : end;
		struct mmt_error *error = NULL;

		reader->gave_up = takes_too_long(reader, piece_end - start);
		if (!reader->gave_up)
			error = read_piece(reader, start, piece_end, residency);
		if (error)
			return error;
		start = piece_end;
	}
	return NULL;
}

/* Returns how many of the ranges can be read together. */
static size_t find_group(const struct mapped_range *ranges, size_t count)
{
	uint64_t end = ranges[0].end;
	size_t group = 1;

	while (group < count && (ranges[group].start <= end || ranges[group].start - end <= GROUP_GAP_BYTES)) {
		end = ranges[group].end > end ? ranges[group].end : end;
		group++;
	}
	return group;
}

/* The intersection of the runs and the ranges, both in ascending order. */
static struct mmt_error *append_runs_within(struct residency_reader *reader, const struct process_residency *pages,
					    const struct mapped_range *ranges, size_t count,
					    struct process_residency *residency)
{
	struct mmt_error *error = NULL;
	size_t first = 0;

	for (size_t i = 0; !error && i < count; i++) {
		while (first < pages->runs.count && pages->runs.items[first].end <= ranges[i].start)
			first++;
		for (size_t j = first; !error && j < pages->runs.count; j++) {
			const struct resident_run *run = &pages->runs.items[j];

			if (run->start >= ranges[i].end)
				break;
			error =
			    append_run(reader, residency, run->start > ranges[i].start ? run->start : ranges[i].start,
				       run->end < ranges[i].end ? run->end : ranges[i].end);
		}
	}
	return error;
}

static struct mmt_error *read_group(struct residency_reader *reader, const struct mapped_range *ranges, size_t count,
				    struct process_residency *residency)
{
	struct process_residency pages = {0};
	struct mmt_error *error = NULL;
	uint64_t end = 0;

	for (size_t i = 0; i < count; i++)
		end = ranges[i].end > end ? ranges[i].end : end;
	error = residency_read(reader, ranges[0].start, end, &pages);
	if (!error)
		error = append_runs_within(reader, &pages, ranges, count, residency);
	vector_deinit(&pages.runs);
	return error;
}

struct mmt_error *residency_read_ranges(struct residency_reader *reader, const struct mapped_range *ranges,
					size_t count, struct process_residency *residency)
{
	struct mmt_error *error = NULL;
	size_t group;

	for (size_t i = 0; !error && !reader->gave_up && i < count; i += group) {
		group = reader->scan ? find_group(ranges + i, count - i) : 1;
		error = read_group(reader, ranges + i, group, residency);
	}
	return error;
}

struct mmt_error *residency_step(struct residency_reader *reader, uint64_t start, uint64_t end,
				 struct process_residency *residency, uint64_t *end_ret)
{
	uint64_t small_bytes = STEP_PAGES * (uint64_t)sysconf(_SC_PAGESIZE);
	struct mmt_error *error = NULL;

	*end_ret = end;
	if (reader->gave_up)
		return NULL;
	if (reader->scan) {
		error = scan_once(reader, start, end - start > STEP_BYTES ? start + STEP_BYTES : end, STEP_PAGES,
				  residency, end_ret);
		if (error || reader->scan)
			return error;
	}
	if (end - start > small_bytes)
		end = start + small_bytes;
	*end_ret = end;
	return residency_read(reader, start, end, residency);
}
