// SPDX-License-Identifier: LGPL-2.1-or-later
/* Snapshots: reads /proc/PID/maps and writes each line into the recording, with the time of the read() that returned
 * it. */
#include "capture/record-loop.h"

#include <errno.h>

#include "capture/runtimes/ask-runtime.h"
#include "capture/jit-code/jit-reader.h"

/* A snapshot in progress. */
struct reading {
	struct recorder *recorder;
	struct traced_process *process;
	pid_t pid;
	enum snapshot_kind kind;
	uint64_t begin_ns; /* time before the open(): the maps are of the program at this time, or of a later one */
	bool wants_ranges; /* the resident pages of these mappings are read next */
	struct buffer record;
	struct mapping_scan scan;
	bool stuck;	 /* the kernel does not answer */
	bool ended;	 /* the maps were read to the end */
	bool unreadable; /* a line has an unknown format, so the snapshot gets no end record */
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

static struct mmt_error *handle_line(struct reading *reading, const struct procmaps_line *line)
{
	struct recorder *recorder = reading->recorder;
	const struct mapped_range range = {line->start, line->end, !line->shared && !line->inode,
					   line->protection == PROT_NONE};
	const struct build_id_mapping mapping = {reading->pid,	     line->start, line->end, line->device_major,
						 line->device_minor, line->inode, line->path};
	uint16_t misc = PERF_RECORD_MISC_USER;
	struct buffer *record = &reading->record;
	struct mmt_error *error;

	if (reading->wants_ranges && !vector_push(&reading->process->ranges, range))
		return &error_no_memory;
	recorder->jobs.memory->snapshot_lines++;
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
	error = own_record_append(reading->recorder, record, reading->pid, reading->pid, reading->scan.line_ns,
				  SNAPSHOT_ID(reading->kind, SNAPSHOT_PART_LINE));
	if (error || !(line->protection & PROT_EXEC))
		return error;
	error =
	    jit_reader_note(recorder, reading->pid, line->path, reading->scan.line_ns, reading->kind == SNAPSHOT_FIRST);
	ask_runtime_note_module(reading->process, line->path);
	return error ?: jitdumps_note(recorder, &mapping, reading->begin_ns)
		    ?: build_id_notes_want(&recorder->jobs.build_ids, &mapping);
}

/* Reads the maps to their end. The kernel generates the bytes of a read() at some time between the start and the end of
 * the call. The lines get the start as their time: a call that returned later is then applied to the lines. At worst
 * its effect is applied twice, but it is never missed. */
static struct mmt_error *read_maps(struct reading *reading, int fd)
{
	struct mapping_scan *scan = &reading->scan;
	struct mmt_error *error = NULL;
	uint64_t read_ns = 0;
	const char *text;
	size_t length;

	if (!mapping_scan_begin(scan, &reading->recorder->calls, reading->pid, fd))
		return &error_no_memory;
	while (!error && mapping_scan_line(scan, fd, &text, &length)) {
		struct procmaps_line line;

		if (procmaps_parse(text, length, &line))
			error = handle_line(reading, &line);
		else
			reading->unreadable = true;
		if (!error && scan->read_ns != read_ns)
			error = ring_reader_give_way(reading->recorder);
		read_ns = scan->read_ns;
	}
	reading->stuck = scan->stuck;
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
	struct recorder *recorder = reading->recorder;
	struct mmt_error *error = append_part(reading, name, reading->begin_ns, SNAPSHOT_PART_BEGIN);
	bool exec = false;
	char byte;

