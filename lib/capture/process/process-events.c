// SPDX-License-Identifier: LGPL-2.1-or-later
#include "capture/process/process-events.h"

#include <string.h>
#include <sys/mman.h>

#include "capture/build-id-notes.h"
#include "capture/jit-code/jit-reader.h"
#include "capture/recorder.h"
#include "capture/ring-reader.h"
#include "capture/runtimes/ask-runtime.h"
#include "capture/runtimes/jit-files.h"

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

	if (event->kind == PROCESS_EXIT && !jit_reader_knows(recorder, event->pid))
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

static void want_snapshot(struct traced_process *process, enum snapshot_kind kind, uint64_t time_ns)
{
	if (process->snapshot_ns > time_ns)
		return;
	process->snapshot_wanted = true;
	process->snapshot_kind = kind;
	process->snapshot_wanted_ns = time_ns;
}

static struct mmt_error *apply_seen(struct recorder *recorder, const struct process_event *event)
{
	struct traced_process *process = process_table_find(&recorder->processes, event->pid);

	if (!process || process->ended)
		process = process_table_add(&recorder->processes, event->pid, false);
	if (!process)
		return &error_no_memory;
	want_snapshot(process, SNAPSHOT_START, event->time_ns);
	return NULL;
}

/* Notes that a new program began in the process with this PID, by fork or exec. */
static struct mmt_error *begin_program(struct recorder *recorder, pid_t pid, uint64_t time_ns)
{
	struct mmt_error *error = jit_reader_end_program(recorder, pid, time_ns);

	if (error)
		return error;
	if (!process_table_note_begin(&recorder->processes, pid, time_ns))
		return &error_no_memory;
	jitdumps_note_begin(recorder, pid, time_ns);
	return NULL;
}

/* A child with the PID of an ended process is a new process. */
static struct mmt_error *apply_fork(struct recorder *recorder, const struct process_event *event)
{
	struct traced_process *process = process_table_find(&recorder->processes, event->pid);
	struct mmt_error *error;

	if ((!process || process->ended) && !process_table_add(&recorder->processes, event->pid, false))
		return &error_no_memory;
	error = begin_program(recorder, event->pid, event->time_ns);
	process = process_table_find(&recorder->processes, event->pid);
	if (!error)
		want_snapshot(process, event->recorded ? SNAPSHOT_FIRST : SNAPSHOT_START, event->time_ns);
	return error;
}

static struct mmt_error *apply_exec(struct recorder *recorder, const struct process_event *event)
{
	struct traced_process *process = process_table_find(&recorder->processes, event->pid);
	struct mmt_error *error = begin_program(recorder, event->pid, event->time_ns);

	if (error || !process)
		return error;
	ask_runtime_forget(recorder, process);
	if (process->exec_ns < event->time_ns)
		process->exec_ns = event->time_ns;
	if (process->executing_ns < event->time_ns)
		process->executing_ns = event->time_ns;
	want_snapshot(process, SNAPSHOT_EXEC, event->time_ns);
	return NULL;
}

/* Calls from now on are of the new program. */
static void apply_first_call(struct recorder *recorder, const struct process_event *event)
{
	struct traced_process *process = process_table_find(&recorder->processes, event->pid);

	if (!process || event->time_ns < process->executing_ns)
		return;
	process->executing_ns = 0;
	/* Its exec has set its arguments. If it has had its snapshot, only its options are read. */
	process->snapshot_wanted = true;
}

/* Opens the mapped file now if it may be gone when the report is made. */
static struct mmt_error *apply_mapping(struct recorder *recorder, const struct process_event *event)
{
	const char *path = recorder->process_events.paths.items + event->path;
	struct traced_process *process = process_table_find(&recorder->processes, event->pid);
	const struct build_id_mapping mapping = {event->pid,	      event->start, event->end, event->device_major,
						 event->device_minor, event->inode, path};
	struct mmt_error *error;

	/* A snapshot taken before this mapping may contain only a part of the program. */
	if (process && process->executing_ns && event->time_ns > process->executing_ns)
		want_snapshot(process, SNAPSHOT_EXEC, event->time_ns);
	if (!(event->protection & PROT_EXEC))
		return NULL;
	error = jit_reader_note(recorder, event->pid, path, event->time_ns, false);
	if (error)
		return error;
	if (process)
		ask_runtime_note_module(process, path);
	error = jitdumps_note(recorder, &mapping, event->time_ns);
	return error ? error : build_id_notes_want(&recorder->jobs.build_ids, &mapping);
}

static struct mmt_error *apply_event(struct recorder *recorder, const struct process_event *event)
{
	switch (event->kind) {
	case PROCESS_SEEN:
		return apply_seen(recorder, event);
	case PROCESS_FORK:
		return apply_fork(recorder, event);
	case PROCESS_EXEC:
		return apply_exec(recorder, event);
	case PROCESS_FIRST_CALL:
		apply_first_call(recorder, event);
		return NULL;
	case PROCESS_MAPPING:
		return apply_mapping(recorder, event);
	case PROCESS_EXIT:
		jit_reader_note_exit(recorder, event->pid);
		return NULL;
	}
	return NULL;
}

struct mmt_error *process_events_apply(struct recorder *recorder)
{
	struct process_events *events = &recorder->process_events;
	struct mmt_error *error = NULL;

	for (size_t i = 0; !error && i < events->items.count; i++)
		error = apply_event(recorder, &events->items.items[i]);
	events->items.count = events->paths.count = 0;
	return error;
}

struct mmt_error *process_events_drain(struct recorder *recorder)
{
	struct mmt_error *error = ring_reader_read(recorder);

	return error ? error : process_events_apply(recorder);
}
