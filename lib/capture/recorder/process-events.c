// SPDX-License-Identifier: LGPL-2.1-or-later
#include "capture/recorder/process-events.h"

#include <string.h>
#include <sys/mman.h>

#include "capture/recorder/recorder.h"

void process_events_deinit(struct process_events *events)
{
	vector_deinit(&events->items);
	vector_deinit(&events->paths);
	map_deinit(&events->executing);
}

/* Is the process between its exec and its first call? Until then the kernel maps the new program. */
static bool is_executing(const struct process_events *events, pid_t pid, uint64_t time_ns)
{
	const uint64_t *exec_ns = events->executing.count ? map_get(&events->executing, (uint64_t)pid) : NULL;

	return exec_ns && time_ns > *exec_ns;
}

static bool push_path(struct process_events *events, const char *path)
{
	bool pushed = true;

	do
		pushed = vector_push(&events->paths, *path);
	while (pushed && *path++);
	return pushed;
}

struct mmt_error *process_events_push(struct recorder *recorder, const struct process_event *event, const char *path)
{
	struct process_events *events = &recorder->process_events;
	struct process_event copy = *event;
	bool pushed = true;

	if (event->kind == PROCESS_EXIT && !events->knows_code(recorder, event->pid))
		return NULL;
	copy.path = events->paths.count;
	if (event->kind == PROCESS_MAPPING) {
		/* A busy target maps data 100,000 times a second or more, which concerns neither the process table nor
		 * a job. */
		if (!(event->protection & PROT_EXEC) && !is_executing(events, event->pid, event->time_ns))
			return NULL;
		pushed = push_path(events, path);
	}
	if (pushed && event->kind == PROCESS_EXEC) {
		const uint64_t *exec_ns = map_get(&events->executing, (uint64_t)event->pid);

		/* The rings are read one CPU after the other, so the oldest of several records may be read last. */
		if (!exec_ns || *exec_ns < event->time_ns)
			pushed = map_put(&events->executing, (uint64_t)event->pid, event->time_ns);
	}
	return pushed && vector_push(&events->items, copy) ? NULL : &error_no_memory;
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

bool process_events_want_snapshot(const struct recorder *recorder, pid_t pid)
{
	const struct process_events *events = &recorder->process_events;
	const struct traced_process *process = process_table_find(&recorder->processes, pid);

	for (size_t i = 0; i < events->items.count; i++) {
		const struct process_event *event = &events->items.items[i];

		if (event->pid != pid)
			continue;
		if (event->kind == PROCESS_FORK || event->kind == PROCESS_EXEC)
			return true;
		if (event->kind == PROCESS_MAPPING && process && process->executing_ns &&
		    event->time_ns > process->executing_ns)
			return true;
	}
	return false;
}
