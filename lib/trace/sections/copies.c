// SPDX-License-Identifier: LGPL-2.1-or-later
#include "trace/sections/copies.h"

#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/compression.h"
#include "base/limits.h"
#include "trace/format/format.h"
#include "trace/sections/sections.h"

#define CODE_VERSION 2
#define TIMES_VERSION 2		 /* and later: a process has until_ns and changes */
#define PROCESS_BYTES 8		 /* without any run, at least */
#define RUN_BYTES 16		 /* without its code */
#define CHANGE_BYTES 24		 /* without its code */
#define PIECE_BYTES (256u << 10) /* size of a frame; a longer run is split */

bool code_copies_is_jit(const char *path)
{
	return !strncmp(path, "//anon", 6) || !strncmp(path, "/memfd:", 7) || !strncmp(path, "[anon", 5) ||
	       !strncmp(path, "/dev/zero", 9) || !strncmp(path, "/anon_hugepage", 14) || !strncmp(path, "/SYSV", 5) ||
	       !strcmp(path, "[heap]") || !strcmp(path, "");
}

bool code_copies_is_wanted(const char *path)
{
	const char *suffix = strrchr(path, '.');

	return code_copies_is_jit(path) || (suffix && (!strcmp(suffix, ".dll") || !strcmp(suffix, ".exe")));
}

void code_copies_deinit(struct code_copies *copies)
{
	for (size_t i = 0; i < copies->processes.count; i++) {
		vector_deinit(&copies->processes.items[i].runs);
		vector_deinit(&copies->processes.items[i].changes);
	}
	vector_deinit(&copies->processes);
	buffer_deinit(&copies->bytes);
}

bool code_copies_add(struct process_code *process, uint64_t start, size_t size, size_t offset)
{
	struct code_run run = {.start = start, .size = size, .offset = offset};
	struct code_run *last = process->runs.count ? &process->runs.items[process->runs.count - 1] : NULL;

	if (last && start < last->start + last->size)
		return true;
	if (last && last->start + last->size == start && last->offset + last->size == offset) {
		last->size += size;
		return true;
	}
	return vector_push(&process->runs, run);
}

/* Merges adjacent runs. Returns the end of the result. */
static size_t find_end(const struct process_code *process, size_t first, uint64_t *size_ret)
{
	const struct code_run *runs = process->runs.items;
	size_t end = first + 1;

	*size_ret = runs[first].size;
	while (end < process->runs.count && runs[end].start == runs[first].start + *size_ret)
		*size_ret += runs[end++].size;
	return end;
}

/* State of the encoder. */
struct packing {
	const struct code_copies *copies;
	const struct code_source *source;
	struct compressor *compressor;
	struct buffer plain; /* not compressed yet */
	struct buffer *packed;
};

static struct mmt_error *pack(struct packing *packing)
{
	struct mmt_error *error = buffer_finish(&packing->plain);

	if (!error && packing->plain.size)
		error =
		    compressor_frame(packing->compressor, packing->plain.data, packing->plain.size, packing->packed);
	buffer_clear(&packing->plain);
	return error;
}

static struct mmt_error *put_code(struct packing *packing, size_t offset, size_t size)
{
	const struct code_source *source = packing->source;
	struct mmt_error *error = NULL;

	if (source)
		error = source->read(source->context, offset, &packing->plain);
	else
		buffer_put(&packing->plain, packing->copies->bytes.data + offset, size);
	return error || packing->plain.size < PIECE_BYTES ? error : pack(packing);
}

static struct mmt_error *encode_changes(struct packing *packing, const struct process_code *process)
{
	struct mmt_error *error = NULL;

	for (size_t i = 0; !error && i < process->changes.count; i++) {
		const struct code_change *change = &process->changes.items[i];

		buffer_put_u64(&packing->plain, change->start);
		buffer_put_u64(&packing->plain, change->size);
		buffer_put_u64(&packing->plain, change->until_ns);
		error = put_code(packing, change->offset, change->size);
	}
	return error;
}

static struct mmt_error *encode_process(struct packing *packing, const struct process_code *process)
{
	struct buffer *plain = &packing->plain;
	struct mmt_error *error = NULL;
	uint32_t count = 0;
	uint64_t size;

	for (size_t i = 0; i < process->runs.count; i = find_end(process, i, &size))
		count++;
	buffer_put_u32(plain, (uint32_t)process->pid);
	buffer_put_u32(plain, count);
	buffer_put_u64(plain, process->until_ns);
	buffer_put_u32(plain, (uint32_t)process->changes.count);
	for (size_t i = 0, end; !error && i < process->runs.count; i = end) {
		end = find_end(process, i, &size);
		buffer_put_u64(plain, process->runs.items[i].start);
		buffer_put_u64(plain, size);
		for (size_t j = i; !error && j < end; j++)
			error = put_code(packing, process->runs.items[j].offset, process->runs.items[j].size);
	}
	return error ? error : encode_changes(packing, process);
}

