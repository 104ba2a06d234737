// SPDX-License-Identifier: LGPL-2.1-or-later
/* The sections that are large: u32 version, u32 zero, then one zstd frame. */
#include <stdlib.h>
#include <string.h>

#include "trace/compress.h"
#include "trace/format.h"
#include "trace/sections.h"

#define PERF_MAPS_VERSION 1
#define RESIDENCY_VERSION 1
#define JITDUMPS_VERSION 2 /* 1 does not tell when its program began */
#define LIMIT_GROWTH (1u << 24)
#define LIMIT_RUNS (1u << 26)

struct mmt_error *sections_pack(struct buffer *plain, uint32_t version, struct buffer *buffer)
{
	struct compressor *compressor = NULL;
	struct mmt_error *error = buffer_finish(plain);

	if (!error)
		error = compressor_create(&compressor);
	if (!error) {
		buffer_put_u32(buffer, version);
		buffer_put_u32(buffer, 0);
		error = compressor_frame(compressor, plain->data ? plain->data : (const void *)"", plain->size, buffer);
	}
	compressor_destroy(compressor);
	buffer_deinit(plain);
	return error;
}

struct mmt_error *sections_unpack(struct bytes *bytes, uint32_t *version, const char *what, size_t *room,
				  struct buffer *plain)
{
	struct decompressor *decompressor = NULL;
	uint32_t known = *version;
	struct mmt_error *error;
	size_t size;

	*version = bytes_u32(bytes);
	if (*version > known)
		return error_create(MMT_ERROR_UNSUPPORTED, "%s of version %u: written by a newer mmtrace, use that one",
				    what, *version);
	if (*version == 0)
		bytes_fail(bytes, "version 0");
	if (plain->maximum > *room)
		plain->maximum = *room;
	bytes_u32(bytes);
	error = bytes_finish(bytes, what);
	if (!error)
		error = decompressor_create(&decompressor);
	if (!error) {
		size = bytes_left(bytes);
		error = decompressor_feed(decompressor, bytes_take(bytes, size), size, plain);
	}
	*room -= plain->size;
	decompressor_destroy(decompressor);
	return error_context(error, "%s", what);
}

void perf_map_copy_deinit(struct perf_map_copy *copy)
{
	vector_deinit(&copy->growth);
	free(copy->text);
	*copy = (struct perf_map_copy){0};
}

void perf_map_copies_deinit(struct perf_map_copies *copies)
{
	for (size_t i = 0; i < copies->maps.count; i++)
		perf_map_copy_deinit(&copies->maps.items[i]);
	vector_deinit(&copies->maps);
}

struct mmt_error *perf_map_copies_encode(const struct perf_map_copies *copies, struct buffer *buffer)
{
	struct buffer plain;

	buffer_init(&plain, LIMIT_PERF_MAP_BYTES);
	buffer_put_u32(&plain, (uint32_t)copies->maps.count);
	for (size_t i = 0; i < copies->maps.count; i++) {
		const struct perf_map_copy *copy = &copies->maps.items[i];

		buffer_put_u32(&plain, (uint32_t)copy->pid);
		buffer_put_u32(&plain, (uint32_t)copy->namespace_pid);
		buffer_put_u32(&plain, (uint32_t)copy->growth.count);
		buffer_put_u64(&plain, copy->text_size);
		for (size_t j = 0; j < copy->growth.count; j++) {
			buffer_put_u64(&plain, copy->growth.items[j].time_ns);
			buffer_put_u64(&plain, copy->growth.items[j].length);
		}
		buffer_put(&plain, copy->text, copy->text_size);
	}
	return sections_pack(&plain, PERF_MAPS_VERSION, buffer);
}

static struct mmt_error *decode_perf_map(struct bytes *bytes, struct perf_map_copy *copy)
{
	uint64_t growth, size;
	const void *text;

