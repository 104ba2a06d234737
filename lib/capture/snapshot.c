// SPDX-License-Identifier: LGPL-2.1-or-later
#include "capture/snapshot.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#include "base/bytes.h"
#include "base/cleanup.h"
#include "base/limits.h"
#include "capture/runtimes/ask-runtime.h"
#include "capture/procfs/clock.h"
#include "capture/recorder/ring-reader.h"
#include "capture/memory/residency.h"
#include "capture/jit-code/jit-reader.h"
#include "capture/recorder/recorder.h"
#include "capture/procfs/proc.h"

#define READ_BYTES 4096 /* the kernel returns this much at once, while it holds the mmap_lock */
#define LINE_BYTES_MAX (4 * LIMIT_PATH_BYTES + 256)

/* A snapshot in progress. */
struct reading {
	struct recorder *recorder;
	pid_t pid;
	enum snapshot_kind kind;
	uint64_t begin_ns; /* time before the open(): the maps are of the program at this time, or of a later one */
	struct process_ranges *ranges; /* receives the ranges whose resident pages are read next; NULL: not needed */
	struct buffer record;
	char line[LINE_BYTES_MAX]; /* the incomplete last line of the previous read() */
	size_t line_length;
	uint64_t line_ns; /* time of the read() that returned the beginning of this line */
	uint64_t read_ns; /* time of the latest read() */
	bool stuck;	  /* the kernel does not answer */
	bool ended;	  /* the maps were read to the end */
	bool unreadable;  /* a line has an unknown format, so the snapshot gets no end record */
};

static struct mmt_error *append_name(struct recorder *recorder, struct buffer *record, pid_t pid, pid_t tid,
				     const char *name, uint64_t time_ns, uint64_t id)
{
	own_record_begin(record, PERF_RECORD_COMM, 0);
	buffer_put_u32(record, (uint32_t)pid);
	buffer_put_u32(record, (uint32_t)tid);
	buffer_put_string(record, name);
	return own_record_append(recorder, record, pid, tid, time_ns, id);
}

static struct mmt_error *append_line(struct reading *reading, const struct procmaps_line *line)
{
	uint16_t misc = PERF_RECORD_MISC_USER;
	struct buffer *record = &reading->record;

	if (!(line->protection & PROT_EXEC))
		misc |= PERF_RECORD_MISC_MMAP_DATA;
	own_record_begin(record, PERF_RECORD_MMAP2, misc);
	buffer_put_u32(record, (uint32_t)reading->pid);
	buffer_put_u32(record, (uint32_t)reading->pid);
	buffer_put_u64(record, line->start);
	buffer_put_u64(record, line->end - line->start);
	buffer_put_u64(record, line->file_offset);
	buffer_put_u32(record, line->device_major);
	buffer_put_u32(record, line->device_minor);
	buffer_put_u64(record, line->inode);
	buffer_put_u64(record, 0); /* inode generation, which is not in /proc/PID/maps */
	buffer_put_u32(record, line->protection);
	buffer_put_u32(record, line->shared ? MAP_SHARED : MAP_PRIVATE);
	buffer_put_string(record, line->path);
	return own_record_append(reading->recorder, record, reading->pid, reading->pid, reading->line_ns,
				 SNAPSHOT_ID(reading->kind, SNAPSHOT_PART_LINE));
}

static struct mmt_error *handle_line(struct reading *reading, const char *text, size_t length)
{
	struct procmaps_line line;
	struct mmt_error *error;

	if (!procmaps_parse(text, length, &line)) {
		reading->unreadable = true;
		return NULL;
	}
	if (reading->ranges) {
		struct mapped_range range = {line.start, line.end, !line.shared && !line.inode,
					     line.protection == PROT_NONE};

		if (!vector_push(&reading->ranges->ranges, range))
			return &error_no_memory;
	}
	reading->recorder->jobs.memory->snapshot_lines++;
	error = append_line(reading, &line);
	if (!error && line.protection & PROT_EXEC)
		error = jit_reader_note(reading->recorder, reading->pid, line.path, reading->line_ns,
					reading->kind == SNAPSHOT_FIRST);
	if (!error && line.protection & PROT_EXEC) {
		const struct build_id_mapping mapping = {reading->pid,	    line.start, line.end, line.device_major,
							 line.device_minor, line.inode, line.path};

		struct traced_process *process = process_table_find(&reading->recorder->processes, reading->pid);

		if (process)
			ask_runtime_note_module(process, line.path);
		error = jitdumps_note(reading->recorder, &mapping, reading->begin_ns);
		if (!error)
			error = build_id_notes_want(&reading->recorder->jobs.build_ids, &mapping);
	}
	return error;
}

/* Appends to the current line. If the line is too long, the end of its path is dropped; the rest is still longer than a
 * record can hold. */
