// SPDX-License-Identifier: LGPL-2.1-or-later
/* The queue of process events: see recorder.h. */
#include "capture/recorder/recorder.h"

void process_events_deinit(struct process_events *events)
{
	vector_deinit(&events->items);
	vector_deinit(&events->paths);
	map_deinit(&events->executing);
}

struct mmt_error *process_events_push(struct recorder *recorder, const struct process_event *event, const char *path)
{
	struct process_events *events = &recorder->process_events;
	struct process_event copy = *event;
	const uint64_t *known_ns;
	bool ok = true;

	/* A busy target maps data 100,000 times a second or more, which concerns neither the process table nor a job.
	 */
	if (event->kind == PROCESS_MAPPING && !(event->protection & PROT_EXEC))
		return NULL;
	copy.path = events->paths.count;
	for (size_t i = 0; ok && event->kind == PROCESS_MAPPING && (!i || path[i - 1]); i++)
		ok = vector_push(&events->paths, path[i]);
	/* The later one of several execs counts. */
	known_ns = event->kind == PROCESS_EXEC ? map_get(&events->executing, (uint64_t)event->pid) : NULL;
	if (event->kind == PROCESS_EXEC && (!known_ns || *known_ns <= event->time_ns))
		ok = map_put(&events->executing, (uint64_t)event->pid, event->time_ns);
	return ok && vector_push(&events->items, copy) ? NULL : &error_no_memory;
}

struct mmt_error *process_events_note_call(struct recorder *recorder, pid_t pid, uint64_t time_ns)
{
	struct process_events *events = &recorder->process_events;
	const struct process_event call = {.kind = PROCESS_FIRST_CALL, .pid = pid, .time_ns = time_ns};
	const uint64_t *exec_ns = events->executing.count ? map_get(&events->executing, (uint64_t)pid) : NULL;

	if (!exec_ns || time_ns < *exec_ns)
		return NULL;
	(void)map_remove(&events->executing, (uint64_t)pid);
	return process_events_push(recorder, &call, NULL);
}

struct mmt_error *process_events_end_exec(struct recorder *recorder, pid_t pid)
{
	if (!map_get(&recorder->process_events.executing, (uint64_t)pid) || proc_is_loading(pid))
		return NULL;
	return process_events_note_call(recorder, pid, clock_now_ns());
}

bool process_events_want_snapshot(const struct recorder *recorder, pid_t pid)
{
	const struct process_events *events = &recorder->process_events;
	bool wanted = map_get(&events->executing, (uint64_t)pid) && proc_is_loading(pid);

	array_while(event, events->items.items, events->items.count, !wanted) {
		wanted = event->pid == pid && (event->kind == PROCESS_FORK || event->kind == PROCESS_EXEC ||
					       event->kind == PROCESS_FIRST_CALL);
	}
	return wanted;
}