	copy->pid = (int32_t)bytes_u32(bytes);
	copy->namespace_pid = (int32_t)bytes_u32(bytes);
	growth = bytes_u32(bytes);
	size = bytes_u64(bytes);
	growth = bytes_count(bytes, growth, 2 * sizeof(uint64_t), LIMIT_GROWTH);
	for (uint64_t i = 0; i < growth; i++) {
		struct perf_map_growth step = {.time_ns = bytes_u64(bytes)};

		step.length = bytes_u64(bytes);
		if (!vector_push(&copy->growth, step))
			return &error_no_memory;
	}
	size = bytes_count(bytes, size, 1, LIMIT_PERF_MAP_BYTES);
	text = bytes_take(bytes, size);
	copy->text = malloc(size ? size : 1);
	if (!copy->text)
		return &error_no_memory;
	if (text)
		memcpy(copy->text, text, size);
	copy->text_size = text ? size : 0;
	return NULL;
}

struct mmt_error *perf_map_copies_decode(struct bytes *bytes, size_t *room, struct perf_map_copies *copies_ret)
{
	uint32_t version = PERF_MAPS_VERSION;
	static const char what[] = "perf map section";
	struct perf_map_copies copies = {0};
	struct mmt_error *error;
	struct buffer plain;
	struct bytes inner;
	uint64_t count;

	buffer_init(&plain, LIMIT_PERF_MAP_BYTES);
	error = sections_unpack(bytes, &version, what, room, &plain);
	inner = bytes_over(plain.data, plain.size);
	count = error ? 0 : bytes_u32(&inner);
	count = bytes_count(&inner, count, 20, LIMIT_PROCESSES);
	for (uint64_t i = 0; i < count && bytes_ok(&inner) && !error; i++) {
		struct perf_map_copy *copy = vector_append(&copies.maps);

		error = copy ? decode_perf_map(&inner, copy) : &error_no_memory;
	}
	if (!error)
		error = bytes_finish(&inner, what);
	buffer_deinit(&plain);
	if (error)
		perf_map_copies_deinit(&copies);
	else
		*copies_ret = copies;
	return error;
}

#define PROGRAM_NOT_KNOWN UINT64_MAX

void jitdump_copies_deinit(struct jitdump_copies *copies)
{
	for (size_t i = 0; i < copies->dumps.count; i++)
		free(copies->dumps.items[i].data);
	vector_deinit(&copies->dumps);
}

struct mmt_error *jitdump_copies_encode(const struct jitdump_copies *copies, struct buffer *buffer)
{
	struct buffer plain;

	buffer_init(&plain, LIMIT_JITDUMP_BYTES);
	buffer_put_u32(&plain, (uint32_t)copies->dumps.count);
	for (size_t i = 0; i < copies->dumps.count; i++) {
		const struct jitdump_copy *copy = &copies->dumps.items[i];

		buffer_put_u32(&plain, (uint32_t)copy->pid);
		buffer_put_u32(&plain, (uint32_t)copy->namespace_pid);
		buffer_put_u64(&plain, copy->knows_program ? copy->program_ns : PROGRAM_NOT_KNOWN);
		buffer_put_u64(&plain, copy->size);
		buffer_put(&plain, copy->data, copy->size);
	}
	return sections_pack(&plain, JITDUMPS_VERSION, buffer);
}

static struct mmt_error *decode_jitdump(struct bytes *bytes, uint32_t version, struct jitdump_copy *copy)
{
	uint64_t program_ns, size;
	const void *data;

	copy->pid = (int32_t)bytes_u32(bytes);
	copy->namespace_pid = (int32_t)bytes_u32(bytes);
	program_ns = version > 1 ? bytes_u64(bytes) : PROGRAM_NOT_KNOWN;
	copy->knows_program = program_ns != PROGRAM_NOT_KNOWN;
	copy->program_ns = copy->knows_program ? program_ns : 0;
	size = bytes_u64(bytes);
	size = bytes_count(bytes, size, 1, LIMIT_JITDUMP_BYTES);
	data = bytes_take(bytes, size);
	copy->data = malloc(size ? size : 1);
	if (!copy->data)
		return &error_no_memory;
	if (data)
		memcpy(copy->data, data, size);
	copy->size = data ? size : 0;
	return NULL;
}