static void add_to_line(struct reading *reading, const char *text, size_t length)
{
	size_t room = sizeof(reading->line) - reading->line_length;

	if (length > room)
		length = room;
	memcpy(reading->line + reading->line_length, text, length);
	reading->line_length += length;
}

/* Splits the bytes of one read() into lines. */
static struct mmt_error *handle_text(struct reading *reading, const char *text, size_t size, uint64_t time_ns)
{
	while (size) {
		const char *newline = memchr(text, '\n', size);
		size_t length = newline ? (size_t)(newline - text) : size;
		struct mmt_error *error;

		if (reading->line_length == 0)
			reading->line_ns = time_ns;
		add_to_line(reading, text, length);
		if (!newline)
			return NULL;
		error = handle_line(reading, reading->line, reading->line_length);
		if (error)
			return error;
		reading->line_length = 0;
		text += length + 1;
		size -= length + 1;
	}
	return NULL;
}

/*
 * Reads the maps to their end. The kernel generates the bytes of a read() at some time between the start and the end of
 * the call. The lines get the start as their time: a call that returned later is then applied to the lines. At worst
 * its effect is applied twice, but it is never missed. The start is that in the helper process: a busy machine may run
 * the helper milliseconds after it was asked, and what happens twice for so long no longer fits together.
 */
static struct mmt_error *read_maps(struct reading *reading, int fd)
{
	char text[READ_BYTES];

	for (;;) {
		struct blocking_calls *calls = &reading->recorder->calls;
		ssize_t count = process_file_read(calls, reading->pid, fd, text, sizeof(text), -1);
		struct mmt_error *error;

		reading->stuck = count < 0 && errno == ETIMEDOUT;
		if (count >= 0)
			reading->read_ns = calls->began_ns;
		if (count <= 0) /* ESRCH and similar: the process has exited in the meantime */
			return NULL;
		error = handle_text(reading, text, (size_t)count, reading->read_ns);
		if (!error)
			error = ring_reader_give_way(reading->recorder);
		if (error)
			return error;
	}
}

/* Does the address space for which the descriptor was opened still exist? Exit and exec free it, and the maps are then
 * truncated or empty. A snapshot that may be truncated gets no end record. */
static bool still_has_memory(const struct reading *reading, int fd)
{
	char byte;

	return process_file_read(&reading->recorder->calls, reading->pid, fd, &byte, 1, 0) == 1;
}

/* Did the process call exec during the snapshot, or before it? The maps of a new program are checked only after a
 * snapshot has described it: what the kernel's ELF loader unmaps causes no event and would be reported as a
 * mismatch. */
static struct mmt_error *check_exec(const struct reading *reading, bool *exec_ret)
{
	struct recorder *recorder = reading->recorder;
	const struct traced_process *process = process_table_find(&recorder->processes, reading->pid);
	struct mmt_error *error;

	*exec_ret = false;
	if (reading->kind != SNAPSHOT_STOP && reading->kind != SNAPSHOT_INTERVAL)
		return NULL;
	error = ring_reader_catch_up(recorder);
	*exec_ret = process && (process->snapshot_wanted || process_events_want_snapshot(recorder, reading->pid));
	return error;
}

/* Writes the lines of one part, and the name of the process. Lines have the time before their read(), so write the name
 * that the process has after `time_ns`, or else its earlier name. An older name with a later time would replace the
 * name that an exec has set. */
static struct mmt_error *append_part(struct reading *reading, char name[PROC_NAME_BYTES], uint64_t time_ns,
				     unsigned int part)
{
	(void)proc_name(reading->pid, reading->pid, name);
	return append_name(reading->recorder, &reading->record, reading->pid, reading->pid, name, time_ns,
			   SNAPSHOT_ID(reading->kind, part));
}

static struct mmt_error *take(struct reading *reading, int fd, char name[PROC_NAME_BYTES])
{
	struct mmt_error *error = append_part(reading, name, reading->begin_ns, SNAPSHOT_PART_BEGIN);
	bool exec = false;

	if (!error)
		error = read_maps(reading, fd);
	if (reading->unreadable)
		recorder_message(reading->recorder, true,
				 "cannot read all mappings of process %d: /proc/%d/maps has a line of unknown format",
				 reading->pid, reading->pid);
	if (!error)
		error = check_exec(reading, &exec);
	if (error || reading->unreadable || exec || reading->stuck || !still_has_memory(reading, fd))
		return error;
	reading->ended = true;
	return append_part(reading, name, reading->read_ns, SNAPSHOT_PART_END);
}

static process_ranges_list *list_of_ranges(struct recorder *recorder, enum snapshot_kind kind)
{
	return kind == SNAPSHOT_STOP	? &recorder->jobs.memory->final_ranges
	       : kind == SNAPSHOT_START ? &recorder->jobs.memory->start_ranges
					: &recorder->jobs.memory->interval_ranges;
}

/* Adds ranges for this process, in place of those of an earlier attempt. Opens its pagemap now, because an exec before
 * the pages are read would replace them. False: out of memory. */
