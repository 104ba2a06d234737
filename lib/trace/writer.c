// SPDX-License-Identifier: LGPL-2.1-or-later
#include "trace/writer.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/buffer.h"
#include "base/cleanup.h"
#include "base/vector.h"
#include "trace/compress.h"
#include "trace/output-file.h"

#define RECORD_HEADER_BYTES sizeof(struct perf_event_header)
#define RECORD_BYTES_MAX (UINT16_MAX & ~7u)
#define PUSH_BYTES (64u << 10)	    /* so much output is collected before it is written */
#define HEAD_BYTES_MAX (256u << 20) /* everything before the data */
#define SKIPPABLE_MAGIC 0x184d2a50u /* of zstd frames that decompress to nothing */
#define COMPRESSED_ZSTD 1	    /* the type in HEADER_COMPRESSED */
#define COMPRESSED_RATIO_OFFSET 12  /* into HEADER_COMPRESSED */
#define EVENT_NAME_ALIGNMENT 64	    /* as perf pads strings */

/* Of the attribute as every perf that knows mmap2 with build-ids or later can read it (PERF_ATTR_SIZE_VER7): a longer
 * one is refused by older ones. */
#define ATTRIBUTE_BYTES 128
_Static_assert(sizeof(struct perf_event_attr) >= ATTRIBUTE_BYTES, "kernel headers too old");

struct attribute {
	struct perf_event_attr attr;
	char *name;
	VECTOR(uint64_t) ids;
};

struct section {
	enum format_feature feature;
	uint8_t *data; /* NULL when it lies in the preamble, already written */
	uint64_t offset, size;
};

struct writer {
	struct output_file file;
	bool has_head;
	VECTOR(struct attribute) attributes;
	VECTOR(struct section) sections;
	struct compressor *compressor;
	struct buffer pending; /* whole records, not compressed yet */
	struct buffer scratch; /* one compressed frame */
	struct buffer output;  /* whole records of the file, not written yet */
	uint64_t attributes_offset, data_offset, compressed_offset;
	uint64_t file_bytes;	      /* written, always ends with a whole record */
	uint64_t last_push_offset;    /* where the last write began */
	uint64_t bytes_in, bytes_out; /* of compressed records */
	bool round_is_empty;
};

struct mmt_error *writer_create(const char *path, struct writer **writer_ret)
{
	struct writer *writer = calloc(1, sizeof(*writer));
	struct mmt_error *error;

	if (!writer)
		return &error_no_memory;
	writer->file.fd = -1;
	writer->round_is_empty = true;
	buffer_init(&writer->pending, FRAME_BYTES);
	buffer_init(&writer->scratch, 2 * FRAME_BYTES);
	buffer_init(&writer->output, 2 * PUSH_BYTES + FRAME_BYTES);
	error = compressor_create(&writer->compressor);
	if (!error)
		error = output_file_open(path, &writer->file);
	if (error) {
		writer_destroy(writer);
		return error;
	}
	*writer_ret = writer;
	return NULL;
}

void writer_replace(struct writer *writer)
{
	writer->file.replaces = true;
}

void writer_destroy(struct writer *writer)
{
	if (!writer)
		return;
	output_file_close(&writer->file);
	for (size_t i = 0; i < writer->attributes.count; i++) {
		free(writer->attributes.items[i].name);
		vector_deinit(&writer->attributes.items[i].ids);
	}
	vector_deinit(&writer->attributes);
	for (size_t i = 0; i < writer->sections.count; i++)
		free(writer->sections.items[i].data);
	vector_deinit(&writer->sections);
	compressor_destroy(writer->compressor);
	buffer_deinit(&writer->pending);
	buffer_deinit(&writer->scratch);
	buffer_deinit(&writer->output);
	free(writer);
}

struct mmt_error *writer_add_attribute(struct writer *writer, const struct perf_event_attr *attribute, const char *name,
				       const uint64_t *ids, size_t id_count)
{
	struct attribute *added = vector_append(&writer->attributes);

	if (!added)
		return &error_no_memory;
	added->attr = *attribute;
	added->attr.size = ATTRIBUTE_BYTES;
	added->name = strdup(name);
	if (!added->name)
		return &error_no_memory;
	for (size_t i = 0; i < id_count; i++) {
		if (!vector_push(&added->ids, ids[i]))
			return &error_no_memory;
	}
	return NULL;
}

