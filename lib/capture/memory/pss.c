// SPDX-License-Identifier: LGPL-2.1-or-later
/* What a process shares with others: see residency.h. */
#include <inttypes.h>

#include "capture/memory/residency.h"
#include "capture/recorder/recorder.h"

#define PAGE_NS 60 /* of a 4 KiB page, if nothing is known about the process: with some margin */
#define PAGE_BYTES 4096
#define ROLLUP_BYTES 4096 /* more than the kernel's lines have */

bool pss_parse_rollup(const char *text, union pss_counts *counts_ret)
{
	*counts_ret = (union pss_counts){
	    .resident_bytes = text_file_bytes(text, "Rss"),
	    .pss_bytes = text_file_bytes(text, "Pss"),
	    .swap_pss_bytes = text_file_bytes(text, "SwapPss"),
	    .private_bytes = text_file_bytes(text, "Private_Clean") + text_file_bytes(text, "Private_Dirty"),
	    .huge_bytes = text_file_bytes(text, "AnonHugePages"),
	    .anonymous_bytes = text_file_bytes(text, "Anonymous"),
	    .pss_anon_bytes = text_file_bytes(text, "Pss_Anon"),
	    .lazy_free_bytes = text_file_bytes(text, "LazyFree"),
	};
	return strstr(text, "\nPss:") != NULL;
}

uint64_t pss_parse_faults(const char *text)
{
	const char *position = strrchr(text, ')'); /* the name before it may contain anything */
	uint64_t minor = 0, major = 0;

	/* state, ppid, pgrp, session, tty, tpgid, flags, minflt, cminflt, majflt */
	if (position && sscanf(position, ") %*c %*d %*d %*d %*d %*d %*u %" SCNu64 " %*u %" SCNu64, &minor, &major) != 2)
		return 0;
	return minor + major;
}

uint64_t pss_expected_ns(uint64_t resident_bytes, uint64_t last_resident_bytes, uint64_t last_took_ns)
{
	uint64_t pages = resident_bytes / PAGE_BYTES, last_pages = last_resident_bytes / PAGE_BYTES;

	if (!last_pages || last_pages < pages / 4)
		return pages * PAGE_NS;
	return (uint64_t)((double)last_took_ns / (double)last_pages * (double)pages);
}

/* One reading of all processes. */
struct pss_reading {
	uint64_t number, spent_ns;
	struct mmt_resident_reading sum; /* their Pss */
	bool incomplete;
	bool shares; /* with other processes of the recording, or it did */
	bool last;
};

static struct mmt_error *read_process(struct recorder *recorder, struct traced_process *process,
				      struct pss_reading *reading)
{
	uint64_t began_ns = blocking_calls_clock_ns(&recorder->calls), took_ns;
	union pss_counts counts;
	char text[ROLLUP_BYTES + 1];
	struct mmt_error *error;
	struct buffer record;
	size_t size;
	bool read = process_text_read(&recorder->calls, process->pid, "smaps_rollup", ROLLUP_BYTES, text, &size) &&
		    pss_parse_rollup(text, &counts);

	if (read && process_text_read(&recorder->calls, process->pid, "stat", ROLLUP_BYTES, text, &size))
		counts.faults = pss_parse_faults(text);
	took_ns = blocking_calls_clock_ns(&recorder->calls) - began_ns;
	reading->spent_ns += took_ns;
	reading->incomplete |= !read;
	error = ring_reader_give_way(recorder);
	if (error || !read)
		return error;
	process->pss_resident_bytes = counts.resident_bytes;
	process->pss_took_ns = took_ns;
	reading->sum.resident_bytes += counts.pss_bytes;
	reading->sum.swapped_bytes += counts.swap_pss_bytes;
	if (reading->last && counts.lazy_free_bytes)
		error = recorder_note(recorder, NOTE_LAZY_FREE, process->pid, reading->sum.time_ns,
				      counts.lazy_free_bytes, reading->number, NULL);
	if (error || !reading->shares)
		return error;
	counts.reading = reading->number;
	own_record_begin_bytes(&record);
	for (unsigned i = 0; i < PSS_FIELDS; i++)
		buffer_put_u64(&record, counts.fields[i]);
	return own_record_append_bytes(recorder, &record, process->pid, reading->sum.time_ns, PSS_ID);
}

struct mmt_error *pss_series_read(struct recorder *recorder, uint64_t time_ns, uint64_t number, bool last)
{
	const struct process_table *processes = &recorder->processes;
	struct pss_reading reading = {.number = number, .sum.time_ns = time_ns, .last = last};
	struct mmt_error *error = NULL;
	size_t count = 0;

	for (size_t i = 0; i < processes->items.count; i++)
		count += !processes->items.items[i]->ended && processes->items.items[i]->resident_bytes;
	/* Once one process is left, it shares less than the latest reading says. */
	reading.shares =
	    count >= 2 || recorder->jobs.memory->pss_processes >= 2 || (last && recorder->jobs.memory->pss_processes);
	if (!last && (!reading.shares || clock_now_ns() < recorder->jobs.memory->pss_next_ns))
		return NULL;
	recorder->jobs.memory->pss_processes = reading.shares ? count : 0;
	process_table_each(process, processes, !error) {
		if (process->ended || !process->resident_bytes)
			continue;
		if (pss_expected_ns(process->resident_bytes, process->pss_resident_bytes, process->pss_took_ns) >
		    LIMIT_PSS_WALK_NS)
			reading.incomplete = true;
		else
			error = read_process(recorder, process, &reading);
	}
	if (!error && count > 1 && !reading.incomplete &&
	    !vector_push(&recorder->jobs.memory->resident_series.pss_sums, reading.sum))
		error = &error_no_memory;
	recorder->jobs.memory->pss_next_ns = clock_now_ns() + PSS_COST_SHARE * reading.spent_ns;
	return error;
}