static bool begin_ranges(struct reading *reading)
{
	process_ranges_list *list = list_of_ranges(reading->recorder, reading->kind);
	int pagemap;

	if (reading->kind == SNAPSHOT_INTERVAL)
		process_ranges_list_deinit(list);
	if (list->count && list->items[list->count - 1].pid == reading->pid)
		process_ranges_list_drop_last(list);
	reading->ranges = vector_append(list);
	if (!reading->ranges)
		return false;
	reading->ranges->pid = reading->pid;
	pagemap = process_file_open(&reading->recorder->calls, reading->pid, "pagemap");
	if (pagemap < 0)
		reading->ranges->pagemap = -errno;
	else if ((reading->ranges->pagemap = process_table_spare(pagemap)) < 0)
		reading->ranges->pagemap = -EMFILE;
	return true;
}

uint64_t snapshot_find_break(struct recorder *recorder, pid_t pid)
{
	CLEANUP(close) int fd = process_file_open(&recorder->calls, pid, "maps");

	return fd < 0 ? 0 : mapping_find_break(&recorder->calls, pid, fd);
}

/* A process that is stuck in the kernel gets its snapshot when its memory can be read again. */
static void want_again(const struct reading *reading, struct traced_process *process)
{
	if (!reading->stuck || !process || reading->kind == SNAPSHOT_STOP || reading->kind == SNAPSHOT_INTERVAL)
		return;
	process->snapshot_wanted = true;
	process->snapshot_kind = reading->kind;
	process->snapshot_ns = 0;
}

struct mmt_error *snapshot_take(struct recorder *recorder, pid_t pid, enum snapshot_kind kind, bool *complete_ret)
{
	struct reading reading = {.recorder = recorder, .pid = pid, .kind = kind, .begin_ns = clock_now_ns()};
	struct traced_process *process = process_table_find(&recorder->processes, pid);
	CLEANUP(close) int fd = process_file_open(&recorder->calls, pid, "maps");
	char name[PROC_NAME_BYTES];
	struct mmt_error *error;

	reading.stuck = fd < 0 && errno == ETIMEDOUT;
	if (complete_ret)
		*complete_ret = false;
	recorder->processes.descriptors_short |= fd < 0 && (errno == EMFILE || errno == ENFILE);
	if (fd < 0 && (errno == EACCES || errno == EPERM) && process && !process->maps_denied) {
		process->maps_denied = true;
		recorder->summary.guarded_processes++;
	}
	/* The maps of an exiting process would be truncated. And if its exit is recorded before the start, the
	 * recording does not contain the process at all. */
	if (fd < 0 || !proc_name(pid, pid, name) || proc_is_ending(pid)) {
		want_again(&reading, process);
		return NULL;
	}
	/* A snapshot that only checks the maps does not describe the process, so an exec still requires another one. */
	if (process && kind != SNAPSHOT_STOP && kind != SNAPSHOT_INTERVAL)
		process->snapshot_ns = reading.begin_ns;
	if (kind == SNAPSHOT_STOP || (kind == SNAPSHOT_START && !recorder->jobs.memory->start_pages_read) ||
	    kind == SNAPSHOT_INTERVAL) {
		if (!begin_ranges(&reading))
			return &error_no_memory;
	}
	buffer_init(&reading.record, UINT16_MAX);
	error = take(&reading, fd, name);
	buffer_deinit(&reading.record);
	if (reading.ranges && !reading.ended)
		process_ranges_list_drop_last(list_of_ranges(recorder, kind));
	want_again(&reading, process);
	if (complete_ret)
		*complete_ret = reading.ended;
	return error ? error : limits_note_process(recorder, pid);
}

static bool is_exiting(pid_t pid, pid_t tid)
{
	struct proc_thread state;

	return !proc_read_thread(pid, tid, &state) || state.exiting;
}

struct mmt_error *snapshot_name_threads(struct recorder *recorder, pid_t pid, bool *alive_ret)
{
	struct mmt_error *error = NULL;
	proc_pids threads = {0};
	struct buffer record;

	*alive_ret = false;
	buffer_init(&record, UINT16_MAX);
	if (!proc_list_threads(pid, &threads, NULL))
		threads.count = 0;
	for (size_t i = 0; !error && i < threads.count; i++) {
		uint64_t before_ns = clock_now_ns();
		char name[PROC_NAME_BYTES];

		/* A name recorded after the thread's EXIT record would add the thread again. So take the time first,
		 * then check whether the thread is exiting. */
		if (proc_name(pid, threads.items[i], name) && !is_exiting(pid, threads.items[i])) {
			*alive_ret = true;
			error =
			    append_name(recorder, &record, pid, threads.items[i], name, before_ns, SNAPSHOT_ID_NAME);
		}
		if (!error)
			error = ring_reader_give_way(recorder);
	}
	buffer_deinit(&record);
	vector_deinit(&threads);
	return error;
}
