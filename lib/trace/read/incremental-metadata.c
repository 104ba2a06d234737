// SPDX-License-Identifier: LGPL-2.1-or-later
#include "trace/read/incremental-metadata.h"

#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/map.h"
#include "trace/format/format.h"
#include "trace/read/records.h"

struct metadata_piece {
	uint32_t kind;
	int32_t pid, namespace_pid;
	uint64_t looked_ns, now_ns, offset;
	struct bytes bytes;
};

struct pieces {
	struct reader_metadata *values;
	struct map map_of_pid;
	struct map dump_of_end; /* by make_key() of the process and how long it is by now */
	uint64_t count, bytes;
};

/* False: out of memory. */
static bool append(uint8_t **data, size_t *size, const struct metadata_piece *piece, uint64_t limit)
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

static bool add_perf_map(struct pieces *pieces, const struct metadata_piece *piece)
{
	const struct perf_map_growth before = {.time_ns = piece->looked_ns, .length = piece->offset};
	const struct perf_map_growth now = {.time_ns = piece->now_ns,
					    .length = piece->offset + bytes_left(&piece->bytes)};
	struct perf_map_copies *copies = &pieces->values->perf_maps;
	const uint64_t *index = map_get(&pieces->map_of_pid, (uint32_t)piece->pid);
	struct perf_map_copy *copy = index ? &copies->maps.items[*index] : NULL;

	if (!copy) {
		copy = vector_append(&copies->maps);
		if (!copy || !map_put(&pieces->map_of_pid, (uint32_t)piece->pid, copies->maps.count - 1))
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

/* No dump is longer than 32 bits tell. */
static uint64_t make_key(int32_t pid, uint64_t size)
{
	return (uint64_t)(uint32_t)pid << 32 | (uint32_t)size;
}

static bool add_jitdump(struct pieces *pieces, const struct metadata_piece *piece)
{
	struct jitdump_copies *copies = &pieces->values->jitdumps;
	const uint64_t *found;
	struct jitdump_copy *copy;
	uint64_t index = copies->dumps.count;

	/* The last one of the process that ends there: another one begins at 0. */
	if (piece->offset) {
		found = piece->offset <= LIMIT_JITDUMP_BYTES
			    ? map_get(&pieces->dump_of_end, make_key(piece->pid, piece->offset))
			    : NULL;
		if (!found)
			return true;
		index = *found;
		map_remove(&pieces->dump_of_end, make_key(piece->pid, piece->offset));
		copy = &copies->dumps.items[index];
	} else {
		copy = vector_append(&copies->dumps);
		if (!copy)
			return false;
		copy->pid = piece->pid;
		copy->namespace_pid = piece->namespace_pid;
		copy->program_ns = piece->looked_ns;
		copy->knows_program = copy->program_ns != 0;
	}
	return append(&copy->data, &copy->size, piece, LIMIT_JITDUMP_BYTES) &&
	       map_put(&pieces->dump_of_end, make_key(copy->pid, copy->size), index);
}

static struct mmt_error *add_build_ids(struct reader_metadata *values, struct metadata_piece *piece)
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

/* `damage_ret`: there are too many. */
static struct mmt_error *add_piece(struct pieces *pieces, struct bytes record, struct mmt_error **damage_ret)
{
	struct metadata_piece piece = {0};
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
	pieces->bytes += bytes_left(&body);
	if (++pieces->count > LIMIT_INCREMENTAL_METADATA ||
	    pieces->bytes > INCREMENTAL_METADATA_BYTES_MAX + UINT16_MAX) {
		*damage_ret = error_create(MMT_ERROR_FORMAT, "more pieces of perf maps and jitdumps than can be");
		return NULL;
	}
	if (piece.kind == NAME_PIECE_BUILD_IDS)
		return add_build_ids(pieces->values, &piece);
	if (piece.kind == NAME_PIECE_PERF_MAP)
		complete = add_perf_map(pieces, &piece);
	else if (piece.kind == NAME_PIECE_JITDUMP)
		complete = add_jitdump(pieces, &piece);
	return complete ? NULL : &error_no_memory;
}

struct mmt_error *incremental_metadata_read(const struct recording_file *file, const struct layouts *layouts,
					    struct reader_metadata *values, struct mmt_error **damage_ret)
{
	struct pieces pieces = {.values = values};
	struct mmt_error *damage = NULL;
	struct records *records;
	struct mmt_error *error = records_create(file, &records);
	bool end = false;

	if (error)
		return error;
	while (!error && !end && !damage && !*damage_ret) {
		struct record_identity identity;
		struct record record;

		error = records_next(records, &record, &end, &damage);
		if (error || end || damage || record.header.type != RECORD_TEXT_POKE)
			continue;
		if (layouts_identify(layouts, &record.header, record.data, &identity) && identity.id == NAME_PIECE_ID)
			error = add_piece(&pieces, bytes_over(record.data, record.header.size), damage_ret);
	}
	/* Whoever reads the events tells it. */
	mmt_error_destroy(damage);
	records_destroy(records);
	map_deinit(&pieces.dump_of_end);
	map_deinit(&pieces.map_of_pid);
	return error;
}
