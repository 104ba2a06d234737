// SPDX-License-Identifier: LGPL-2.1-or-later
/* Everything around the records: the head of the file, and the late sections. */
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "trace/write/writer-state.h"

#define COMPRESSED_ZSTD 1	   /* the type in HEADER_COMPRESSED */
#define COMPRESSED_RATIO_OFFSET 12 /* into HEADER_COMPRESSED */
#define TEXT_ALIGNMENT 64	   /* as perf pads it */

/* The attribute as written to the file, without the members beyond ATTRIBUTE_BYTES of newer kernel headers. */
static void put_attribute(struct buffer *buffer, const struct attribute *attribute)
{
	buffer_put(buffer, &attribute->attr, ATTRIBUTE_BYTES);
}

void writer_put_text(struct buffer *buffer, const char *text)
{
	size_t size = strlen(text) + 1;
	size_t padded = (size + TEXT_ALIGNMENT - 1) & ~(size_t)(TEXT_ALIGNMENT - 1);
	char *room;

	buffer_put_u32(buffer, (uint32_t)padded);
	room = buffer_extend(buffer, padded);
	if (!room)
		return;
	memset(room, 0, padded);
	memcpy(room, text, size);
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
		writer_put_text(&buffer, attribute->name);
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
	/* version, type, level, ratio (known at the end), largest decompressed size of a frame */
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
	/* The data are never empty: size 0 in the header means that the recorder was killed. */
	writer_put_record_header(head, RECORD_FINISHED_ROUND, RECORD_HEADER_BYTES);
}

static bool has_section(const struct writer *writer, unsigned feature)
{
	for (size_t i = 0; i < writer->sections.count; i++) {
		if (writer->sections.items[i].feature == feature && writer->sections.items[i].offset)
			return true;
	}
	return false;
}

/* `data_size` 0: the recorder has not finished, and there is no feature table. */
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
	buffer_put_u64(&header, 0); /* event types: no longer used by perf */
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

	if (!error && !writer->plain)
		error = add_compression_description(writer);
	if (error || writer->file.stream)
		return error ? error : writer_write_stream_head(writer);
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

/* The feature table, which perf expects directly behind the data, and the late sections of at most `limit` bytes. */
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

	if (writer->plain)
		return NULL;
	if (ratio == 0)
		ratio = 1;
	return output_file_write(&writer->file, &ratio, sizeof(ratio),
				 writer->compressed_offset + COMPRESSED_RATIO_OFFSET, NULL);
}

/*
 * If the disk is full, the sections that perf and the report need must still fit: drop the large late sections first,
 * then the records of the last write. True: the tail is written, and `error_ret` reports what was dropped.
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

	if (writer->file.stream)
		return writer_finish_stream(writer);
	first = writer_flush(writer);
	if (writer->sections.count)
		qsort(writer->sections.items, writer->sections.count, sizeof(struct section), compare_sections);
	if (write_tail_somehow(writer, &data_end, &first)) {
		error = write_ratio(writer);
		if (!error)
			error = write_header(writer, data_end - writer->data_offset);
	} else {
		/* Without a tail the data extend to the end of the file: nothing else may be there. */
		error = output_file_cut(&writer->file, data_end);
	}
	if (!first)
		return error;
	mmt_error_destroy(error);
	return first;
}