	error = error ?: read_maps(reading, fd);
	if (reading->unreadable)
		recorder_message(reading->recorder, true,
				 "cannot read all mappings of process %d: /proc/%d/maps has a line of unknown format",
				 reading->pid, reading->pid);
	/* Did the process call exec during the snapshot, or before it? The maps of a new program are checked only after
	 * a snapshot has described it: what the kernel's ELF loader unmaps causes no event and would be reported as a
	 * mismatch. */
	if (!error && (reading->kind == SNAPSHOT_STOP || reading->kind == SNAPSHOT_INTERVAL)) {
		error = ring_reader_catch_up(recorder) ?: process_events_end_exec(recorder, reading->pid);
		exec = reading->process->snapshot_wanted || process_events_want_snapshot(recorder, reading->pid);
	}
	/* Does the address space for which the descriptor was opened still exist? Exit and exec free it, and the maps
	 * are then truncated or empty. A snapshot that may be truncated gets no end record. */
	if (error || reading->unreadable || exec || reading->stuck ||
	    process_file_read(&reading->recorder->calls, reading->pid, fd, &byte, 1, 0) != 1)
		return error;
	reading->ended = true;
	return append_part(reading, name, reading->scan.read_ns, SNAPSHOT_PART_END);
}

/* A process that is stuck in the kernel gets its snapshot when its memory can be read again. */
static void want_again(const struct reading *reading)
{
	struct traced_process *process = reading->process;

	if (!reading->stuck || reading->kind == SNAPSHOT_STOP || reading->kind == SNAPSHOT_INTERVAL)
		return;
	process->snapshot_wanted = true;
	process->snapshot_kind = reading->kind;
	process->snapshot_ns = 0;
}

struct mmt_error *snapshot_take(struct recorder *recorder, struct traced_process *process, enum snapshot_kind kind,
				bool *complete_ret)
{
	pid_t pid = process->pid;
	struct reading reading = {
	    .recorder = recorder, .process = process, .pid = pid, .kind = kind, .begin_ns = clock_now_ns()};
	CLEANUP(close) int fd = process_file_open(&recorder->calls, pid, "maps");
	char name[PROC_NAME_BYTES];
	struct mmt_error *error;

	reading.stuck = fd < 0 && errno == ETIMEDOUT;
	if (complete_ret)
		*complete_ret = false;
	recorder->processes.descriptors_short |= fd < 0 && (errno == EMFILE || errno == ENFILE);
	if (fd < 0 && (errno == EACCES || errno == EPERM) && !process->maps_denied) {
		process->maps_denied = true;
		recorder->summary.guarded_processes++;
	}
	/* The maps of an exiting process would be truncated. And if its exit is recorded before the start, the
	 * recording does not contain the process at all. */
	if (fd < 0 || !proc_name(pid, pid, name) || proc_is_ending(pid)) {
		want_again(&reading);
		return NULL;
	}
	/* A snapshot that only checks the maps does not describe the process, so an exec still requires another one. */
	if (kind != SNAPSHOT_STOP && kind != SNAPSHOT_INTERVAL)
		process->snapshot_ns = reading.begin_ns;
	reading.wants_ranges = kind == SNAPSHOT_STOP || kind == SNAPSHOT_INTERVAL ||
			       (kind == SNAPSHOT_START && !recorder->jobs.memory->start_pages_read);
	/* Open the pagemap now, because an exec before the pages are read would replace them. */
	if (reading.wants_ranges) {
		int pagemap = process_file_open(&recorder->calls, pid, "pagemap"), errno_value = errno;

		traced_process_drop_ranges(process);
		if (pagemap < 0)
			process->pagemap = -errno_value;
		else if ((process->pagemap = process_table_spare(pagemap)) < 0)
			process->pagemap = -EMFILE;
	}
	buffer_init(&reading.record, UINT16_MAX);
	error = take(&reading, fd, name);
	buffer_deinit(&reading.record);
	mapping_scan_end(&reading.scan);
	if (reading.wants_ranges && !reading.ended)
		traced_process_drop_ranges(process);
	want_again(&reading);
	if (complete_ret)
		*complete_ret = reading.ended;
	return error ? error : limits_note_process(recorder, process);
}

struct mmt_error *snapshot_name_threads(struct recorder *recorder, pid_t pid, bool *alive_ret)
{
	struct mmt_error *error = NULL;
	CLEANUP(vector) proc_pids threads = {0};
	CLEANUP(buffer) struct buffer record = {.maximum = UINT16_MAX};

	*alive_ret = false;
	if (!proc_list_threads(pid, &threads, NULL))
		threads.count = 0;
	for (size_t i = 0; !error && i < threads.count; i++) {
		uint64_t before_ns = clock_now_ns();
		pid_t tid = threads.items[i];
		char name[PROC_NAME_BYTES];
		uint64_t start_ticks;
		bool exiting;

		/* A name recorded after the thread's EXIT record would add the thread again. So take the time first,
		 * then check whether the thread is exiting. */
		if (proc_name(pid, tid, name) &&
		    proc_read_start(&recorder->calls, pid, tid, &start_ticks, &exiting) && !exiting) {
			*alive_ret = true;
			error = append_name(recorder, &record, pid, tid, name, before_ns, SNAPSHOT_ID_NAME);
		}
		error = error ?: ring_reader_give_way(recorder);
	}
	return error;
}
