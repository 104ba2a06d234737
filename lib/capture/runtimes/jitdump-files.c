// SPDX-License-Identifier: LGPL-2.1-or-later
#include "capture/runtimes/jitdump-files.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "capture/perf/clock.h"
#include "capture/ring-reader.h"
#include "capture/runtimes/perf-map-files.h"
#include "capture/proc/proc.h"
#include "capture/recorder.h"
#include "trace/format/format.h"
#include "trace/sections/sections.h"

void jitdumps_deinit(struct jitdump_notes *notes)
{
	for (size_t i = 0; i < notes->items.count; i++) {
		if (notes->items.items[i].fd >= 0)
			close(notes->items.items[i].fd);
		free(notes->items.items[i].kept);
	}
	vector_deinit(&notes->items);
}

pid_t jitdumps_pid_of_name(const char *path)
{
	const char *slash = strrchr(path, '/');
	const char *digits = slash ? slash + 5 : NULL;
	size_t count;

	if (!slash || strncmp(slash, "/jit-", 5))
		return 0;
	count = strspn(digits, "0123456789");
	if (!count || count > 9 || (strcmp(digits + count, ".dump") && strcmp(digits + count, ".dump (deleted)")))
		return 0;
	return (pid_t)strtol(digits, NULL, 10);
}

/* What is known about the process that wrote the dump. If it has ended, what was known before. */
struct writer_process {
	pid_t namespace_pid;
	uid_t owner;
	uint64_t started_realtime_ns;
	int root; /* O_PATH; owned */
};

