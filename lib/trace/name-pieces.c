// SPDX-License-Identifier: LGPL-2.1-or-later
#include "trace/name-pieces.h"

#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "trace/format.h"
#include "trace/records.h"

struct piece {
	uint32_t kind;
	int32_t pid, namespace_pid;
	uint64_t looked_ns, now_ns, offset;
	struct bytes bytes;
};

/* False: out of memory. */
static bool append(uint8_t **data, size_t *size, const struct piece *piece, uint64_t limit)
{
	size_t added = bytes_left(&piece->bytes);
	uint8_t *larger;

	if (!piece->offset)
		*size = 0;
	if (piece->offset != *size || *size + added > limit)
		return true;
	larger = realloc(*data, *size + added + 1);
	if (!larger)
		return false;
	memcpy(larger + *size, piece->bytes.position, added);
	*data = larger;
	*size += added;
	return true;
}

static bool add_perf_map(struct reader_metadata *values, const struct piece *piece)
{
	const struct perf_map_growth before = {.time_ns = piece->looked_ns, .length = piece->offset};
	const struct perf_map_growth now = {.time_ns = piece->now_ns,
					    .length = piece->offset + bytes_left(&piece->bytes)};
	struct perf_map_copy *copy = NULL;

	for (size_t i = 0; !copy && i < values->perf_maps.maps.count; i++) {
		if (values->perf_maps.maps.items[i].pid == piece->pid)
			copy = &values->perf_maps.maps.items[i];
	}
	if (!copy) {
		copy = vector_append(&values->perf_maps.maps);
		if (!copy)
			return false;
		copy->pid = piece->pid;
		copy->namespace_pid = piece->namespace_pid;
	}
	if (!piece->offset)
		copy->growth.count = 0;
	else if (!vector_push(&copy->growth, before))
		return false;
	return vector_push(&copy->growth, now) && append(&copy->text, &copy->text_size, piece, LIMIT_PERF_MAP_BYTES);
}

static bool add_jitdump(struct reader_metadata *values, const struct piece *piece)
{
	struct jitdump_copy *copy = NULL;

	/* The last one of the process: another one begins at 0. */
	for (size_t i = values->jitdumps.dumps.count; piece->offset && !copy && i-- > 0;) {
		if (values->jitdumps.dumps.items[i].pid == piece->pid &&
		    values->jitdumps.dumps.items[i].size == piece->offset)
			copy = &values->jitdumps.dumps.items[i];
	}
	if (!copy && piece->offset)
		return true;
	if (!copy) {
		copy = vector_append(&values->jitdumps.dumps);
		if (!copy)
			return false;
		copy->pid = piece->pid;
		copy->namespace_pid = piece->namespace_pid;
	}
	return append(&copy->data, &copy->size, piece, LIMIT_JITDUMP_BYTES);
}

static struct mmt_error *add_build_ids(struct reader_metadata *values, struct piece *piece)
{
	struct build_ids ids = {0};
	struct mmt_error *error = build_ids_decode(&piece->bytes, &ids);
	size_t taken = 0;

	if (error) {
		mmt_error_destroy(error);
		return NULL;
	}
	while (taken < ids.entries.count && vector_push(&values->build_ids.entries, ids.entries.items[taken]))
		taken++;
	if (taken < ids.entries.count)
		error = &error_no_memory;
	for (size_t i = 0; i < taken; i++)
		ids.entries.items[i].path = NULL;
	build_ids_deinit(&ids);
	return error;
}

static struct mmt_error *add_piece(struct reader_metadata *values, struct bytes record)
{
	struct piece piece = {0};
	struct bytes body;
	bool complete = true;

	bytes_skip(&record, 8 + 8 + 2); /* header, address, old length */
	body = bytes_sub(&record, bytes_u16(&record));
	piece.kind = bytes_u32(&body);
	piece.pid = (int32_t)bytes_u32(&body);
	piece.namespace_pid = (int32_t)bytes_u32(&body);
	bytes_u32(&body);
	piece.looked_ns = bytes_u64(&body);
	piece.now_ns = bytes_u64(&body);
	piece.offset = bytes_u64(&body);
	if (!bytes_ok(&record) || !bytes_ok(&body))
		return NULL;
	piece.bytes = body;
	if (piece.kind == NAME_PIECE_BUILD_IDS)
		return add_build_ids(values, &piece);
	if (piece.kind == NAME_PIECE_PERF_MAP)
		complete = add_perf_map(values, &piece);
	else if (piece.kind == NAME_PIECE_JITDUMP)
		complete = add_jitdump(values, &piece);
	return complete ? NULL : &error_no_memory;
}

struct mmt_error *name_pieces_read(const struct recording_file *file, const struct layouts *layouts,
				   struct reader_metadata *values)
{
	struct mmt_error *damage = NULL;
	struct records *records;
	struct mmt_error *error = records_create(file, &records);
	bool end = false;

	if (error)
		return error;
	while (!error && !end && !damage) {
		struct record_identity identity;
		struct record record;

		error = records_next(records, &record, &end, &damage);
		if (error || end || damage || record.header.type != RECORD_TEXT_POKE)
			continue;
		if (layouts_identify(layouts, &record.header, record.data, &identity) && identity.id == NAME_PIECE_ID)
			error = add_piece(values, bytes_over(record.data, record.header.size));
	}
	/* Whoever reads the events tells it. */
	mmt_error_destroy(damage);
	records_destroy(records);
	return error;
}