struct mmt_error *code_copies_encode(const struct code_copies *copies, const struct code_source *source,
				     struct buffer *buffer)
{
	struct packing packing = {.copies = copies, .source = source, .packed = buffer};
	struct mmt_error *error = compressor_create(&packing.compressor);

	buffer_init(&packing.plain, LIMIT_CODE_BYTES);
	buffer_put_u32(buffer, CODE_VERSION);
	buffer_put_u32(buffer, 0);
	buffer_put_u32(&packing.plain, (uint32_t)copies->processes.count);
	for (size_t i = 0; !error && i < copies->processes.count; i++)
		error = encode_process(&packing, &copies->processes.items[i]);
	if (!error)
		error = pack(&packing);
	compressor_destroy(packing.compressor);
	buffer_deinit(&packing.plain);
	return error;
}

static const struct code_run *find_run(const struct process_code *process, uint64_t address)
{
	size_t behind = partition_point(process->runs.count, i, process->runs.items[i].start <= address);
	const struct code_run *run = behind ? &process->runs.items[behind - 1] : NULL;

	return run && address - run->start < run->size ? run : NULL;
}

static struct mmt_error *decode_changes(struct bytes *bytes, uint64_t count, struct process_code *process)
{
	uint64_t previous_ns = 0;

	count = bytes_at_most(bytes, bytes_count(bytes, count, CHANGE_BYTES), LIMIT_CODE_CHANGES);
	for (uint64_t i = 0; i < count && bytes_ok(bytes); i++) {
		struct code_change change = {.start = bytes_u64(bytes)};
		uint64_t size = bytes_u64(bytes);
		const struct code_run *run = find_run(process, change.start);

		change.until_ns = bytes_u64(bytes);
		change.size = (size_t)bytes_count(bytes, size, 1);
		change.offset = (size_t)(bytes->position - bytes->start);
		bytes_skip(bytes, change.size);
		if (!run || change.size > run->size - (change.start - run->start) || change.until_ns < previous_ns)
			bytes_fail(bytes, "changes outside the code, or out of order");
		previous_ns = change.until_ns;
		if (bytes_ok(bytes) && !vector_push(&process->changes, change))
			return &error_no_memory;
	}
	return NULL;
}

static struct mmt_error *decode_process(struct bytes *bytes, uint32_t version, struct process_code *process)
{
	uint64_t count, change_count = 0, previous = 0;

	process->pid = (int32_t)bytes_u32(bytes);
	count = bytes_u32(bytes);
	process->until_ns = version >= TIMES_VERSION ? bytes_u64(bytes) : UINT64_MAX;
	if (version >= TIMES_VERSION)
		change_count = bytes_u32(bytes);
	count = bytes_count(bytes, count, RUN_BYTES);
	for (uint64_t i = 0; i < count && bytes_ok(bytes); i++) {
		struct code_run run = {.start = bytes_u64(bytes)};
		uint64_t size = bytes_u64(bytes);

		size = bytes_count(bytes, size, 1);
		if (run.start < previous || run.start > UINT64_MAX - size)
			bytes_fail(bytes, "code out of order");
		run.size = (size_t)size;
		run.offset = (size_t)(bytes->position - bytes->start);
		bytes_skip(bytes, size);
		previous = run.start + size;
		if (bytes_ok(bytes) && !vector_push(&process->runs, run))
			return &error_no_memory;
	}
	return decode_changes(bytes, change_count, process);
}

struct mmt_error *code_copies_decode(struct bytes *bytes, size_t *room, struct code_copies *copies_ret)
{
	uint32_t version = CODE_VERSION;
	static const char what[] = "JIT code section";
	struct code_copies copies = {0};
	struct mmt_error *error;
	struct bytes inner;
	uint64_t count;

	buffer_init(&copies.bytes, LIMIT_CODE_BYTES);
	error = sections_unpack(bytes, &version, what, room, &copies.bytes);
	inner = bytes_over(copies.bytes.data, copies.bytes.size);
	count = bytes_at_most(&inner, bytes_count_u32(&inner, PROCESS_BYTES), LIMIT_PROCESSES);
	for (uint64_t i = 0; i < count && bytes_ok(&inner) && !error; i++) {
		struct process_code *process = vector_append(&copies.processes);

		error = process ? decode_process(&inner, version, process) : &error_no_memory;
	}
	if (!error)
		error = bytes_finish(&inner, what);
	if (error)
		code_copies_deinit(&copies);
	else
		*copies_ret = copies;
	return error;
}

