// SPDX-License-Identifier: LGPL-2.1-or-later
#include "capture/process/process-table.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "capture/jit-code/jit-code.h"
#include "capture/build-id-notes.h"
#include "capture/perf/clock.h"
#include "capture/procfs/proc.h"
#include "capture/recorder.h"
#include "capture/ring-reader.h"
#include "capture/runtimes/ask-runtime.h"
#include "capture/runtimes/jit-files.h"

#define SPARE_DESCRIPTORS 32 /* for temporary use: maps, modules */
#define LOOK_NS 1000000000ULL
#define FORGET_NS 1000000000ULL /* by then its last records have been read */

void process_table_release(struct traced_process *process)
{
	if (process->pidfd >= 0)
		close(process->pidfd);
	if (process->tmp_directory >= 0)
		close(process->tmp_directory);
	helper_drop(&process->helper);
	process->pidfd = process->tmp_directory = -1;
}

void process_table_deinit(struct process_table *processes)
{
	for (size_t i = 0; i < processes->items.count; i++) {
		struct traced_process *process = processes->items.items[i];

		process_table_release(process);
		vector_deinit(&process->perf_map.growth);
		free(process->perf_map.text);
		free(process);
	}
	vector_deinit(&processes->items);
	vector_deinit(&processes->unplaced);
	map_deinit(&processes->index_of_pid);
}

static void add_begin(struct program_begins *begins, uint64_t time_ns)
{
	unsigned place = begins->count;

	while (place && begins->times_ns[place - 1] > time_ns)
		place--;
	if (begins->count == PROGRAM_BEGINS_MAX) {
		begins->forgot = true;
		if (!place)
			return;
		place--;
		memmove(begins->times_ns, begins->times_ns + 1, place * sizeof(*begins->times_ns));
	} else {
		memmove(begins->times_ns + place + 1, begins->times_ns + place,
			(begins->count - place) * sizeof(*begins->times_ns));
		begins->count++;
	}
	begins->times_ns[place] = time_ns;
}

bool process_table_find_begin(const struct process_table *processes, pid_t pid, uint64_t time_ns,
			      uint64_t *began_ns_ret)
{
	const struct traced_process *process = process_table_find(processes, pid);
	const struct program_begins *begins = process ? &process->begins : NULL;

	*began_ns_ret = 0;
	for (unsigned i = 0; begins && i < begins->count && begins->times_ns[i] <= time_ns; i++)
		*began_ns_ret = begins->times_ns[i];
	for (size_t i = 0; !begins && i < processes->unplaced.count; i++) {
		const struct unplaced_begin *begin = &processes->unplaced.items[i];

		if (begin->pid == pid && begin->time_ns <= time_ns && begin->time_ns > *began_ns_ret)
			*began_ns_ret = begin->time_ns;
	}
	return *began_ns_ret || (begins && !begins->forgot);
}

bool process_table_note_begin(struct process_table *processes, pid_t pid, uint64_t time_ns)
{
	struct traced_process *process = process_table_find(processes, pid);
	struct unplaced_begin begin = {pid, time_ns};
	size_t kept = 0;

	if (process) {
		add_begin(&process->begins, time_ns);
		return true;
	}
	/* Processes not reported by then are not recorded. */
	for (size_t i = 0; i < processes->unplaced.count; i++) {
		if (processes->unplaced.items[i].time_ns + FORGET_NS > time_ns)
			processes->unplaced.items[kept++] = processes->unplaced.items[i];
	}
	processes->unplaced.count = kept;
	return vector_push(&processes->unplaced, begin);
}

/* What is known about its PID: the end of an earlier process and the start of this one may be read in any order. */
static void take_begins(struct process_table *processes, struct traced_process *process)
{
	const struct traced_process *earlier = process_table_find(processes, process->pid);
	size_t kept = 0;

	if (earlier)
		process->begins = earlier->begins;
	for (size_t i = 0; i < processes->unplaced.count; i++) {
		const struct unplaced_begin begin = processes->unplaced.items[i];

		if (begin.pid == process->pid)
			add_begin(&process->begins, begin.time_ns);
		else
			processes->unplaced.items[kept++] = begin;
	}
	processes->unplaced.count = kept;
}

struct traced_process *process_table_add(struct process_table *processes, pid_t pid, bool target)
{
	struct traced_process *process = calloc(1, sizeof(*process));

	if (!process || !vector_push(&processes->items, process)) {
		free(process);
		return NULL;
	}
	process->pid = pid;
	process->target = target;
	process->tmp_directory = -1;
	process->pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
	process->ended = process->pidfd < 0 && errno == ESRCH;
	process->pidfd = process_table_spare(process->pidfd);
	take_begins(processes, process);
	processes->descriptors_short |= process->pidfd < 0 && !process->ended;
	if (!map_put(&processes->index_of_pid, (uint64_t)pid, processes->items.count - 1)) {
		process_table_release(process);
		processes->items.count--;
		free(process);
		return NULL;
	}
	return process;
}

