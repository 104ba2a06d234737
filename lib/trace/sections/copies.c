// SPDX-License-Identifier: LGPL-2.1-or-later
#include "trace/sections/sections.h"

#include "base/compression.h"
#include "base/limits.h"

#define IMAGES_VERSION 1
#define HEADER_BYTES 16
#define ENTRY_BYTES_MIN 57 /* with an empty path */

void module_copies_deinit(struct module_copies *copies)
{
	vector_deinit_each(&copies->images, item, free(item->path));
	copies->file = NULL;
}

uint64_t module_copies_entry_bytes(const struct module_copy *image)
{
	return ENTRY_BYTES_MIN + strlen(image->path);
}

void module_copies_encode_index(const struct module_copies *copies, struct buffer *buffer)
{
	size_t end = buffer->size;

	buffer->size = 0;
	buffer_put_u32(buffer, IMAGES_VERSION);
	buffer_put_u32(buffer, (uint32_t)copies->images.count);
	buffer_put_u32(buffer, 0); /* size of the index, patched below */
	buffer_put_u32(buffer, 0);
	array_each(image, copies->images.items, copies->images.count) {
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
	buffer_patch_u32(buffer, 8, (uint32_t)buffer->size);
	buffer->size = larger_of(buffer->size, end);
}

/* The end of the copies so far in the section, and their total decompressed size. */
struct copied {
	uint64_t end, bytes;
};

static struct mmt_error *decode_image(struct bytes *bytes, uint64_t section_size, struct copied *copied,
				      struct module_copies *copies)
{
	struct module_copy *image = vector_append(&copies->images);
	const void *build_id;
	uint32_t build_id_size;

	if (!image)
		return &error_no_memory;
	image->device_major = bytes_u32(bytes);
	image->device_minor = bytes_u32(bytes);
	image->inode = bytes_u64(bytes);
	image->offset = bytes_u32(bytes);
	image->stored = bytes_u32(bytes);
	image->size = bytes_u64(bytes);
	build_id = bytes_take(bytes, sizeof(image->build_id));
	build_id_size = bytes_u32(bytes);
	if (build_id_size > sizeof(image->build_id))
		bytes_fail(bytes, "invalid size of a build-id");
	if (image->offset > section_size || image->stored > section_size - image->offset)
		bytes_fail(bytes, "copy beyond the section");
	/* Copies must be in sequence: no bytes may belong to two modules. */
	if (image->size && image->offset < copied->end)
		bytes_fail(bytes, "copy within another one");
	if (image->size > LIMIT_IMAGE_BYTES || image->size > LIMIT_IMAGE_BYTES - copied->bytes)
		bytes_fail(bytes, "copies larger than the limit");
	if (image->size && bytes_ok(bytes)) {
		copied->end = (uint64_t)image->offset + image->stored;
		copied->bytes += image->size;
	}
	image->path = strdup(bytes_string(bytes));
	if (build_id && bytes_ok(bytes)) {
		memcpy(image->build_id, build_id, sizeof(image->build_id));
		image->build_id_size = (uint8_t)build_id_size;
	}
	return image->path ? NULL : &error_no_memory;
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
	error = section_version(&bytes, IMAGES_VERSION, IMAGES_VERSION, what, &version);
	if (error)
		return error;
	count = bytes_u32(&bytes);
	index_size = bytes_u32(&bytes);
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
	CLEANUP(buffer) struct buffer content = {.maximum = image->size};
	struct mmt_error *error = stored ? NULL : &error_no_memory;

	error = error ?: recording_file_read(copies->file, section->offset + image->offset, stored, image->stored);
	error = error ?: decompressor_create(&decompressor);
	error = error ?: decompressor_feed(decompressor, stored, image->stored, &content);
	decompressor_destroy(decompressor);
	if (!error && content.size != image->size)
		error = error_create(MMT_ERROR_FORMAT, "%zu bytes instead of %llu", content.size,
				     (unsigned long long)image->size);
	if (!error)
		*data_ret = TAKE(content.data);
	return error_context(error, "copy of %s", image->path);
}
