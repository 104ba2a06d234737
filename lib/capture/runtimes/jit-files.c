// SPDX-License-Identifier: LGPL-2.1-or-later
#include "capture/runtimes/ask-runtime.h"

#include <errno.h>

#include "base/compression.h"
#include "capture/recorder/recorder.h"

#define EXEC_SLACK_NS 10000000ULL   /* file times have the resolution of the kernel's tick */
#define START_SLACK_NS 100000000ULL /* start times have a resolution of a hundredth of a second */

static uint64_t nanoseconds(struct timespec time)
{
	return (uint64_t)time.tv_sec * 1000000000 + (uint64_t)time.tv_nsec;
}

static const char too_old[] = "it is older than the process", of_earlier_program[] = "an earlier program wrote it";

/* Should a file that a target wrote about itself be refused? Returns the reason, or NULL to accept it. */
static const char *target_file_refusal(const struct stat *status, uid_t owner, uint64_t started_realtime_ns)
{
	if (!S_ISREG(status->st_mode))
		return "it is not a regular file";
	if (status->st_uid != owner)
		return "it belongs to another user";
	if (nanoseconds(status->st_mtim) + START_SLACK_NS < started_realtime_ns)
		return too_old;
	return NULL;
}

/* Was the program executed after the file was last modified? */
static bool is_older_than_program(const struct recorder *recorder, const struct traced_process *process,
				  const struct stat *status)
{
	uint64_t began_realtime_ns = recorder->start_realtime_ns + (process->program_ns - recorder->start_ns);

	return process->program_ns && nanoseconds(status->st_mtim) + EXEC_SLACK_NS < began_realtime_ns;
}

/* Did the program begin during the recording, so that its map was empty at first? See perf_maps_watch(). */
static bool begins_empty(const struct perf_map_copy *map)
{
	return map->growth.count && !map->growth.items[0].length;
}

/* Adds a reading of the length. Without memory for it, lines of the map only seem to be older. */
static void add_step(struct perf_map_copy *map, uint64_t time_ns, uint64_t length)
{
	if (map->growth.count == LIMIT_MAP_GROWTH) {
		/* The list is full: keep every second reading, and halve the rate from now on. The first reading
		 * stays. */
		for (size_t i = begins_empty(map); i < LIMIT_MAP_GROWTH / 2; i++)
			map->growth.items[i] = map->growth.items[2 * i + 1];
		map->growth.count = LIMIT_MAP_GROWTH / 2;
	}
	(void)vector_push(&map->growth, ((struct perf_map_growth){.time_ns = time_ns, .length = length}));
}

/* *size_ret: 0 if the file has become shorter. False: the file system does not answer. */
static bool read_last(struct recorder *recorder, const struct traced_process *process, int fd, uint64_t length,
		      uint8_t last[FILE_MARK_BYTES], size_t *size_ret)
{
	size_t size = length < FILE_MARK_BYTES ? (size_t)length : FILE_MARK_BYTES;
	ssize_t count =
	    size ? target_file_read(&recorder->calls, process->tmp_place, fd, last, size, length - size) : 0;

	*size_ret = count == (ssize_t)size ? size : 0;
	return count >= 0 || errno != ETIMEDOUT;
}

bool file_mark_check(struct recorder *recorder, const struct traced_process *process, const struct file_mark *mark,
		     int fd, const struct stat *status, uint64_t *length_ret)
{
	uint8_t last[FILE_MARK_BYTES];
	size_t size;

	*length_ret = 0;
	if (status->st_ino != mark->inode || (uint64_t)status->st_size < mark->length)
		return true;
	if (!read_last(recorder, process, fd, mark->length, last, &size))
		return false;
	*length_ret = size && !memcmp(last, mark->last, size) ? mark->length : 0;
	return true;
}

bool file_mark_set(struct recorder *recorder, const struct traced_process *process, struct file_mark *mark, int fd,
		   uint64_t inode, uint64_t length)
{
	size_t size;

	if (!read_last(recorder, process, fd, length, mark->last, &size))
		return false;
	mark->inode = inode;
	mark->length = size ? length : 0;
	return true;
}