static bool know_writer(const struct recorder *recorder, pid_t pid, struct writer_process *writer)
{
	const struct traced_process *process = process_table_find(&recorder->processes, pid);
	char root[64];

	snprintf(root, sizeof(root), "/proc/%d/root", proc_living_thread(pid));
	writer->root = open(root, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (writer->root >= 0 && proc_owner(pid, &writer->owner)) {
		writer->namespace_pid = proc_namespace_pid(pid);
		writer->started_realtime_ns = proc_start_realtime_ns(pid);
		return true;
	}
	if (writer->root >= 0)
		close(writer->root);
	writer->root = -1;
	if (!process || process->tmp_directory < 0)
		return false;
	writer->namespace_pid = process->namespace_pid;
	writer->owner = process->owner;
	writer->started_realtime_ns = process->started_realtime_ns;
	writer->root = openat(process->tmp_directory, "..", O_PATH | O_DIRECTORY | O_CLOEXEC);
	return writer->root >= 0;
}

/* Returns why the file is refused; NULL: it is accepted. */
static const char *refuse(const struct build_id_mapping *mapping, const struct writer_process *writer, pid_t named,
			  int fd)
{
	struct stat status;

	if (named != writer->namespace_pid)
		return "it is named after another process";
	if (fd < 0 || fstat(fd, &status) < 0)
		return "it cannot be opened";
	if (!regular_file_is_mapped(&status, mapping->device_major, mapping->device_minor, mapping->inode))
		return "another file has its name";
	return target_file_refusal(&status, writer->owner, writer->started_realtime_ns);
}

static int open_mapped(const struct build_id_mapping *mapping)
{
	char path[96];

	snprintf(path, sizeof(path), "/proc/%d/map_files/%" PRIx64 "-%" PRIx64, proc_living_thread(mapping->pid),
		 mapping->start, mapping->end);
	return regular_file_open(path);
}

/* Refuses a file that does not belong to the process: the descriptor is -1 then, and the user is warned. */
static void open_dump(const struct recorder *recorder, const struct build_id_mapping *mapping,
		      struct noted_jitdump *note)
{
	const char *refused = "its process is gone", *path = mapping->path;
	struct writer_process writer;

	if (know_writer(recorder, mapping->pid, &writer)) {
		CLEANUP(close) int root = writer.root;

		/* The process chose the path, so it is resolved in the process's own root. */
		while (*path == '/')
			path++;
		note->namespace_pid = writer.namespace_pid;
		note->fd = process_table_spare(target_file_open(root, path));
		refused = refuse(mapping, &writer, jitdumps_pid_of_name(mapping->path), note->fd);
		if (refused) {
			/* The file was removed or hidden, but the mapped file is still accessible. */
			if (note->fd >= 0)
				close(note->fd);
			note->fd = process_table_spare(open_mapped(mapping));
			if (note->fd >= 0)
				refused = refuse(mapping, &writer, jitdumps_pid_of_name(mapping->path), note->fd);
		}
	}
	if (!refused)
		return;
	recorder_message(recorder, true, "%s of process %d is left out: %s", mapping->path, note->pid, refused);
	if (note->fd >= 0)
		close(note->fd);
	note->fd = -1;
}

/* The dump of the current program of the process; NULL: not known yet. */
static struct noted_jitdump *find_note(struct recorder *recorder, const struct build_id_mapping *mapping)
{
	for (size_t i = 0; i < recorder->jitdumps.items.count; i++) {
		struct noted_jitdump *note = &recorder->jitdumps.items.items[i];

		if (note->pid == mapping->pid && note->inode == mapping->inode &&
		    note->device_major == mapping->device_major && note->device_minor == mapping->device_minor &&
		    !note->ended)
			return note;
	}
	return NULL;
}

/* Uses the program starts known so far; later ones are added by jitdumps_note_begin(). */
static void find_program(const struct recorder *recorder, struct noted_jitdump *note)
{
	note->knows_program =
	    process_table_find_begin(&recorder->processes, note->pid, note->mapped_ns, &note->program_ns);
}

void jitdumps_note_begin(struct recorder *recorder, pid_t pid, uint64_t time_ns)
{
	for (size_t i = 0; i < recorder->jitdumps.items.count; i++) {
		struct noted_jitdump *note = &recorder->jitdumps.items.items[i];

		if (note->pid == pid && time_ns <= note->mapped_ns && time_ns > note->program_ns)
			note->program_ns = time_ns;
	}
}

struct mmt_error *jitdumps_note(struct recorder *recorder, const struct build_id_mapping *mapping, uint64_t time_ns)
{
	struct noted_jitdump note = {.pid = mapping->pid,
				     .device_major = mapping->device_major,
				     .device_minor = mapping->device_minor,
				     .inode = mapping->inode,
				     .fd = -1,
				     .mapped_ns = time_ns};
	struct noted_jitdump *known;

	if (!jitdumps_pid_of_name(mapping->path))
		return NULL;
	known = find_note(recorder, mapping);
	if (known) {
		if (known->mapped_ns < time_ns) {
			known->mapped_ns = time_ns;
			find_program(recorder, known);
		}
		return NULL;
	}
	find_program(recorder, &note);
	open_dump(recorder, mapping, &note);
	if (vector_push(&recorder->jitdumps.items, note))
		return NULL;
	if (note.fd >= 0)
		close(note.fd);
	return &error_no_memory;
}

static uint64_t find_room(const struct jitdump_notes *notes)
{
	return JITDUMPS_BYTES_MAX - notes->kept_bytes;
}

/* Dumps of ended programs are dropped in favour of those of living programs and of the last program of each process. */
static void make_room(struct jitdump_notes *notes, uint64_t size)
{
	for (size_t i = 0; i < notes->items.count && find_room(notes) < size; i++) {
		struct noted_jitdump *note = &notes->items.items[i];

		if (!note->ended || !note->kept)
			continue;
		notes->kept_bytes -= note->kept_bytes;
		free(note->kept);
		note->kept = NULL;
		note->kept_bytes = 0;
		note->cut = true;
	}
}

/* How much of a dump may be copied. */
static size_t limit_size(struct jitdump_notes *notes, struct noted_jitdump *note, uint64_t size)
{
	if (!note->ended)
		make_room(notes, size);
	if (size <= find_room(notes))
		return (size_t)size;
	note->cut = true;
	return (size_t)find_room(notes);
}

static void report_missing_code(const struct recorder *recorder)
{
	size_t cut = 0, overwritten = 0, count = recorder->jitdumps.items.count;

	for (size_t i = 0; i < count; i++) {
		cut += recorder->jitdumps.items.items[i].cut;
		overwritten += recorder->jitdumps.items.items[i].overwritten;
	}
	if (cut)
		recorder_message(recorder, true,
				 "%zu of %zu jitdumps are not kept, or only their beginnings: all jitdumps of a "
				 "recording together may have 256 MiB",
				 cut, count);
	if (overwritten)
		recorder_message(recorder, true,
				 "%zu of %zu jitdumps are not kept: the next program of the process has written to the "
				 "same file; names of generated code may be missing",
				 overwritten, count);
}

static struct mmt_error *keep_dump(struct recorder *recorder, struct noted_jitdump *note)
{
	CLEANUP(close) int fd = note->fd;
	CLEANUP(free) uint8_t *data = NULL;
	struct mmt_error *error;
	struct stat status;
	size_t size;

	note->fd = -1;
	if (fd < 0 || fstat(fd, &status) < 0 || status.st_size <= 0)
		return NULL;
	size = limit_size(&recorder->jitdumps, note, (uint64_t)status.st_size);
	data = malloc(size ? size : 1);
	if (!data)
		return &error_no_memory;
	error = ring_reader_read_file(recorder, fd, data, size, &size);
	if (error)
		return error;
	note->kept = TAKE(data);
	note->kept_bytes = size;
	recorder->jitdumps.kept_bytes += size;
	return NULL;
}

static uint64_t nanoseconds(struct timespec time)
{
	return (uint64_t)time.tv_sec * 1000000000 + (uint64_t)time.tv_nsec;
}

/*
 * Whether the next program has overwritten the file, so that nothing of the earlier program is left. File times are of
 * CLOCK_REALTIME, which may have been set during the recording. With its current offset, a file of the next program is
 * never attributed to the earlier one. If the clock was set back after the file was written, a file of the earlier
 * program is attributed to the next one, and a warning says so.
 */
static bool was_written_since(int fd, uint64_t exec_ns)
{
	struct timespec now;
	struct stat status;

	if (fstat(fd, &status) < 0 || clock_gettime(CLOCK_REALTIME, &now) < 0)
		return true;
	return nanoseconds(status.st_mtim) + (clock_now_ns() - exec_ns) >= nanoseconds(now);
}

struct mmt_error *jitdumps_end_program(struct recorder *recorder, pid_t pid, uint64_t exec_ns)
{
	struct mmt_error *error = NULL;

	for (size_t i = 0; !error && i < recorder->jitdumps.items.count; i++) {
		struct noted_jitdump *note = &recorder->jitdumps.items.items[i];

		if (note->pid != pid || note->ended)
			continue;
		/* The next program has mapped it; the record of the exec was read later. */
		if (note->mapped_ns >= exec_ns)
			continue;
		note->ended = true;
		if (note->fd < 0)
			continue;
		if (!was_written_since(note->fd, exec_ns)) {
			error = keep_dump(recorder, note);
		} else {
			note->overwritten = true;
			close(note->fd);
			note->fd = -1;
		}
	}
	return error;
}

/* Also keep the dumps that are in use when recording ends. */
static struct mmt_error *keep_all(struct recorder *recorder)
{
	struct mmt_error *error = NULL;

	for (size_t i = 0; !error && i < recorder->jitdumps.items.count; i++) {
		if (!recorder->jitdumps.items.items[i].ended)
			error = keep_dump(recorder, &recorder->jitdumps.items.items[i]);
	}
	return error;
}

struct mmt_error *jitdumps_encode(struct recorder *recorder, struct buffer *buffer)
{
	struct jitdump_copies copies = {0};
	struct mmt_error *error = keep_all(recorder);

	report_missing_code(recorder);
	for (size_t i = 0; !error && i < recorder->jitdumps.items.count; i++) {
		struct noted_jitdump *note = &recorder->jitdumps.items.items[i];
		struct jitdump_copy copy = {.pid = note->pid,
					    .namespace_pid = note->namespace_pid,
					    .knows_program = note->knows_program,
					    .program_ns = note->program_ns,
					    .data = note->kept,
					    .size = note->kept_bytes};

		if (note->kept && !vector_push(&copies.dumps, copy))
			error = &error_no_memory;
		else
			note->kept = NULL;
	}
	if (!error && copies.dumps.count)
		error = jitdump_copies_encode(&copies, buffer);
	jitdump_copies_deinit(&copies);
	return error;
}