void process_table_drop_last(struct process_table *processes)
{
	struct traced_process *process = processes->items.items[processes->items.count - 1];

	(void)map_remove(&processes->index_of_pid, (uint64_t)process->pid);
	process_table_release(process);
	processes->items.count--;
	free(process);
}

struct traced_process *process_table_find(const struct process_table *processes, pid_t pid)
{
	const uint64_t *index = map_get(&processes->index_of_pid, (uint64_t)pid);

	return index ? processes->items.items[*index] : NULL;
}

int process_table_spare(int fd)
{
	struct rlimit limit;

	if (fd < 0 || getrlimit(RLIMIT_NOFILE, &limit) < 0 || (rlim_t)fd + SPARE_DESCRIPTORS < limit.rlim_cur)
		return fd;
	close(fd);
	return -1;
}

static bool has_ended(struct traced_process *process)
{
	struct pollfd poll_fd = {.fd = process->pidfd, .events = POLLIN};
	uint64_t now_ns;

	if (process->pidfd >= 0)
		return poll(&poll_fd, 1, 0) > 0;
	now_ns = clock_now_ns();
	if (now_ns - process->looked_after_ns < LOOK_NS)
		return false;
	process->looked_after_ns = now_ns;
	return proc_has_ended(process->pid);
}

bool process_table_update(struct process_table *processes)
{
	bool all_ended = true, any_target = false;

	for (size_t i = 0; i < processes->items.count; i++) {
		struct traced_process *process = processes->items.items[i];

		helper_reap(&process->helper);
		if (!process->ended)
			process->ended = has_ended(process);
		if (process->ended && !process->ended_ns)
			process->ended_ns = clock_now_ns();
		any_target |= process->target;
		all_ended &= process->ended || !process->target;
	}
	return any_target && all_ended;
}

static bool can_be_forgotten(const struct traced_process *process, uint64_t now_ns)
{
	return process->ended && process->ended_ns && now_ns - process->ended_ns > FORGET_NS && !process->target &&
	       process->pidfd < 0 && process->tmp_directory < 0 && !process->perf_map.text && !process->helper.dying;
}

void process_table_forget_ended(struct process_table *processes)
{
	uint64_t now_ns = clock_now_ns();
	size_t kept = 0;

	for (size_t i = 0; i < processes->items.count; i++) {
		struct traced_process *process = processes->items.items[i];
		uint64_t *index = map_get(&processes->index_of_pid, (uint64_t)process->pid);
		bool youngest = index && *index == i;

		if (can_be_forgotten(process, now_ns)) {
			if (youngest)
				(void)map_remove(&processes->index_of_pid, (uint64_t)process->pid);
			vector_deinit(&process->perf_map.growth);
			free(process);
			processes->forgotten++;
			continue;
		}
		if (youngest)
			*index = kept;
		processes->items.items[kept++] = process;
	}
	processes->items.count = kept;
}

void in_flight_deinit(struct in_flight *in_flight)
{
	vector_deinit(&in_flight->threads);
	map_deinit(&in_flight->read_ns);
}

bool in_flight_add(struct in_flight *in_flight, pid_t pid, uint64_t read_ns)
{
	proc_pids tids = {0};
	bool done = proc_list_threads(pid, &tids, NULL);

	for (size_t i = 0; done && i < tids.count; i++) {
		struct in_flight_thread thread = {.pid = pid, .tid = tids.items[i]};

		if (proc_may_be_in_memory_call(pid, thread.tid))
			done = vector_push(&in_flight->threads, thread) &&
			       map_put(&in_flight->read_ns, (uint32_t)thread.tid, read_ns);
	}
	vector_deinit(&tids);
	return done;
}

void in_flight_note_outside(struct in_flight *in_flight, pid_t tid, uint64_t time_ns)
{
	const uint64_t *read_ns = in_flight->threads.count ? map_get(&in_flight->read_ns, (uint32_t)tid) : NULL;

	if (read_ns && time_ns > *read_ns)
		(void)map_remove(&in_flight->read_ns, (uint32_t)tid);
}

void in_flight_remove_returned(struct in_flight *in_flight)
{
	size_t kept = 0;

	for (size_t i = 0; i < in_flight->threads.count; i++) {
		struct in_flight_thread thread = in_flight->threads.items[i];

		if (map_get(&in_flight->read_ns, (uint32_t)thread.tid) &&
		    proc_may_be_in_memory_call(thread.pid, thread.tid))
			in_flight->threads.items[kept++] = thread;
	}
	in_flight->threads.count = kept;
}

