// SPDX-License-Identifier: LGPL-2.1-or-later
/* perf's table of build-ids: records {header, i32 pid, u8 id[20], u8 size, u8 zero[3], path padded to 64 bytes}. */
#include <linux/perf_event.h>
#include <stdlib.h>
#include <string.h>

#include "trace/format/format.h"
#include "trace/sections/sections.h"

#define MISC_SIZE_GIVEN (1u << 15) /* PERF_RECORD_MISC_BUILD_ID_SIZE */
#define ID_BYTES 20
#define FIXED_BYTES (sizeof(struct perf_event_header) + sizeof(int32_t) + ID_BYTES + 4)
#define PATH_ALIGNMENT 64
#define EVERY_PROCESS UINT32_MAX

void build_ids_deinit(struct build_ids *ids)
{
	for (size_t i = 0; i < ids->entries.count; i++)
		free(ids->entries.items[i].path);
	vector_deinit(&ids->entries);
}

void build_ids_encode(const struct build_ids *ids, struct buffer *buffer)
{
	for (size_t i = 0; i < ids->entries.count; i++) {
		const struct build_id_entry *entry = &ids->entries.items[i];
		uint8_t id[ID_BYTES + 4] = {0};
		size_t path_size = strlen(entry->path) + 1;
		size_t padded = (path_size + PATH_ALIGNMENT - 1) & ~(size_t)(PATH_ALIGNMENT - 1);
		uint8_t *path;

		if (path_size > LIMIT_PATH_BYTES)
			continue;
		memcpy(id, entry->bytes, entry->size);
		id[ID_BYTES] = entry->size;
		buffer_put_u32(buffer, 0);
		buffer_put_u16(buffer, PERF_RECORD_MISC_USER | MISC_SIZE_GIVEN);
		buffer_put_u16(buffer, (uint16_t)(FIXED_BYTES + padded));
		buffer_put_u32(buffer, EVERY_PROCESS);
		buffer_put(buffer, id, sizeof(id));
		path = buffer_extend(buffer, padded);
		if (!path)
			return;
		memset(path, 0, padded);
		memcpy(path, entry->path, path_size);
	}
}

static struct mmt_error *decode_entry(struct bytes *bytes, struct build_ids *ids)
{
	struct build_id_entry *entry;
	struct bytes record;
	const uint8_t *id;
	uint16_t misc, size;

	bytes_u32(bytes); /* type */
	misc = bytes_u16(bytes);
	size = bytes_u16(bytes);
	if (size < FIXED_BYTES)
		bytes_fail(bytes, "record too short");
	record = bytes_sub(bytes, size - sizeof(struct perf_event_header));
	bytes_u32(&record); /* pid */
	id = bytes_take(&record, ID_BYTES + 4);
	if (!id)
		return NULL;
	entry = vector_append(&ids->entries);
	if (!entry)
		return &error_no_memory;
	entry->size = misc & MISC_SIZE_GIVEN ? id[ID_BYTES] : ID_BYTES;
	if (entry->size == 0 || entry->size > ID_BYTES)
		bytes_fail(bytes, "build-id of a wrong size");
	memcpy(entry->bytes, id, ID_BYTES);
	entry->path = strdup(bytes_string(&record));
	if (!bytes_ok(&record))
		bytes_fail(bytes, record.failure);
	return entry->path ? NULL : &error_no_memory;
}

struct mmt_error *build_ids_decode(struct bytes *bytes, struct build_ids *ids_ret)
{
	struct mmt_error *error = NULL;
	struct build_ids ids = {0};

	while (bytes_left(bytes) && bytes_ok(bytes) && !error)
		error = decode_entry(bytes, &ids);
	if (!error)
		error = bytes_finish(bytes, "build-id section");
	if (error)
		build_ids_deinit(&ids);
	else
		*ids_ret = ids;
	return error;
}
