// SPDX-License-Identifier: LGPL-2.1-or-later
#include "capture/targets.h"

#include <stdint.h>
#include <unistd.h>

#include "capture/drain.h"
#include "capture/proc.h"

#define ATTACH_NS_MAX 20000000000ULL
#define SETTLE_MICROSECONDS 1000 /* for new threads to run for the first time, and say that they need nothing */

static struct mmt_error *add_targets(struct recorder *recorder)
{
	for (size_t i = 0; i < recorder->options->pid_count; i++) {
		pid_t pid = recorder->options->pids[i];
		struct mmt_error *error;

		if (known_processes_find(&recorder->processes, pid))
			continue;
		/* The descriptor first: the process that is checked is then the one that is watched. */
		if (pid > 0 && !known_processes_add(&recorder->processes, pid, true))
			return &error_no_memory;
		error = proc_check_target(pid);
		if (error)
			return error;
	}
	return NULL;
}

static struct mmt_error *refuse_ended(const struct recorder *recorder)
{
	return error_create(MMT_ERROR_NO_PROCESS, "process %d ended while mmtrace attached to it",
			    recorder->options->pids[0]);
}

/* The threads of all known processes that have no events yet. */
static struct mmt_error *list_uncovered(struct recorder *recorder, proc_pids *uncovered)
{
	for (size_t i = 0; i < recorder->processes.items.count; i++) {
		const struct known_process *process = &recorder->processes.items.items[i];
		proc_pids threads = {0};
		bool ok = true;

		if (process->ended || !proc_list_threads(process->pid, &threads))
			threads.count = 0;
		for (size_t k = 0; ok && k < threads.count; k++) {
			if (!attach_is_covered(&recorder->attachment, threads.items[k]))
				ok = vector_push(uncovered, threads.items[k]);
		}
		vector_deinit(&threads);
		if (!ok)
			return &error_no_memory;
	}
	return NULL;
}

/* One look at the processes, while threads start and end. */
static struct mmt_error *attach_uncovered(struct recorder *recorder, const proc_pids *uncovered)
{
	size_t per_thread = recorder->rings.cpus.count * recorder->events.items.count;
	size_t attached = recorder->attachment.events.count / per_thread;
	struct mmt_error *error = attach_reserve(&recorder->attachment, attached + uncovered->count);

	for (size_t i = 0; !error && i < uncovered->count; i++) {
		pid_t tid = uncovered->items[i];
		bool gone;

		error = drain_rings(recorder);
		if (error || attach_is_covered(&recorder->attachment, tid))
			continue;
		error = attach_thread(&recorder->attachment, tid, true, &gone);
		if (!error && gone && proc_is_zombie(tid) && !attach_skip_thread(&recorder->attachment, tid))
			error = &error_no_memory;
	}
	return error;
}

/* `none_ret`: there was nothing left to attach to. */
static struct mmt_error *attach_pass(struct recorder *recorder, bool *none_ret)
{
	proc_pids uncovered = {0};
	struct mmt_error *error = drain_rings(recorder);

	if (!error)
		error = list_uncovered(recorder, &uncovered);
	if (!error)
		error = attach_uncovered(recorder, &uncovered);
	*none_ret = uncovered.count == 0;
	if (!error && uncovered.count)
		usleep(SETTLE_MICROSECONDS);
	vector_deinit(&uncovered);
	if (!error && known_processes_update(&recorder->processes))
		error = refuse_ended(recorder);
	return error;
}

struct mmt_error *targets_attach(struct recorder *recorder)
{
	struct mmt_error *error = add_targets(recorder);
	uint64_t begin_ns = recorder_now_ns();
	bool none = false;

	while (!error && !none && recorder_now_ns() - begin_ns < ATTACH_NS_MAX)
		error = attach_pass(recorder, &none);
	if (error)
		return error;
	if (!none)
		recorder_message(recorder, true,
				 "the target starts threads faster than mmtrace can attach to them: events of some "
				 "may be missing");
	attach_close_fences(&recorder->attachment);
	recorder_message(recorder, false, "attached to %zu threads in %.1f ms", recorder->attachment.covered.count,
			 (double)(recorder_now_ns() - begin_ns) / 1e6);
	return NULL;
}