struct mmt_error *jitdump_copies_decode(struct bytes *bytes, size_t *room, struct jitdump_copies *copies_ret)
{
	uint32_t version = JITDUMPS_VERSION;
	static const char what[] = "jitdump section";
	struct jitdump_copies copies = {0};
	struct mmt_error *error;
	struct buffer plain;
	struct bytes inner;
	uint64_t count;

	buffer_init(&plain, LIMIT_JITDUMP_BYTES);
	error = sections_unpack(bytes, &version, what, room, &plain);
	inner = bytes_over(plain.data, plain.size);
	count = error ? 0 : bytes_u32(&inner);
	count = bytes_count(&inner, count, 16, LIMIT_PROCESSES);
	for (uint64_t i = 0; i < count && bytes_ok(&inner) && !error; i++) {
		struct jitdump_copy *copy = vector_append(&copies.dumps);

		error = copy ? decode_jitdump(&inner, version, copy) : &error_no_memory;
	}
	if (!error)
		error = bytes_finish(&inner, what);
	buffer_deinit(&plain);
	if (error)
		jitdump_copies_deinit(&copies);
	else
		*copies_ret = copies;
	return error;
}

void recording_residency_deinit(struct recording_residency *residency)
{
	for (size_t i = 0; i < residency->processes.count; i++)
		vector_deinit(&residency->processes.items[i].runs);
	vector_deinit(&residency->processes);
}

struct mmt_error *recording_residency_encode(const struct recording_residency *residency, struct buffer *buffer)
{
	struct buffer plain;

	buffer_init(&plain, LIMIT_SECTION_BYTES);
	buffer_put_u32(&plain, (uint32_t)residency->processes.count);
	for (size_t i = 0; i < residency->processes.count; i++) {
		const struct process_residency *process = &residency->processes.items[i];

		buffer_put_u32(&plain, (uint32_t)process->pid);
		buffer_put_u32(&plain, (uint32_t)process->runs.count);
		for (size_t j = 0; j < process->runs.count; j++) {
			buffer_put_u64(&plain, process->runs.items[j].start);
			buffer_put_u64(&plain, process->runs.items[j].end);
		}
	}
	return sections_pack(&plain, RESIDENCY_VERSION, buffer);
}

static struct mmt_error *decode_residency(struct bytes *bytes, struct process_residency *process)
{
	uint64_t count, previous = 0;

	process->pid = (int32_t)bytes_u32(bytes);
	count = bytes_u32(bytes);
	count = bytes_count(bytes, count, 2 * sizeof(uint64_t), LIMIT_RUNS);
	for (uint64_t i = 0; i < count && bytes_ok(bytes); i++) {
		struct resident_run run = {.start = bytes_u64(bytes)};

		run.end = bytes_u64(bytes);
		if (run.start >= run.end || run.start < previous)
			bytes_fail(bytes, "resident pages out of order");
		previous = run.end;
		if (!vector_push(&process->runs, run))
			return &error_no_memory;
	}
	return NULL;
}

struct mmt_error *recording_residency_decode(struct bytes *bytes, size_t *room,
					     struct recording_residency *residency_ret)
{
	uint32_t version = RESIDENCY_VERSION;
	static const char what[] = "residency section";
	struct recording_residency residency = {0};
	struct mmt_error *error;
	struct buffer plain;
	struct bytes inner;
	uint64_t count;

	buffer_init(&plain, LIMIT_SECTION_BYTES);
	error = sections_unpack(bytes, &version, what, room, &plain);
	inner = bytes_over(plain.data, plain.size);
	count = error ? 0 : bytes_u32(&inner);
	count = bytes_count(&inner, count, 8, LIMIT_PROCESSES);
	for (uint64_t i = 0; i < count && bytes_ok(&inner) && !error; i++) {
		struct process_residency *process = vector_append(&residency.processes);

		error = process ? decode_residency(&inner, process) : &error_no_memory;
	}
	if (!error)
		error = bytes_finish(&inner, what);
	buffer_deinit(&plain);
	if (error)
		recording_residency_deinit(&residency);
	else
		*residency_ret = residency;
	return error;
}
