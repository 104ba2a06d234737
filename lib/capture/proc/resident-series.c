// SPDX-License-Identifier: LGPL-2.1-or-later
#include "capture/proc/resident-series.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "capture/perf/clock.h"
#include "capture/proc/proc.h"
#include "capture/proc/text-file.h"
#include "capture/recorder.h"
#include "capture/session.h"

#define INTERVAL_NS 50000000ULL
#define ELAPSED_SHARE 256     /* shortest interval: the elapsed time divided by this */
#define PROCESS_NS 5000000ULL /* for each process: no more than 200 notes a second */
#define COST_SHARE 200	      /* a reading may take 1/this of the recorder's time */

/* The second number of statm, in pages. */
bool resident_series_size(pid_t pid, uint64_t *bytes_ret)
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
		struct traced_process *process = &recorder->processes.items.items[i];
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
