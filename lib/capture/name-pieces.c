// SPDX-License-Identifier: LGPL-2.1-or-later
#include "capture/name-pieces.h"

#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "capture/clock.h"
#include "capture/drain.h"
#include "capture/own-record.h"
#include "capture/perf-maps.h"
#include "trace/format.h"

#define PIECE_BYTES 32768u

struct piece {
	enum name_piece kind;
	pid_t pid, namespace_pid;
	uint64_t looked_ns, now_ns, offset;
};

/* With the time of the youngest record, so that it is no younger than what the rings still hold. */
static struct mmt_error *append_piece(struct recorder *recorder, const struct piece *piece, const void *bytes,
				      size_t size)
{
	uint64_t time_ns = recorder->last_ns ? recorder->last_ns : recorder->start_ns;
	struct buffer record;

	own_record_begin_bytes(&record);
	buffer_put_u32(&record, piece->kind);
	buffer_put_u32(&record, (uint32_t)piece->pid);
	buffer_put_u32(&record, (uint32_t)piece->namespace_pid);
	buffer_put_u32(&record, 0);
	buffer_put_u64(&record, piece->looked_ns);
	buffer_put_u64(&record, piece->now_ns);
	buffer_put_u64(&record, piece->offset);
	buffer_put(&record, bytes, size);
	recorder->piece_bytes += size;
	return own_record_append_bytes(recorder, &record, piece->pid, time_ns, NAME_PIECE_ID);
}

/* From `piece->offset` to `size` of the file; *end_ret: how far it came. `tick_end`: of piece_bytes. */
static struct mmt_error *append_file(struct recorder *recorder, struct piece piece, int fd, uint64_t size,
				     uint64_t tick_end, uint64_t *end_ret)
{
	struct mmt_error *error = NULL;
	uint8_t bytes[PIECE_BYTES];

	while (!error && !recorder->write_error && piece.offset < size && recorder->piece_bytes < tick_end) {
		uint64_t left = size - piece.offset;
		ssize_t count = pread(fd, bytes, left < PIECE_BYTES ? (size_t)left : PIECE_BYTES, (off_t)piece.offset);

		if (count <= 0)
			break;
		error = append_piece(recorder, &piece, bytes, (size_t)count);
		piece.offset += (uint64_t)count;
		if (!error)
			error = drain_filling_rings(recorder);
	}
	*end_ret = piece.offset;
	return error;
}

static struct mmt_error *write_perf_map(struct recorder *recorder, size_t index, uint64_t tick_end)
{
	struct known_process *process = &recorder->processes.items.items[index];
	struct piece piece = {.kind = NAME_PIECE_PERF_MAP,
			      .pid = process->pid,
			      .namespace_pid = process->namespace_pid,
			      .looked_ns = process->map_pieces_ns,
			      .now_ns = clock_now_ns()};
	const char *refused;
	struct stat status;
	struct mmt_error *error;
	uint64_t end;
	CLEANUP(close) int fd = perf_maps_open(process, &status, &refused);

	if (fd < 0)
		return NULL;
	piece.offset = file_mark_check(&process->map_pieces_mark, fd, &status);
	error = append_file(recorder, piece, fd, (uint64_t)status.st_size, tick_end, &end);
	/* Draining may have moved the processes. */
	process = &recorder->processes.items.items[index];
	file_mark_set(&process->map_pieces_mark, fd, status.st_ino, end);
	process->map_pieces_ns = piece.now_ns;
	return error;
}

static struct mmt_error *write_jitdump(struct recorder *recorder, size_t index, uint64_t tick_end)
{
	const struct noted_jitdump *note = &recorder->jitdumps.items.items[index];
	struct piece piece = {.kind = NAME_PIECE_JITDUMP,
			      .pid = note->pid,
			      .namespace_pid = note->namespace_pid,
			      .looked_ns = note->knows_program ? note->program_ns : 0,
			      .now_ns = clock_now_ns(),
			      .offset = note->in_pieces};
	struct mmt_error *error;
	struct stat status;
	uint64_t end;

	if (note->fd < 0 || fstat(note->fd, &status) < 0)
		return NULL;
	error = append_file(recorder, piece, note->fd, (uint64_t)status.st_size, tick_end, &end);
	recorder->jitdumps.items.items[index].in_pieces = end;
	return error;
}

static struct mmt_error *write_build_ids(struct recorder *recorder)
{
	struct build_id_notes *notes = &recorder->build_ids;
	const struct piece piece = {.kind = NAME_PIECE_BUILD_IDS, .now_ns = clock_now_ns()};
	struct mmt_error *error = NULL;

	for (; !error && notes->in_pieces < notes->found.entries.count; notes->in_pieces++) {
		const struct build_ids one = {
		    .entries = {.items = &notes->found.entries.items[notes->in_pieces], .count = 1}};
		struct buffer bytes;

		buffer_init(&bytes, PIECE_BYTES);
		build_ids_encode(&one, &bytes);
		if (!bytes.error && bytes.size)
			error = append_piece(recorder, &piece, bytes.data, bytes.size);
		buffer_deinit(&bytes);
	}
	return error;
}

struct mmt_error *name_pieces_write(struct recorder *recorder)
{
	uint64_t tick_end = recorder->piece_bytes + NAME_PIECES_TICK_BYTES;
	struct mmt_error *error;

	if (tick_end > NAME_PIECES_BYTES_MAX)
		tick_end = NAME_PIECES_BYTES_MAX;
	error = write_build_ids(recorder);
	for (size_t i = 0; !error && recorder->piece_bytes < tick_end && i < recorder->processes.items.count; i++)
		error = write_perf_map(recorder, i, tick_end);
	for (size_t i = 0; !error && recorder->piece_bytes < tick_end && i < recorder->jitdumps.items.count; i++)
		error = write_jitdump(recorder, i, tick_end);
	return error;
}