/* Adds two readings each time that the map has grown: the last one before the growth, and the first one that shows
 * it. */
static void add_growth(struct recorder *recorder, struct traced_process *process, uint64_t now_ns, int fd,
		       const struct stat *status)
{
	struct perf_map_copy *map = &process->perf_map;
	uint64_t length = (uint64_t)status->st_size, known;
	size_t count;

	if (!file_mark_check(recorder, process, &process->map_growth_mark, fd, status, &known) ||
	    !file_mark_set(recorder, process, &process->map_growth_mark, fd, status->st_ino, length))
		return;
	/* If the file was rewritten, its content appeared at this length or later. */
	count = known ? map->growth.count : begins_empty(map);
	map->growth.count = count;
	if (length > known && count && process->map_checked_ns > map->growth.items[count - 1].time_ns)
		add_step(map, process->map_checked_ns, known);
	if (length && (!count || length > known))
		add_step(map, now_ns, length);
	process->map_checked_ns = now_ns;
}

/* Finds what has the name of the map (O_PATH). The target chose the file, so it must not be a link to a file that does
 * not belong to the target. Returns -1 and errno on failure. */
static int find_map(struct recorder *recorder, const struct traced_process *process, struct stat *status)
{
	if (process->tmp_directory >= 0)
		return target_file_find(&recorder->calls, process->tmp_place, process->tmp_directory, process->map_name,
					TARGET_BESIDE, status);
	errno = ENOENT;
	return -1;
}

int perf_maps_open(struct recorder *recorder, const struct traced_process *process, struct stat *status,
		   const char **refused_ret)
{
	int fd = find_map(recorder, process, status);

	*refused_ret = NULL;
	if (fd < 0 && errno == EXDEV)
		*refused_ret = "another file is mounted there";
	if (fd < 0)
		return -1;
	if (S_ISLNK(status->st_mode))
		*refused_ret = "it is a symbolic link";
	else
		*refused_ret = target_file_refusal(status, process->owner, process->started_realtime_ns);
	if (!*refused_ret && is_older_than_program(recorder, process, status))
		*refused_ret = of_earlier_program;
	if (!*refused_ret)
		return fd;
	close(fd);
	return -1;
}

bool perf_maps_exists(struct recorder *recorder, const struct traced_process *process)
{
	const char *refused;
	struct stat status;
	CLEANUP(close) int fd = perf_maps_open(recorder, process, &status, &refused);

	return fd >= 0;
}

bool perf_maps_remove(struct recorder *recorder, const struct traced_process *process, bool earlier)
{
	const char *refused;
	struct stat status;
	CLEANUP(close) int fd = perf_maps_open(recorder, process, &status, &refused);

	if (earlier && (fd >= 0 || refused != of_earlier_program))
		return true;
	return target_file_remove(&recorder->calls, process->tmp_place, process->tmp_directory, process->map_name,
				  process->owner);
}

void perf_maps_note_growth(struct recorder *recorder, struct traced_process *process, uint64_t now_ns)
{
	const struct file_mark *mark = &process->map_growth_mark;
	const char *refused;
	struct stat status;
	CLEANUP(close) int fd = perf_maps_open(recorder, process, &status, &refused);

	if (fd < 0)
		return;
	/* Usually nothing has changed: do not read the file. */
	if (status.st_ino == mark->inode && (uint64_t)status.st_size == mark->length)
		process->map_checked_ns = now_ns;
	else
		add_growth(recorder, process, now_ns, fd, &status);
}