const struct process_code *code_copies_find(const struct code_copies *copies, int32_t pid, uint64_t began_ns)
{
	const struct process_code *found = NULL;

	for (size_t i = 0; i < copies->processes.count; i++) {
		const struct process_code *process = &copies->processes.items[i];

		if (process->pid == pid && process->until_ns > began_ns &&
		    (!found || process->until_ns < found->until_ns))
			found = process;
	}
	return found;
}

size_t code_copies_at(const struct code_copies *copies, const struct process_code *process, uint64_t address,
		      size_t size, const uint8_t **code_ret)
{
	const struct code_run *run = find_run(process, address);
	size_t left;

	if (!run)
		return 0;
	left = run->size - (size_t)(address - run->start);
	*code_ret = copies->bytes.data + run->offset + (address - run->start);
	return size < left ? size : left;
}

size_t code_copies_before(const struct code_copies *copies, const struct process_code *process, uint64_t address,
			  size_t size, const uint8_t **code_ret)
{
	const struct code_run *run = address ? find_run(process, address - 1) : NULL;
	size_t before;

	if (!run)
		return 0;
	before = (size_t)(address - run->start);
	if (size > before)
		size = before;
	*code_ret = copies->bytes.data + run->offset + before - size;
	return size;
}

#define IMAGES_VERSION 1
#define HEADER_BYTES 16
#define ENTRY_BYTES_MIN 57 /* with an empty path */
#define OFFSET_PLACE 16	   /* offset in an entry of the fields that are filled in later */
#define STORED_PLACE 20
#define SIZE_PLACE 24

void module_copies_deinit(struct module_copies *copies)
{
	for (size_t i = 0; i < copies->images.count; i++)
		free(copies->images.items[i].path);
	vector_deinit(&copies->images);
	copies->file = NULL;
}

uint64_t module_copies_entry_bytes(const struct module_copy *image)
{
	return ENTRY_BYTES_MIN + strlen(image->path);
}

void module_copies_encode_index(const struct module_copies *copies, struct buffer *buffer, size_t *places)
{
	size_t start = buffer->size;

	buffer_put_u32(buffer, IMAGES_VERSION);
	buffer_put_u32(buffer, (uint32_t)copies->images.count);
	buffer_put_u32(buffer, 0); /* size of the index, patched later */
	buffer_put_u32(buffer, 0);
	for (size_t i = 0; i < copies->images.count; i++) {
		const struct module_copy *image = &copies->images.items[i];

		places[i] = buffer->size;
		buffer_put_u32(buffer, image->device_major);
		buffer_put_u32(buffer, image->device_minor);
		buffer_put_u64(buffer, image->inode);
		buffer_put_u32(buffer, image->offset);
		buffer_put_u32(buffer, image->stored);
		buffer_put_u64(buffer, image->size);
		buffer_put(buffer, image->build_id, sizeof(image->build_id));
		buffer_put_u32(buffer, image->build_id_size);
		buffer_put_string(buffer, image->path);
	}
	if (!buffer->error)
		buffer_patch_u32(buffer, start + 8, (uint32_t)(buffer->size - start));
}

void module_copies_patch(struct buffer *buffer, size_t place, size_t offset, size_t stored, uint64_t size)
{
	if (buffer->error)
		return;
	buffer_patch_u32(buffer, place + OFFSET_PLACE, (uint32_t)offset);
	buffer_patch_u32(buffer, place + STORED_PLACE, (uint32_t)stored);
	buffer_patch_u32(buffer, place + SIZE_PLACE, (uint32_t)size);
	buffer_patch_u32(buffer, place + SIZE_PLACE + sizeof(uint32_t), (uint32_t)(size >> 32));
}

/* The end of the copies so far in the section, and their total decompressed size. */
struct copied {
	uint64_t end, bytes;
};

/* Copies must be in sequence: no bytes may belong to two modules. */
static void check_copy(struct bytes *bytes, const struct module_copy *image, uint64_t section_size,
		       struct copied *copied)
{
	if (image->offset > section_size || image->stored > section_size - image->offset)
		bytes_fail(bytes, "copy beyond the section");
	if (image->size && image->offset < copied->end)
		bytes_fail(bytes, "copy within another one");
	if (image->size > LIMIT_IMAGE_BYTES || image->size > LIMIT_IMAGE_BYTES - copied->bytes)
		bytes_fail(bytes, "copies larger than the limit");
	if (!image->size || !bytes_ok(bytes))
		return;
	copied->end = (uint64_t)image->offset + image->stored;
	copied->bytes += image->size;
}

