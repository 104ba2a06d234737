// SPDX-License-Identifier: LGPL-2.1-or-later
#include "capture/jitdumps.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "capture/perf-maps.h"
#include "capture/proc.h"
#include "capture/recorder.h"
#include "capture/regular-file.h"
#include "trace/format.h"
#include "trace/sections.h"

void jitdumps_deinit(struct jitdump_notes *notes)
{
	for (size_t i = 0; i < notes->items.count; i++) {
		if (notes->items.items[i].fd >= 0)
			close(notes->items.items[i].fd);
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

/* What is known of the process whose dump it is: of one that has ended already, what was seen before. */
struct writer_process {
	pid_t namespace_pid;
	uid_t owner;
	uint64_t started_realtime_ns;
	int root; /* O_PATH; owned */
};

static bool know_writer(const struct recorder *recorder, pid_t pid, struct writer_process *writer)
{
	const struct known_process *process = known_processes_find(&recorder->processes, pid);
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

/* NULL: may be taken. */
static const char *refuse(const struct build_id_mapping *mapping, const struct writer_process *writer, pid_t named,
			  int fd)
{
	struct stat status;

	if (named != writer->namespace_pid)
		return "it is named after another process";
	if (fd < 0 || fstat(fd, &status) < 0)
		return "it cannot be opened";
	if (status.st_ino != mapping->inode)
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

/* Takes nothing from a file that is not the process's own: the descriptor is -1 then, and the reason is told. */
static void open_dump(const struct recorder *recorder, const struct build_id_mapping *mapping,
		      struct noted_jitdump *note)
{
	const char *refused = "its process is gone", *path = mapping->path;
	struct writer_process writer;

	if (know_writer(recorder, mapping->pid, &writer)) {
		CLEANUP(close) int root = writer.root;

		/* The process chose the path: it is followed in the process's own root. */
		while (*path == '/')
			path++;
		note->namespace_pid = writer.namespace_pid;
		note->fd = known_processes_spare(target_file_open(root, path));
		refused = refuse(mapping, &writer, jitdumps_pid_of_name(mapping->path), note->fd);
		if (refused) {
			/* Removed, or hidden: what is mapped can still be had. */
			if (note->fd >= 0)
				close(note->fd);
			note->fd = known_processes_spare(open_mapped(mapping));
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

struct mmt_error *jitdumps_note(struct recorder *recorder, const struct build_id_mapping *mapping)
{
	struct noted_jitdump note = {.pid = mapping->pid, .inode = mapping->inode, .fd = -1};

	if (!jitdumps_pid_of_name(mapping->path))
		return NULL;
	for (size_t i = 0; i < recorder->jitdumps.items.count; i++) {
		if (recorder->jitdumps.items.items[i].pid == note.pid &&
		    recorder->jitdumps.items.items[i].inode == note.inode)
			return NULL;
	}
	open_dump(recorder, mapping, &note);
	if (vector_push(&recorder->jitdumps.items, note))
		return NULL;
	if (note.fd >= 0)
		close(note.fd);
	return &error_no_memory;
}

static struct mmt_error *read_dump(struct recorder *recorder, const struct noted_jitdump *note, size_t *room,
				   struct jitdump_copies *copies)
{
	struct jitdump_copy *copy;
	struct stat status;
	size_t size;

	if (note->fd < 0 || fstat(note->fd, &status) < 0 || status.st_size <= 0)
		return NULL;
	size = (size_t)status.st_size;
	if (size > *room) {
		recorder_message(
		    recorder, true,
		    "of the jitdump of process %d (%zu bytes) only the first %zu bytes are kept: all jitdumps of "
		    "a recording together may have 256 MiB",
		    note->pid, size, *room);
		size = *room;
	}
	copy = vector_append(&copies->dumps);
	if (copy)
		copy->data = malloc(size ? size : 1);
	if (!copy || !copy->data)
		return &error_no_memory;
	copy->pid = note->pid;
	copy->namespace_pid = note->namespace_pid;
	while (copy->size < size) {
		ssize_t count = pread(note->fd, copy->data + copy->size, size - copy->size, (off_t)copy->size);

		if (count < 0 && errno == EINTR)
			continue;
		if (count <= 0)
			break;
		copy->size += (size_t)count;
	}
	*room -= copy->size;
	return NULL;
}

struct mmt_error *jitdumps_encode(struct recorder *recorder, struct buffer *buffer)
{
	struct jitdump_copies copies = {0};
	struct mmt_error *error = NULL;
	size_t room = JITDUMPS_BYTES_MAX;

	for (size_t i = 0; !error && i < recorder->jitdumps.items.count; i++)
		error = read_dump(recorder, &recorder->jitdumps.items.items[i], &room, &copies);
	if (!error && copies.dumps.count)
		error = jitdump_copies_encode(&copies, buffer);
	jitdump_copies_deinit(&copies);
	return error;
}