void perf_maps_watch(struct recorder *recorder, struct traced_process *process, uint64_t began_ns, uint64_t now_ns)
{
	uint64_t place = 0;
	int directory = process_table_spare(target_directory_find(&recorder->calls, process->pid, "/tmp", &place));

	if (directory < 0)
		return;
	close_descriptor(&process->tmp_directory);
	process->tmp_directory = directory;
	process->tmp_place = place;
	process->namespace_pid = proc_namespace_pid(process->pid);
	snprintf(process->map_name, sizeof(process->map_name), "perf-%d.map", process->namespace_pid);
	process->started_realtime_ns = proc_start_realtime_ns(&recorder->calls, process->pid);
	if (!proc_effective_id(process->pid, "Uid", &process->owner))
		process->owner = (uid_t)-1;
	process->perf_map.growth.count = 0;
	if (began_ns)
		add_step(&process->perf_map, began_ns, 0);
	process->map_growth_mark.length = process->map_pieces_mark.length = 0;
	perf_maps_note_growth(recorder, process, now_ns);
}

#define PIECE_BYTES (8u << 20)

/* Reads a file of at most `size` bytes and compresses it piece by piece, so that a large one takes little memory. Lets
 * the ring reader work in between. Text ends with the first zero byte: a file that was enlarged without writing would
 * cost reports memory. A read error counts as the end of the file. */
static struct mmt_error *read_packed(struct recorder *recorder, uint64_t place, int fd, size_t size, bool is_text,
				     struct buffer *packed, size_t *size_ret)
{
	CLEANUP(free) uint8_t *piece = malloc(size < PIECE_BYTES ? size + 1 : PIECE_BYTES);
	struct compressor compressor = {0};
	struct mmt_error *error = piece ? compressor_init(&compressor) : &error_no_memory;
	const uint8_t *zero = NULL;
	size_t length = 0;

	buffer_init(packed, SIZE_MAX);
	while (!error && !zero && length < size) {
		size_t wanted = size - length < PIECE_BYTES ? size - length : PIECE_BYTES;
		ssize_t count = target_file_read(&recorder->calls, place, fd, piece, wanted, length);

		if (count <= 0)
			break;
		zero = is_text ? memchr(piece, 0, (size_t)count) : NULL;
		count = zero ? zero - piece : count;
		error = compressor_frame(&compressor, piece, (size_t)count, packed);
		length += (size_t)count;
		error = error ?: ring_reader_give_way(recorder);
	}
	compressor_deinit(&compressor);
	if (error)
		buffer_deinit(packed);
	*size_ret = length;
	return error;
}

/* Reads the text. *refused_ret: why it is not read; otherwise unchanged. */
static struct mmt_error *take_text(struct recorder *recorder, struct traced_process *process, int fd, size_t size,
				   const char **refused_ret)
{
	struct perf_map_copy *map = &process->perf_map;
	struct mmt_error *error;
	struct buffer packed;
	size_t length;

	if (size > LIMIT_RECORDED_PERF_MAPS_BYTES - recorder->jobs.runtimes->perf_map_bytes) {
		*refused_ret = "all perf maps of a recording together may have 256 MiB";
		return NULL;
	}
	error = read_packed(recorder, process->tmp_place, fd, size, true, &packed, &length);
	if (error)
		return error;
	map->pid = process->pid;
	map->namespace_pid = process->namespace_pid;
	recorder->jobs.runtimes->perf_map_bytes += length - map->text_size;
	free(map->text);
	map->text = packed.data;
	map->text_size = length;
	map->packed_size = packed.size;
	return NULL;
}

struct mmt_error *perf_maps_copy(struct recorder *recorder, struct traced_process *process)
{
	CLEANUP(close) int fd = -1;
	struct mmt_error *error = NULL;
	const char *refused = NULL;
	struct stat status = {0};

	fd = perf_maps_open(recorder, process, &status, &refused);
	if (fd < 0 && !refused)
		return NULL;
	if (!refused && status.st_size) {
		add_growth(recorder, process, clock_now_ns(), fd, &status);
		error = take_text(recorder, process, fd, (size_t)status.st_size, &refused);
	}
	/* An earlier program, or an earlier process with this PID, may have left it. */
	if (refused && refused != of_earlier_program && (refused != too_old || process->target))
		recorder_message(recorder, true, "cannot use /tmp/%s of process %d (%llu bytes): %s", process->map_name,
				 process->pid, (unsigned long long)status.st_size, refused);
	return error;
}