struct mmt_error *writer_take_section(struct writer *writer, enum format_feature feature, struct buffer *buffer)
{
	struct mmt_error *error = buffer_finish(buffer);
	struct section section = {.feature = feature, .size = buffer->size};
	size_t maximum = buffer->maximum;

	for (size_t i = 0; !error && i < writer->sections.count; i++) {
		if (writer->sections.items[i].feature == feature)
			error = error_create(MMT_ERROR_INVALID, "feature section %d given twice", (int)feature);
	}
	/* Never NULL, which means that it is written already. */
	section.data = buffer->data ? buffer->data : malloc(1);
	if (!error && (!section.data || !vector_push(&writer->sections, section)))
		error = &error_no_memory;
	if (error) {
		if (section.data != buffer->data)
			free(section.data);
		return error;
	}
	buffer_init(buffer, maximum);
	return NULL;
}

struct mmt_error *writer_add_section(struct writer *writer, enum format_feature feature, const void *data, size_t size)
{
	struct mmt_error *error;
	struct buffer copy;

	buffer_init(&copy, size);
	buffer_put(&copy, data, size);
	error = writer_take_section(writer, feature, &copy);
	buffer_deinit(&copy);
	return error;
}

/* Bytes of whole records at the beginning of `size` bytes. */
static size_t measure_whole_records(const uint8_t *data, size_t size)
{
	size_t offset = 0;

	while (size - offset >= RECORD_HEADER_BYTES) {
		struct perf_event_header header;

		memcpy(&header, data + offset, sizeof(header));
		if (header.size < RECORD_HEADER_BYTES || header.size > size - offset)
			break;
		offset += header.size;
	}
	return offset;
}

/* Write the collected output; when that fails half-way, cut the file behind its last whole record. */
static struct mmt_error *push_output(struct writer *writer)
{
	struct mmt_error *error;
	size_t written;

	if (writer->output.size == 0)
		return NULL;
	error =
	    output_file_write(&writer->file, writer->output.data, writer->output.size, writer->file_bytes, &written);
	writer->last_push_offset = writer->file_bytes;
	if (error) {
		writer->file_bytes += measure_whole_records(writer->output.data, written);
		mmt_error_destroy(output_file_cut(&writer->file, writer->file_bytes)); /* the first failure is told */
	} else {
		writer->file_bytes += written;
	}
	buffer_clear(&writer->output);
	return error;
}

static void put_record_header(struct buffer *buffer, uint32_t type, size_t size)
{
	buffer_put_u32(buffer, type);
	buffer_put_u16(buffer, 0);
	buffer_put_u16(buffer, (uint16_t)size);
}

static size_t find_middle(const uint8_t *records, size_t size)
{
	size_t offset = 0;

	while (offset < size / 2) {
		struct perf_event_header header;

		memcpy(&header, records + offset, sizeof(header));
		if (offset && offset + header.size > size / 2)
			break;
		offset += header.size;
	}
	return offset;
}

/*
 * One frame in one record. The payload is padded to a multiple of 8 by a skippable frame, which must come first:
 * perf 6.1 gives the decoder a wrong output position after the first frame with content.
 */
static void put_compressed(struct writer *writer, size_t size)
{
	size_t frame = writer->scratch.size;
	size_t padding = -frame & 7;
	size_t skippable = padding ? 8 + padding : 0;

	put_record_header(&writer->output, RECORD_COMPRESSED, RECORD_HEADER_BYTES + skippable + frame);
	if (padding) {
		buffer_put_u32(&writer->output, SKIPPABLE_MAGIC);
		buffer_put_u32(&writer->output, (uint32_t)padding);
		buffer_put(&writer->output, "\0\0\0\0\0\0\0", padding);
	}
	buffer_put(&writer->output, writer->scratch.data, frame);
	writer->bytes_in += size;
	writer->bytes_out += RECORD_HEADER_BYTES + skippable + frame;
}

/* Whole records into the output, compressed: in halves when the frame is too large for a record's 16-bit size, plainly
 * when a single one is. */
static struct mmt_error *emit_records(struct writer *writer, const uint8_t *records, size_t size)
{
	struct mmt_error *error;
	size_t middle;