static struct mmt_error *decode_image(struct bytes *bytes, uint64_t section_size, struct copied *copied,
				      struct module_copies *copies)
{
	struct module_copy image = {.device_major = bytes_u32(bytes), .device_minor = bytes_u32(bytes)};
	const void *build_id;
	uint32_t build_id_size;

	image.inode = bytes_u64(bytes);
	image.offset = bytes_u32(bytes);
	image.stored = bytes_u32(bytes);
	image.size = bytes_u64(bytes);
	build_id = bytes_take(bytes, sizeof(image.build_id));
	build_id_size = bytes_u32(bytes);
	if (build_id_size > sizeof(image.build_id))
		bytes_fail(bytes, "invalid size of a build-id");
	check_copy(bytes, &image, section_size, copied);
	image.path = strdup(bytes_string(bytes));
	if (!image.path)
		return &error_no_memory;
	if (build_id && bytes_ok(bytes)) {
		memcpy(image.build_id, build_id, sizeof(image.build_id));
		image.build_id_size = (uint8_t)build_id_size;
	}
	if (vector_push(&copies->images, image))
		return NULL;
	free(image.path);
	return &error_no_memory;
}

static struct mmt_error *decode_index(const struct recording_file *file, struct module_copies *copies)
{
	static const char what[] = "images section";
	const struct file_section *section = &file->sections[FEATURE_MMTRACE_IMAGES];
	CLEANUP(free) uint8_t *data = NULL;
	uint8_t header[HEADER_BYTES] = {0};
	struct bytes bytes = bytes_over(header, sizeof(header));
	struct mmt_error *error = NULL;
	struct copied copied = {0};
	uint64_t count, index_size;
	uint32_t version;

	if (section->size < sizeof(header))
		return error_create(MMT_ERROR_FORMAT, "%s: ends too early at byte %u", what, (unsigned)section->size);
	error = recording_file_read(file, section->offset, header, sizeof(header));
	if (error)
		return error;
	version = bytes_u32(&bytes);
	count = bytes_u32(&bytes);
	index_size = bytes_u32(&bytes);
	if (version > IMAGES_VERSION)
		return error_create(MMT_ERROR_UNSUPPORTED,
				    "%s of version %u: written by a newer version of mmtrace; use that version", what,
				    version);
	if (version == 0 || index_size < sizeof(header) || index_size > section->size ||
	    index_size > LIMIT_IMAGE_INDEX_BYTES)
		return error_create(MMT_ERROR_FORMAT, "%s: invalid index", what);
	data = malloc(index_size);
	if (!data)
		return &error_no_memory;
	error = recording_file_read(file, section->offset, data, index_size);
	if (error)
		return error;
	bytes = bytes_over(data, index_size);
	bytes_skip(&bytes, sizeof(header));
	count = bytes_count(&bytes, count, ENTRY_BYTES_MIN);
	for (uint64_t i = 0; i < count && bytes_ok(&bytes) && !error; i++)
		error = decode_image(&bytes, section->size, &copied, copies);
	return error ? error : bytes_finish(&bytes, what);
}

struct mmt_error *module_copies_load(const struct recording_file *file, struct module_copies *copies_ret)
{
	struct module_copies copies = {.file = file};
	struct mmt_error *error;

	if (!file->sections[FEATURE_MMTRACE_IMAGES].present)
		return NULL;
	error = decode_index(file, &copies);
	if (error)
		module_copies_deinit(&copies);
	else
		*copies_ret = copies;
	return error;
}

struct mmt_error *module_copies_extract(const struct module_copies *copies, const struct module_copy *image,
					uint8_t **data_ret)
{
	const struct file_section *section = &copies->file->sections[FEATURE_MMTRACE_IMAGES];
	CLEANUP(free) uint8_t *stored = malloc(image->stored ? image->stored : 1);
	struct decompressor *decompressor = NULL;
	struct mmt_error *error = stored ? NULL : &error_no_memory;
	struct buffer content;

	buffer_init(&content, image->size);
	if (!error)
		error = recording_file_read(copies->file, section->offset + image->offset, stored, image->stored);
	if (!error)
		error = decompressor_create(&decompressor);
	if (!error)
		error = decompressor_feed(decompressor, stored, image->stored, &content);
	decompressor_destroy(decompressor);
	if (!error && content.size != image->size)
		error = error_create(MMT_ERROR_FORMAT, "%zu bytes instead of %llu", content.size,
				     (unsigned long long)image->size);
	if (!error) {
		*data_ret = content.data;
		return NULL;
	}
	buffer_deinit(&content);
	return error_context(error, "copy of %s", image->path);
}
