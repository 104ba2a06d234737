// SPDX-License-Identifier: LGPL-2.1-or-later
#include "capture/proc/residency.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "capture/perf/clock.h"
#include "capture/proc/proc.h"
#include "capture/recorder.h"
#include "capture/ring-reader.h"

#define PIECE_BYTES (64ull << 20)
#define STEP_BYTES (4ull << 30) /* the kernel skips sparse ranges quickly */
#define STEP_PAGES 1024
#define GROUP_GAP_BYTES (64ull << 20) /* largest gap between ranges that are read together */
#define GROUP_RANGES 1024	      /* most ranges read together: each is a mapping that the kernel looks up */
#define REGIONS_PER_CALL 512
#define ENTRIES_PER_READ 2048
#define ENTRY_PRESENT (1ull << 63)
#define SLICE_NS 100000 /* of work, after which the target gets a pause */
#define PAUSE_NS 300000

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
	reader->slice_ns = reader->paused_ns = 0;
	return reader->fd >= 0;
}

void residency_close(struct residency_reader *reader)
{
	close(reader->fd);
	reader->fd = -1;
}

/*
 * Each read holds the target's mmap_lock. Without pauses the next one would hold it again before a call of the target
 * that waits for it gets to run.
 */
static void pause_for_target(struct residency_reader *reader, uint64_t worked_ns)
{
	const struct timespec pause = {.tv_nsec = PAUSE_NS};

	reader->slice_ns += worked_ns;
	if (reader->slice_ns < SLICE_NS)
		return;
	nanosleep(&pause, NULL);
	reader->slice_ns = 0;
	reader->paused_ns += PAUSE_NS;
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
	pause_for_target(reader, worked_ns);
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
		uint64_t wanted = (end - start) / page_bytes * sizeof(uint64_t), began_ns = clock_thread_ns();
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
		pause_for_target(reader, clock_thread_ns() - began_ns);
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
	return reader->bytes > RESIDENCY_BYTES_MAX || now_ns - reader->begin_ns > RESIDENCY_NS_MAX + reader->paused_ns;
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

	while (group < count && group < GROUP_RANGES &&
	       (ranges[group].start <= end || ranges[group].start - end <= GROUP_GAP_BYTES)) {
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

#define INTERVAL_NS 50000000ULL
#define ELAPSED_SHARE 256     /* shortest interval: the elapsed time divided by this */
#define PROCESS_NS 5000000ULL /* for each process: no more than 200 notes a second */
#define COST_SHARE 200	      /* a reading may take 1/this of the recorder's time */

/* The current RSS of a process, the second number of statm; false: it is gone. */
static bool resident_series_size(pid_t pid, uint64_t *bytes_ret)
{
	CLEANUP(free) char *text = NULL;
	char path[64], *position;

	snprintf(path, sizeof(path), "/proc/%d/statm", pid);
	if (text_file_read(-1, path, &text) < 0)
		return false;
	(void)strtoull(text, &position, 10);
	*bytes_ret = strtoull(position, NULL, 10) * (uint64_t)sysconf(_SC_PAGESIZE);
	return true;
}

static uint64_t larger(uint64_t left, uint64_t right)
{
	return left > right ? left : right;
}

void resident_series_deinit(struct resident_series *series)
{
	vector_deinit(&series->sums);
}

/* PID and start time identify a process. */
static struct mmt_error *note_start(struct recorder *recorder, struct traced_process *process, uint64_t now_ns)
{
	uint64_t boot_ns = proc_start_boot_ns(process->pid);

	process->start_noted = true;
	return boot_ns ? notes_add_started(recorder, process->pid, now_ns, boot_ns) : NULL;
}

struct mmt_error *resident_series_end(struct recorder *recorder)
{
	struct resident_series *series = &recorder->resident_series;
	uint64_t now_ns = clock_now_ns(), reading = ++series->readings, interval_ns;
	struct mmt_resident_reading sum = {.time_ns = now_ns};
	struct mmt_error *error = NULL;

	for (size_t i = 0; !error && i < recorder->processes.items.count; i++) {
		struct traced_process *process = recorder->processes.items.items[i];
		uint64_t bytes;

		if (process->ended)
			continue;
		if (!process->start_noted)
			error = note_start(recorder, process, now_ns);
		if (error || !resident_series_size(process->pid, &bytes) || !bytes)
			continue;
		sum.resident_bytes += bytes;
		error = notes_add_resident(recorder, process->pid, now_ns, bytes, reading);
	}
	if (!error && sum.resident_bytes && !vector_push(&series->sums, sum))
		error = &error_no_memory;
	if (!series->begin_ns)
		series->begin_ns = now_ns;
	interval_ns = larger(INTERVAL_NS, (now_ns - series->begin_ns) / ELAPSED_SHARE);
	interval_ns = larger(interval_ns, recorder->processes.items.count * PROCESS_NS);
	series->next_ns = now_ns + larger(interval_ns, (clock_now_ns() - now_ns) * COST_SHARE);
	return error;
}

struct mmt_error *resident_series_read(struct recorder *recorder)
{
	return clock_now_ns() < recorder->resident_series.next_ns ? NULL : resident_series_end(recorder);
}

#define LIVE_RUNS_MAX (1u << 20) /* during the recording: those of the start stay in memory */
#define RANGES_AT_ONCE 4096

/* Events are enabled: keep up with the rings. */
static struct mmt_error *read_live_ranges(struct recorder *recorder, struct residency_reader *reader,
					  const struct process_ranges *process, struct process_residency *pages)
{
	struct mmt_error *error = NULL;

	for (size_t i = 0; !error && i < process->ranges.count && !reader->gave_up; i += RANGES_AT_ONCE) {
		size_t left = process->ranges.count - i;

		ring_reader_begin_wait(recorder);
		error = residency_read_ranges(reader, &process->ranges.items[i],
					      left < RANGES_AT_ONCE ? left : RANGES_AT_ONCE, pages);
		ring_reader_end_wait(recorder);
		if (!error)
			error = ring_reader_keep_up(recorder);
		reader->gave_up |= pages->runs.count > LIVE_RUNS_MAX;
	}
	return error;
}

/* Warn once: what is missing, and what the report shows instead. */
static void warn_of_unread(struct recorder *recorder, pid_t pid, const char *reason)
{
	if (!recorder->residency_told)
		recorder_message(recorder, true,
				 "which pages of process %d are resident cannot be read (/proc/%d/pagemap: %s): the "
				 "report is based on RSS and committed bytes",
				 pid, pid, reason);
	recorder->residency_told = true;
}

static struct mmt_error *read_process(struct recorder *recorder, const struct process_ranges *process, bool live,
				      process_residencies *processes)
{
	struct process_residency *pages;
	struct residency_reader reader;
	struct mmt_error *error = NULL;
	uint64_t before = 0, after = 0;

	if (!residency_open(&reader, process->pid)) {
		if (errno == EACCES || errno == EPERM || (errno == ENOENT && !proc_has_ended(process->pid)))
			warn_of_unread(recorder, process->pid,
				       errno == ENOENT ? "not in this kernel" : "permission denied");
		return NULL;
	}
	pages = vector_append(processes);
	if (!pages) {
		residency_close(&reader);
		return &error_no_memory;
	}
	pages->pid = process->pid;
	pages->time_ns = clock_now_ns();
	reader.gave_up |= !resident_series_size(process->pid, &before) && live;
	error = live ? read_live_ranges(recorder, &reader, process, pages)
		     : residency_read_ranges(&reader, process->ranges.items, process->ranges.count, pages);
	residency_close(&reader);
	/* The process may grow during the reading: the sum of the pages lies between the RSS before and after it. */
	if (before && resident_series_size(process->pid, &after))
		pages->resident_bytes = before / 2 + after / 2;
	/* A partial result would be a wrong number: leave it out, which means "unknown". */
	if (!error && reader.gave_up) {
		if (!proc_has_ended(process->pid))
			warn_of_unread(recorder, process->pid, "there are too many, or it takes too long");
		vector_deinit(&pages->runs);
		processes->count--;
	}
	return error;
}

struct mmt_error *read_start_residency(struct recorder *recorder)
{
	struct mmt_error *error = NULL;

	for (size_t i = 0; !error && i < recorder->start_ranges.count; i++)
		error = read_process(recorder, &recorder->start_ranges.items[i], true, &recorder->start_residency);
	process_ranges_list_deinit(&recorder->start_ranges);
	return error;
}

struct mmt_error *read_final_residency(struct recorder *recorder, process_residencies *processes)
{
	struct mmt_error *error = NULL;

	for (size_t i = 0; !error && i < recorder->final_ranges.count; i++)
		error = read_process(recorder, &recorder->final_ranges.items[i], false, processes);
	return error;
}

/* The runs from `first` on that fit into one record. */
static struct mmt_error *append_pages(struct recorder *recorder, const struct process_residency *pages, size_t first)
{
	size_t end =
	    pages->runs.count - first > RESIDENT_RUNS_PER_RECORD ? first + RESIDENT_RUNS_PER_RECORD : pages->runs.count;
	struct buffer record;

	own_record_begin_bytes(&record);
	buffer_put_u32(&record, recorder->page_readings);
	buffer_put_u32(&record, end == pages->runs.count ? RESIDENT_PAGES_LAST : 0);
	buffer_put_u64(&record, pages->resident_bytes);
	for (size_t i = first; i < end; i++) {
		buffer_put_u64(&record, pages->runs.items[i].start);
		buffer_put_u64(&record, pages->runs.items[i].end);
	}
	return own_record_append_bytes(recorder, &record, pages->pid, pages->time_ns, RESIDENT_PAGES_ID);
}

struct mmt_error *record_residency(struct recorder *recorder)
{
	process_residencies processes = {0};
	struct mmt_error *error = NULL;

	for (size_t i = 0; !error && i < recorder->interval_ranges.count; i++)
		error = read_process(recorder, &recorder->interval_ranges.items[i], true, &processes);
	for (size_t i = 0; !error && i < processes.count; i++) {
		size_t count = processes.items[i].runs.count, first = 0;

		do {
			error = append_pages(recorder, &processes.items[i], first);
			if (!error)
				error = ring_reader_keep_up(recorder);
			first += RESIDENT_RUNS_PER_RECORD;
		} while (!error && first < count);
	}
	process_residencies_deinit(&processes);
	process_ranges_list_deinit(&recorder->interval_ranges);
	return error;
}