	buffer_clear(&writer->scratch);
	error = compressor_frame(writer->compressor, records, size, &writer->scratch);
	if (error)
		return error;
	if (writer->scratch.size <= RECORD_BYTES_MAX - RECORD_HEADER_BYTES - 16) {
		put_compressed(writer, size);
	} else {
		middle = find_middle(records, size);
		if (middle < size) {
			error = emit_records(writer, records, middle);
			return error ? error : emit_records(writer, records + middle, size - middle);
		}
		buffer_put(&writer->output, records, size);
	}
	if (writer->output.size >= PUSH_BYTES)
		error = push_output(writer);
	return error ? error : buffer_finish(&writer->output);
}

static struct mmt_error *emit_pending(struct writer *writer)
{
	struct mmt_error *error = NULL;

	if (writer->pending.size)
		error = emit_records(writer, writer->pending.data, writer->pending.size);
	buffer_clear(&writer->pending);
	return error;
}

struct mmt_error *writer_append(struct writer *writer, const void *records, size_t size)
{
	const uint8_t *data = records;
	size_t offset = 0;

	while (offset < size) {
		size_t room = writer->pending.maximum - writer->pending.size;
		size_t left = size - offset;
		size_t whole = measure_whole_records(data + offset, left < room ? left : room);
		struct mmt_error *error;

		if (whole == 0 && writer->pending.size == 0)
			return error_create(MMT_ERROR_INVALID, "record of a wrong size given to the writer");
		buffer_put(&writer->pending, data + offset, whole);
		error = buffer_finish(&writer->pending);
		if (!error && whole < left)
			error = emit_pending(writer);
		if (error)
			return error;
		writer->round_is_empty = false;
		offset += whole;
	}
	return NULL;
}

struct mmt_error *writer_end_round(struct writer *writer)
{
	struct mmt_error *error;

	if (writer->round_is_empty)
		return NULL;
	error = emit_pending(writer);
	if (error)
		return error;
	put_record_header(&writer->output, RECORD_FINISHED_ROUND, RECORD_HEADER_BYTES);
	writer->round_is_empty = true;
	return buffer_finish(&writer->output);
}

struct mmt_error *writer_flush(struct writer *writer)
{
	struct mmt_error *error = emit_pending(writer);

	return error ? error : push_output(writer);
}

uint64_t writer_bytes(const struct writer *writer)
{
	return writer->file_bytes + writer->output.size;
}

/* The attribute as the file has it, without what follows ATTRIBUTE_BYTES in newer kernel headers. */
static void put_attribute(struct buffer *buffer, const struct attribute *attribute)
{
	buffer_put(buffer, &attribute->attr, ATTRIBUTE_BYTES);
}

static void put_event_name(struct buffer *buffer, const char *name)
{
	size_t size = strlen(name) + 1;
	size_t padded = (size + EVENT_NAME_ALIGNMENT - 1) & ~(size_t)(EVENT_NAME_ALIGNMENT - 1);
	char *room;

	buffer_put_u32(buffer, (uint32_t)padded);
	room = buffer_extend(buffer, padded);
	if (!room)
		return;
	memset(room, 0, padded);
	memcpy(room, name, size);
}

/* FEATURE_EVENT_DESC: names and ids of the attributes. */
static struct mmt_error *add_event_descriptions(struct writer *writer)
{
	struct mmt_error *error;
	struct buffer buffer;

	buffer_init(&buffer, HEAD_BYTES_MAX);
	buffer_put_u32(&buffer, (uint32_t)writer->attributes.count);
	buffer_put_u32(&buffer, ATTRIBUTE_BYTES);
	for (size_t i = 0; i < writer->attributes.count; i++) {
		const struct attribute *attribute = &writer->attributes.items[i];

		put_attribute(&buffer, attribute);
		buffer_put_u32(&buffer, (uint32_t)attribute->ids.count);
		put_event_name(&buffer, attribute->name);
		buffer_put(&buffer, attribute->ids.items, attribute->ids.count * sizeof(uint64_t));
	}
	error = buffer_finish(&buffer);
	if (!error)
		error = writer_add_section(writer, FEATURE_EVENT_DESC, buffer.data, buffer.size);
	buffer_deinit(&buffer);
	return error;
}

static struct mmt_error *add_compression_description(struct writer *writer)
{
	/* version, type, level, ratio (known at the end), bytes a frame decompresses to at most */
	const uint32_t description[] = {1, COMPRESSED_ZSTD, 1, 1, FRAME_BYTES};

	return writer_add_section(writer, FEATURE_COMPRESSED, description, sizeof(description));
}

