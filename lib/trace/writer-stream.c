// SPDX-License-Identifier: LGPL-2.1-or-later
/* What is around the records in a pipe, where nothing can be written twice: perf's pipe format. */
#include <stdlib.h>

#include "trace/writer-state.h"

#define STREAM_HEADER_BYTES 16
#define FEATURE_RECORD_BYTES 16 /* header, u64 feature */
#define TRACING_DATA_RECORD_BYTES 16
#define RECORD_BYTES_MAX (UINT16_MAX & ~7u)
#define PIECE_BYTES (32u << 10)

static struct mmt_error *write_buffer(struct writer *writer, struct buffer *buffer)
{
	struct mmt_error *error = buffer_finish(buffer);

	if (!error)
		error = output_file_write(&writer->file, buffer->data, buffer->size, writer->file_bytes, NULL);
	if (!error)
		writer->file_bytes += buffer->size;
	buffer_clear(buffer);
	return error;
}

static struct mmt_error *put_attribute(struct buffer *buffer, const struct attribute *attribute)
{
	size_t ids = attribute->ids.count * sizeof(uint64_t);
	size_t size = RECORD_HEADER_BYTES + ATTRIBUTE_BYTES + ids;

	if (size > RECORD_BYTES_MAX)
		return error_create(MMT_ERROR_UNSUPPORTED,
				    "a pipe cannot carry the events of so many threads; record into a file");
	writer_put_record_header(buffer, RECORD_HEADER_ATTR, size);
	buffer_put(buffer, &attribute->attr, ATTRIBUTE_BYTES);
	buffer_put(buffer, attribute->ids.items, ids);
	return NULL;
}

/* Of perf's own features those that it reads there, when they fit; TRACING_DATA and BUILD_ID have records of their own.
 */
static bool is_for_perf(const struct section *section)
{
	return section->feature > FEATURE_BUILD_ID && section->feature < FEATURE_MMTRACE_INFO &&
	       section->feature != FEATURE_EVENT_DESC && section->size <= PIECE_BYTES;
}

static void put_feature(struct buffer *buffer, uint64_t feature, const void *data, size_t size)
{
	writer_put_record_header(buffer, RECORD_HEADER_FEATURE, FEATURE_RECORD_BYTES + ((size + 7) & ~(size_t)7));
	buffer_put_u64(buffer, feature);
	buffer_put(buffer, data, size);
	buffer_align(buffer, 8);
}

/* The data follow the record, which only tells how many there are. */
static void put_tracing_data(struct buffer *buffer, const struct section *section)
{
	writer_put_record_header(buffer, RECORD_HEADER_TRACING_DATA, TRACING_DATA_RECORD_BYTES);
	buffer_put_u32(buffer, (uint32_t)((section->size + 7) & ~7ULL));
	buffer_put_u32(buffer, 0);
	buffer_put(buffer, section->data, section->size);
	buffer_align(buffer, 8);
}

static void put_piece(struct buffer *buffer, const struct section *section, uint64_t offset, size_t size)
{
	writer_put_record_header(buffer, RECORD_HEADER_EVENT_TYPE, SECTION_PIECE_BYTES + ((size + 7) & ~(size_t)7));
	buffer_put_u64(buffer, SECTION_PIECE_MAGIC);
	buffer_put_u32(buffer, section->feature);
	buffer_put_u32(buffer, 0);
	buffer_put_u64(buffer, section->size);
	buffer_put_u64(buffer, offset);
	buffer_put_u32(buffer, (uint32_t)size);
	buffer_put_u32(buffer, 0);
	buffer_put(buffer, section->data + offset, size);
	buffer_align(buffer, 8);
}

/* One piece at least, so that an empty section is there. */
static struct mmt_error *write_pieces(struct writer *writer, const struct section *section)
{
	struct mmt_error *error;
	struct buffer buffer;
	uint64_t offset = 0;

	buffer_init(&buffer, 2 * PIECE_BYTES);
	do {
		uint64_t left = section->size - offset;
		size_t size = left < PIECE_BYTES ? (size_t)left : PIECE_BYTES;

		put_piece(&buffer, section, offset, size);
		error = write_buffer(writer, &buffer);
		offset += size;
	} while (!error && offset < section->size);
	buffer_deinit(&buffer);
	return error;
}

static struct mmt_error *put_head(struct writer *writer, struct buffer *head)
{
	struct mmt_error *error = NULL;

	buffer_put_u64(head, FORMAT_MAGIC);
	buffer_put_u64(head, STREAM_HEADER_BYTES);
	for (size_t i = 0; !error && i < writer->attributes.count; i++)
		error = put_attribute(head, &writer->attributes.items[i]);
	for (size_t i = 0; i < writer->sections.count; i++) {
		const struct section *section = &writer->sections.items[i];

		if (is_for_perf(section))
			put_feature(head, section->feature, section->data, section->size);
	}
	for (size_t i = 0; i < writer->sections.count; i++) {
		if (writer->sections.items[i].feature == FEATURE_TRACING_DATA)
			put_tracing_data(head, &writer->sections.items[i]);
	}
	return error;
}

struct mmt_error *writer_write_stream_head(struct writer *writer)
{
	struct mmt_error *error;
	struct buffer head;

	buffer_init(&head, HEAD_BYTES_MAX);
	error = put_head(writer, &head);
	if (!error)
		error = write_buffer(writer, &head);
	buffer_deinit(&head);
	for (size_t i = 0; i < writer->sections.count; i++) {
		struct section *section = &writer->sections.items[i];

		if (!error && !is_for_perf(section) && section->feature != FEATURE_TRACING_DATA)
			error = write_pieces(writer, section);
	}
	if (error)
		return error;
	for (size_t i = 0; i < writer->sections.count; i++) {
		free(writer->sections.items[i].data);
		writer->sections.items[i].data = NULL;
	}
	writer->has_head = true;
	return NULL;
}

struct mmt_error *writer_finish_stream(struct writer *writer)
{
	struct mmt_error *error = writer_flush(writer);

	for (size_t i = 0; !error && i < writer->sections.count; i++) {
		if (writer->sections.items[i].data)
			error = write_pieces(writer, &writer->sections.items[i]);
	}
	return error;
}
