// SPDX-License-Identifier: LGPL-2.1-or-later
#include "capture/proc/start-and-end-residency.h"

#include <errno.h>

#include "capture/perf/clock.h"
#include "capture/proc/proc.h"
#include "capture/proc/residency.h"
#include "capture/proc/resident-series.h"
#include "capture/recorder.h"
#include "capture/ring-reader.h"

#define START_RUNS_MAX (1u << 20) /* they stay in memory during the recording */
#define RANGES_AT_ONCE 4096

/* Events are enabled: keep up with the rings. */
static struct mmt_error *read_start_ranges(struct recorder *recorder, struct residency_reader *reader,
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
		reader->gave_up |= pages->runs.count > START_RUNS_MAX;
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

static struct mmt_error *read_process(struct recorder *recorder, const struct process_ranges *process, bool at_start,
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
	reader.gave_up |= !resident_series_size(process->pid, &before) && at_start;
	error = at_start ? read_start_ranges(recorder, &reader, process, pages)
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

	for (size_t i = 0; i < recorder->start_ranges.count; i++) {
		if (!error)
			error =
			    read_process(recorder, &recorder->start_ranges.items[i], true, &recorder->start_residency);
		vector_deinit(&recorder->start_ranges.items[i].ranges);
	}
	vector_deinit(&recorder->start_ranges);
	return error;
}

struct mmt_error *read_final_residency(struct recorder *recorder, process_residencies *processes)
{
	struct mmt_error *error = NULL;

	for (size_t i = 0; !error && i < recorder->final_ranges.count; i++)
		error = read_process(recorder, &recorder->final_ranges.items[i], false, processes);
	return error;
}