/* Header, ids, attributes, preamble. */
static void put_head(struct writer *writer, struct buffer *head)
{
	uint64_t offset = FORMAT_HEADER_SIZE;
	void *header = buffer_extend(head, FORMAT_HEADER_SIZE);

	if (header)
		memset(header, 0, FORMAT_HEADER_SIZE);
	for (size_t i = 0; i < writer->attributes.count; i++) {
		const struct attribute *attribute = &writer->attributes.items[i];

		buffer_put(head, attribute->ids.items, attribute->ids.count * sizeof(uint64_t));
	}
	writer->attributes_offset = head->size;
	for (size_t i = 0; i < writer->attributes.count; i++) {
		const struct attribute *attribute = &writer->attributes.items[i];

		put_attribute(head, attribute);
		buffer_put_u64(head, offset);
		buffer_put_u64(head, attribute->ids.count * sizeof(uint64_t));
		offset += attribute->ids.count * sizeof(uint64_t);
	}
	buffer_put_u64(head, PREAMBLE_MAGIC);
	buffer_put_u32(head, PREAMBLE_VERSION);
	buffer_put_u32(head, (uint32_t)writer->sections.count);
	offset = head->size + writer->sections.count * 24;
	for (size_t i = 0; i < writer->sections.count; i++) {
		struct section *section = &writer->sections.items[i];

		section->offset = offset;
		buffer_put_u32(head, section->feature);
		buffer_put_u32(head, 0);
		buffer_put_u64(head, section->offset);
		buffer_put_u64(head, section->size);
		offset += (section->size + 7) & ~7ULL;
	}
	for (size_t i = 0; i < writer->sections.count; i++) {
		buffer_put(head, writer->sections.items[i].data, writer->sections.items[i].size);
		buffer_align(head, 8);
	}
	writer->data_offset = head->size;
	/* The data are never empty: a header that says 0 bytes means a recorder that was killed. */
	put_record_header(head, RECORD_FINISHED_ROUND, RECORD_HEADER_BYTES);
}

static bool has_section(const struct writer *writer, unsigned feature)
{
	for (size_t i = 0; i < writer->sections.count; i++) {
		if (writer->sections.items[i].feature == feature && writer->sections.items[i].offset)
			return true;
	}
	return false;
}

/* `data_size` 0 says that the recorder is still at work, and that there is no feature table. */
static struct mmt_error *write_header(struct writer *writer, uint64_t data_size)
{
	uint64_t features[FEATURE_BITS / 64] = {0};
	struct mmt_error *error;
	struct buffer header;

	for (unsigned i = 0; data_size && i < FEATURE_BITS; i++) {
		if (has_section(writer, i))
			features[i / 64] |= 1ULL << (i % 64);
	}
	buffer_init(&header, FORMAT_HEADER_SIZE);
	buffer_put_u64(&header, FORMAT_MAGIC);
	buffer_put_u64(&header, FORMAT_HEADER_SIZE);
	buffer_put_u64(&header, ATTRIBUTE_BYTES + 16);
	buffer_put_u64(&header, writer->attributes_offset);
	buffer_put_u64(&header, writer->attributes.count * (ATTRIBUTE_BYTES + 16));
	buffer_put_u64(&header, writer->data_offset);
	buffer_put_u64(&header, data_size);
	buffer_put_u64(&header, 0); /* event types: unused by perf since long */
	buffer_put_u64(&header, 0);
	for (unsigned i = 0; i < FEATURE_BITS / 64; i++)
		buffer_put_u64(&header, features[i]);
	error = buffer_finish(&header);
	if (!error)
		error = output_file_write(&writer->file, header.data, header.size, 0, NULL);
	buffer_deinit(&header);
	return error;
}

struct mmt_error *writer_write_head(struct writer *writer)
{
	struct mmt_error *error = add_event_descriptions(writer);
	struct buffer head;

	if (!error)
		error = add_compression_description(writer);
	if (error)
		return error;
	buffer_init(&head, HEAD_BYTES_MAX);
	put_head(writer, &head);
	error = buffer_finish(&head);
	if (!error)
		error = output_file_write(&writer->file, head.data, head.size, writer->file_bytes, NULL);
	buffer_deinit(&head);
	if (!error)
		error = write_header(writer, 0);
	if (error)
		return error;
	for (size_t i = 0; i < writer->sections.count; i++) {
		struct section *section = &writer->sections.items[i];

		if (section->feature == FEATURE_COMPRESSED)
			writer->compressed_offset = section->offset;
		free(TAKE(section->data));
	}
	writer->file_bytes = writer->last_push_offset = writer->data_offset + RECORD_HEADER_BYTES;
	writer->has_head = true;
	return NULL;
}