void jitdumps_deinit(struct jitdump_notes *notes)
{
	for (size_t i = 0; i < notes->items.count; i++) {
		close_descriptor(&notes->items.items[i].fd);
		free(notes->items.items[i].copy.data);
	}
	vector_deinit(&notes->items);
}

/* Returns the number in the file name of a jitdump; 0: this is not the name of a jitdump. */
static pid_t jitdumps_pid_of_name(const char *path)
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

/* The process that wrote the dump. If it has ended, these values were read before. */
struct writer_process {
	pid_t namespace_pid;
	uid_t owner;
	uint64_t started_realtime_ns;
	int root; /* O_PATH; owned */
};

static bool know_writer(struct recorder *recorder, pid_t pid, struct writer_process *writer)
{
	const struct traced_process *process = process_table_find(&recorder->processes, pid);

	writer->root = process_root_open(&recorder->calls, pid);
	if (writer->root >= 0 && proc_effective_id(pid, "Uid", &writer->owner)) {
		writer->namespace_pid = proc_namespace_pid(pid);
		writer->started_realtime_ns = proc_start_realtime_ns(&recorder->calls, pid);
		return true;
	}
	close_descriptor(&writer->root);
	if (!process || process->tmp_directory < 0)
		return false;
	writer->namespace_pid = process->namespace_pid;
	writer->owner = process->owner;
	writer->started_realtime_ns = process->started_realtime_ns;
	writer->root =
	    target_file_find(&recorder->calls, process->tmp_place, process->tmp_directory, "..", TARGET_ANYWHERE, NULL);
	return writer->root >= 0;
}

/* Should the dump be refused? Returns the reason, or NULL to accept it. */
static const char *refuse(const struct build_id_mapping *mapping, const struct writer_process *writer, int fd,
			  const struct stat *status)
{
	if (jitdumps_pid_of_name(mapping->path) != writer->namespace_pid)
		return "it is named after another process";
	if (fd < 0)
		return "it cannot be opened";
	if (!regular_file_is_mapped(status, mapping->device_major, mapping->device_minor, mapping->inode))
		return "another file has its name";
	return target_file_refusal(status, writer->owner, writer->started_realtime_ns);
}

/* Opens the dump. If the file does not belong to the process, warns the user and sets the descriptor to -1. */
static void open_dump(struct recorder *recorder, const struct build_id_mapping *mapping, struct noted_jitdump *note)
{
	const char *refused = "its process has exited", *path = mapping->path;
	struct writer_process writer;
	struct stat status;

	if (know_writer(recorder, mapping->pid, &writer)) {
		CLEANUP(close) int root = writer.root;

		/* The process chose the path, so open it below the process's own root directory. */
		while (*path == '/')
			path++;
		note->copy.namespace_pid = writer.namespace_pid;
		note->fd = process_table_spare(
		    target_file_find(&recorder->calls, note->place, root, path, TARGET_IN_ROOT, &status));
		refused = refuse(mapping, &writer, note->fd, &status);
		if (refused) {
			/* The path does not lead to this file any more, but the mapped file is still accessible. */
			close_descriptor(&note->fd);
			note->fd = process_table_spare(mapped_file_find(&recorder->calls, mapping, &status));
			if (note->fd >= 0)
				refused = refuse(mapping, &writer, note->fd, &status);
		}
	}
	if (!refused)
		return;
	recorder_message(recorder, true, "cannot use %s of process %d: %s", mapping->path, note->copy.pid, refused);
	close_descriptor(&note->fd);
}

/* Finds the program of the dump among the program starts known so far. jitdumps_note_begin() adds later ones. */
static void find_program(const struct recorder *recorder, struct noted_jitdump *note)
{
	const struct traced_process *process = process_table_find(&recorder->processes, note->copy.pid);

	note->copy.knows_program = process && process->program_ns <= note->mapped_ns;
	note->copy.program_ns = note->copy.knows_program ? process->program_ns : 0;
}

