// SPDX-License-Identifier: LGPL-2.1-or-later
#include "capture/targets.h"

#include <unistd.h>

#include "capture/drain.h"
#include "capture/proc.h"

#define PASSES_MAX 1000
#define SETTLE_MICROSECONDS 2000 /* for new threads to run for the first time */

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

/*
 * One look at the processes. Threads may start and end all the while; those that inherit the whole set say so when they
 * run first (see the fence), and must not get a second one.
 */
static struct mmt_error *attach_uncovered(struct recorder *recorder, const proc_pids *uncovered, bool *any_ret)
{
	size_t per_thread = recorder->rings.cpus.count * recorder->events.items.count;
	size_t attached = recorder->attachment.events.count / per_thread;
	struct mmt_error *error = attach_reserve(&recorder->attachment, attached + uncovered->count);

	for (size_t i = 0; !error && i < uncovered->count; i++) {
		bool gone;

		error = drain_rings(recorder);
		if (error || attach_is_covered(&recorder->attachment, uncovered->items[i]))
			continue;
		error = attach_thread(&recorder->attachment, uncovered->items[i], true, &gone);
		*any_ret |= !error && !gone;
	}
	return error;
}

struct mmt_error *targets_attach(struct recorder *recorder)
{
	struct mmt_error *error = add_targets(recorder);
	bool any = true;

	for (unsigned pass = 0; !error && any && pass < PASSES_MAX; pass++) {
		proc_pids uncovered = {0};

		any = false;
		error = list_uncovered(recorder, &uncovered);
		if (!error && pass && uncovered.count)
			usleep(SETTLE_MICROSECONDS);
		if (!error)
			error = attach_uncovered(recorder, &uncovered, &any);
		vector_deinit(&uncovered);
		if (!error && known_processes_update(&recorder->processes))
			error = refuse_ended(recorder);
	}
	if (error)
		return error;
	if (any)
		recorder_message(
		    recorder, true,
		    "the target starts threads faster than mmtrace can attach to them: some may be missing");
	attach_close_fences(&recorder->attachment);
	recorder_message(recorder, false, "attached to %zu threads", recorder->attachment.covered.count);
	return NULL;
}