struct mmt_error *writer_start(struct writer *writer)
{
	struct mmt_error *error = writer->has_head ? NULL : writer_write_head(writer);

	return error ? error : output_file_take_name(&writer->file);
}

static int compare_sections(const void *left, const void *right)
{
	const struct section *a = left, *b = right;

	return a->feature < b->feature ? -1 : a->feature > b->feature;
}

/* The feature table, which perf expects right behind the data, and the late sections of at most `limit` bytes. */
static struct mmt_error *write_tail(struct writer *writer, size_t limit)
{
	struct mmt_error *error;
	struct buffer table;
	uint64_t offset = writer->file_bytes;
	size_t written;

	buffer_init(&table, FEATURE_BITS * 16);
	for (size_t i = 0; i < writer->sections.count; i++) {
		if (!writer->sections.items[i].data || writer->sections.items[i].size <= limit)
			offset += 16;
	}
	for (size_t i = 0; i < writer->sections.count; i++) {
		struct section *section = &writer->sections.items[i];

		if (section->data) {
			section->offset = section->size <= limit ? offset : 0;
			offset += section->size <= limit ? section->size : 0;
		}
		if (section->offset) {
			buffer_put_u64(&table, section->offset);
			buffer_put_u64(&table, section->size);
		}
	}
	error = buffer_finish(&table);
	if (!error)
		error = output_file_write(&writer->file, table.data, table.size, writer->file_bytes, &written);
	writer->file_bytes += error ? 0 : written;
	buffer_deinit(&table);
	for (size_t i = 0; !error && i < writer->sections.count; i++) {
		const struct section *section = &writer->sections.items[i];

		if (!section->data || !section->offset)
			continue;
		error = output_file_write(&writer->file, section->data, section->size, writer->file_bytes, &written);
		writer->file_bytes += error ? 0 : written;
	}
	return error;
}

static struct mmt_error *write_ratio(struct writer *writer)
{
	uint32_t ratio = writer->bytes_out ? (uint32_t)(writer->bytes_in / writer->bytes_out) : 1;

	if (ratio == 0)
		ratio = 1;
	return output_file_write(&writer->file, &ratio, sizeof(ratio),
				 writer->compressed_offset + COMPRESSED_RATIO_OFFSET, NULL);
}

/*
 * Where the disk is full, what perf and the report cannot do without must still fit: first the large late sections are
 * given up, then the records of the last write. True: the file has its tail, `error_ret` says what was given up.
 */
static bool write_tail_somehow(struct writer *writer, uint64_t *data_end_ret, struct mmt_error **error_ret)
{
	const size_t limits[] = {SIZE_MAX, PUSH_BYTES, PUSH_BYTES / 16, PUSH_BYTES / 16};
	const size_t attempts = sizeof(limits) / sizeof(limits[0]);

	*data_end_ret = writer->file_bytes;
	for (size_t i = 0; i < attempts; i++) {
		struct mmt_error *error;

		if (i == attempts - 1)
			*data_end_ret = writer->last_push_offset;
		writer->file_bytes = *data_end_ret;
		error = i ? output_file_cut(&writer->file, writer->file_bytes) : NULL;
		if (!error)
			error = write_tail(writer, limits[i]);
		if (!error)
			return true;
		if (*error_ret)
			mmt_error_destroy(error);
		else
			*error_ret = error;
	}
	return false;
}

struct mmt_error *writer_finish(struct writer *writer)
{
	struct mmt_error *first, *error = NULL;
	uint64_t data_end;

	first = writer_flush(writer);
	if (writer->sections.count)
		qsort(writer->sections.items, writer->sections.count, sizeof(struct section), compare_sections);
	if (write_tail_somehow(writer, &data_end, &first)) {
		error = write_ratio(writer);
		if (!error)
			error = write_header(writer, data_end - writer->data_offset);
	} else {
		/* Without a tail the data reach to the end of the file: nothing else may stand there. */
		error = output_file_cut(&writer->file, data_end);
	}
	if (!first)
		return error;
	mmt_error_destroy(error);
	return first;
}