void jitdumps_note_begin(struct recorder *recorder, pid_t pid, uint64_t time_ns)
{
	array_each(note, recorder->jobs.runtimes->jitdumps.items.items, recorder->jobs.runtimes->jitdumps.items.count) {
		if (note->copy.pid != pid || time_ns > note->mapped_ns || time_ns <= note->copy.program_ns)
			continue;
		note->copy.program_ns = time_ns;
		note->in_pieces = 0;
	}
}

struct mmt_error *jitdumps_note(struct recorder *recorder, const struct build_id_mapping *mapping, uint64_t time_ns)
{
	struct noted_jitdump note = {.copy = {.pid = mapping->pid},
				     .device_major = mapping->device_major,
				     .device_minor = mapping->device_minor,
				     .inode = mapping->inode,
				     .fd = -1,
				     .place = place_of_device(mapping->device_major, mapping->device_minor),
				     .mapped_ns = time_ns};
	const struct jitdump_notes *dumps = &recorder->jobs.runtimes->jitdumps;

	if (!jitdumps_pid_of_name(mapping->path))
		return NULL;
	array_each(known, dumps->items.items, dumps->items.count) {
		if (known->copy.pid != note.copy.pid || known->inode != note.inode ||
		    known->device_major != note.device_major || known->device_minor != note.device_minor)
			continue;
		if (known->mapped_ns < time_ns) {
			uint64_t program_ns = known->copy.program_ns;

			known->mapped_ns = time_ns;
			find_program(recorder, known);
			/* The next program has overwritten the file. */
			if (known->copy.program_ns != program_ns)
				known->in_pieces = 0;
		}
		return NULL;
	}
	find_program(recorder, &note);
	open_dump(recorder, mapping, &note);
	if (vector_push(&recorder->jobs.runtimes->jitdumps.items, note))
		return NULL;
	close_descriptor(&note.fd);
	return &error_no_memory;
}

static struct mmt_error *keep_dump(struct recorder *recorder, struct noted_jitdump *note)
{
	CLEANUP(close) int fd = note->fd;
	struct jitdump_notes *dumps = &recorder->jobs.runtimes->jitdumps;
	struct mmt_error *error;
	struct buffer packed;
	struct stat status;
	size_t size, room;

	note->fd = -1;
	if (fd < 0 || !target_file_stat(&recorder->calls, note->place, fd, &status) || status.st_size <= 0)
		return NULL;
	room = LIMIT_RECORDED_JITDUMPS_BYTES - dumps->kept_bytes;
	note->cut = (uint64_t)status.st_size > room;
	size = note->cut ? room : (uint64_t)status.st_size;
	error = read_packed(recorder, note->place, fd, size, false, &packed, &size);
	if (error)
		return error;
	note->copy.data = packed.data;
	note->copy.packed_size = packed.size;
	note->copy.size = size;
	dumps->kept_bytes += size;
	return NULL;
}

struct mmt_error *jitdumps_encode(struct recorder *recorder, struct buffer *buffer)
{
	const struct jitdump_notes *dumps = &recorder->jobs.runtimes->jitdumps;
	size_t cut = 0, count = dumps->items.count;
	struct jitdump_copies copies = {0};
	struct mmt_error *error = NULL;

	array_while(note, dumps->items.items, count, !error) {
		error = keep_dump(recorder, note);
		cut += note->cut;
		if (!error && note->copy.data && !vector_push(&copies.dumps, note->copy))
			error = &error_no_memory;
		else if (!error)
			note->copy.data = NULL;
	}
	if (cut)
		recorder_message(
		    recorder, true,
		    "%zu of %zu jitdumps are missing or truncated: the jitdumps of a recording are limited to "
		    "256 MiB together; some JIT code may have no names",
		    cut, count);
	if (!error && copies.dumps.count)
		error = section_write(&section_jitdumps, &copies, buffer);
	section_jitdumps.deinit(&copies);
	return error;
}