void process_events_deinit(struct process_events *events)
{
	vector_deinit(&events->items);
	vector_deinit(&events->paths);
	map_deinit(&events->executing);
	map_deinit(&events->code_pids);
}

/* The kernel maps the new program between its exec and its first call. */
static bool is_executing(const struct process_events *events, pid_t pid, uint64_t time_ns)
{
	const uint64_t *exec_ns = events->executing.count ? map_get(&events->executing, (uint64_t)pid) : NULL;

	return exec_ns && time_ns > *exec_ns;
}

/* A busy target maps data 100,000 times a second or more: keep such mappings out of the queue. */
static bool is_of_interest(const struct recorder *recorder, const struct process_event *mapping)
{
	const struct process_events *events = &recorder->process_events;

	return mapping->protection & PROT_EXEC || is_executing(events, mapping->pid, mapping->time_ns) ||
	       (events->code_pids.count && map_get(&events->code_pids, (uint64_t)mapping->pid)) ||
	       jit_code_overlaps(recorder, mapping->pid, mapping->start, mapping->end);
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

	if (event->kind == PROCESS_EXIT && !jit_code_overlaps(recorder, event->pid, 0, UINT64_MAX))
		return NULL;
	copy.path = events->paths.count;
	if (event->kind == PROCESS_MAPPING) {
		if (!is_of_interest(recorder, event))
			return NULL;
		pushed = push_path(events, path);
		if (pushed && event->protection & PROT_EXEC)
			pushed = map_put(&events->code_pids, (uint64_t)event->pid, 1);
	}
	if (pushed && event->kind == PROCESS_EXEC) {
		const uint64_t *exec_ns = map_get(&events->executing, (uint64_t)event->pid);

		/* The rings are read one CPU after the other: the oldest of several records may come last. */
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
	struct traced_process *process = process_table_add(&recorder->processes, event->pid, false);

	if (!process)
		return &error_no_memory;
	want_snapshot(process, SNAPSHOT_START, event->time_ns);
	return NULL;
}

/* A new program began in the process with this PID, by fork or exec. */
static struct mmt_error *begin_program(struct recorder *recorder, pid_t pid, uint64_t time_ns)
{
	struct mmt_error *error = jit_code_end_program(recorder, pid, time_ns);

	if (error)
		return error;
	if (!process_table_note_begin(&recorder->processes, pid, time_ns))
		return &error_no_memory;
	jitdumps_note_begin(recorder, pid, time_ns);
	return NULL;
}

/* A child with the PID of an earlier, ended process is a new one. */
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
	/* The rings are read one CPU after the other: the oldest of several records may come last. */
	ask_runtime_forget(process);
	if (process->exec_ns < event->time_ns)
		process->exec_ns = event->time_ns;
	if (process->executing_ns < event->time_ns)
		process->executing_ns = event->time_ns;
	want_snapshot(process, SNAPSHOT_EXEC, event->time_ns);
	return NULL;
}

/* From now on the new program's own calls map memory. */
static void apply_first_call(struct recorder *recorder, const struct process_event *event)
{
	struct traced_process *process = process_table_find(&recorder->processes, event->pid);

	if (process && event->time_ns >= process->executing_ns)
		process->executing_ns = 0;
}

/* The files of executable mappings may be gone when the report is made. */
static struct mmt_error *apply_mapping(struct recorder *recorder, const struct process_event *event)
{
	const char *path = recorder->process_events.paths.items + event->path;
	struct traced_process *process = process_table_find(&recorder->processes, event->pid);
	const struct build_id_mapping mapping = {event->pid,	      event->start, event->end, event->device_major,
						 event->device_minor, event->inode, path};
	const struct generated_mapping generated = {event->pid,	       event->start, event->end, event->time_ns,
						    event->protection, path,	     false};
	struct mmt_error *error;

	/* A snapshot taken earlier may have seen only part of the program. */
	if (process && process->executing_ns && event->time_ns > process->executing_ns)
		want_snapshot(process, SNAPSHOT_EXEC, event->time_ns);
	error = jit_code_note(recorder, &generated);
	if (error || !(event->protection & PROT_EXEC))
		return error;
	if (process)
		ask_runtime_note_image(process, path);
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
		jit_code_note_exit(recorder, event->pid);
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
	if (events->code_pids.count)
		map_deinit(&events->code_pids);
	return error;
}

struct mmt_error *process_events_drain(struct recorder *recorder)
{
	struct mmt_error *error = ring_reader_read(recorder);

	return error ? error : process_events_apply(recorder);
}
