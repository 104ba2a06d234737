// SPDX-License-Identifier: LGPL-2.1-or-later
/* Writes the file: header, attributes, compressed records, and the index of feature sections. The recorder chooses
 * their content in lib/capture/file-metadata.c. */
#include "trace/write/writer.h"

#include <errno.h>

#include "base/limits.h"

#define SKIPPABLE_MAGIC 0x184d2a50u /* of zstd frames that decompress to nothing */
#define PUSH_BYTES (64u << 10)	    /* output collected before complete rounds of it are written */
#define OUTPUT_BYTES (16u << 20)    /* a larger round is written in parts */

/* PERF_ATTR_SIZE_VER7, which every perf since MMAP2 with build-ids can read; older versions refuse a longer one. */
#define ATTRIBUTE_BYTES 128
_Static_assert(sizeof(struct perf_event_attr) >= ATTRIBUTE_BYTES, "kernel headers too old");

struct mmt_error *writer_create(const char *path, struct writer **writer_ret)
{
	struct writer *writer = calloc(1, sizeof(*writer));
	struct mmt_error *error;

	if (!writer)
		return &error_no_memory;
	writer->file.fd = -1;
	writer->round_is_empty = true;
	buffer_init(&writer->pending, FRAME_BYTES);
	writer->frame_bytes = FRAME_BYTES_LEAST;
	buffer_init(&writer->scratch, FRAME_RECORD_BYTES);
	buffer_init(&writer->output, OUTPUT_BYTES + PUSH_BYTES + FRAME_BYTES);
	error = compressor_init(&writer->compressor);
	if (!error)
		compressor_expect_records(&writer->compressor);
	if (!error)
		error = strcmp(path, "-") == 0 ? output_file_open_stream(&writer->file)
					       : output_file_open(path, &writer->file);
	if (error) {
		writer_destroy(writer);
		return error;
	}
	*writer_ret = writer;
	return NULL;
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
	vector_deinit_each(&writer->sections, item, free(item->data));
	compressor_deinit(&writer->compressor);
	buffer_deinit(&writer->pending);
	buffer_deinit(&writer->scratch);
	buffer_deinit(&writer->output);
	free(writer);
}

struct mmt_error *writer_add_attribute(struct writer *writer, const struct perf_event_attr *attribute, const char *name,
				       const uint64_t *ids, size_t id_count)
{
	struct writer_attribute *added = vector_append(&writer->attributes);

	if (!added)
		return &error_no_memory;
	added->attr = *attribute;
	added->attr.size = ATTRIBUTE_BYTES;
	added->name = strdup(name);
	return added->name && vector_push_all(&added->ids, ids, id_count) ? NULL : &error_no_memory;
}

struct mmt_error *writer_take_section(struct writer *writer, enum format_feature feature, struct buffer *buffer)
{
	struct mmt_error *error = buffer_finish(buffer);
	struct writer_section section = {.feature = feature, .size = buffer->size};
	size_t maximum = buffer->maximum;

	/* Never NULL, because NULL means that it is already written. */
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
	CLEANUP(buffer) struct buffer copy = {.maximum = size};

	buffer_put(&copy, data, size);
	return writer_take_section(writer, feature, &copy);
}

/* Total size of the complete records at the beginning of `size` bytes. */
static size_t measure_complete_records(const uint8_t *data, size_t size)
{
	size_t offset = 0;

	while (size - offset >= RECORD_HEADER_BYTES) {
		struct perf_event_header header = record_header(data + offset);

		if (header.size < RECORD_HEADER_BYTES || header.size > size - offset)
			break;
		offset += header.size;
	}
	return offset;
}

/* Write the collected output. If that fails half-way, truncate the file after its last complete record. */
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
		writer->file_bytes += measure_complete_records(writer->output.data, written);
		mmt_error_destroy(output_file_cut(&writer->file, writer->file_bytes)); /* keep the first error */
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

/* Write complete records to the output, compressed: in halves if the frame is too large for the 16-bit size of a
 * record, uncompressed if a single record is. */
static struct mmt_error *emit_records(struct writer *writer, const uint8_t *records, size_t size)
{
	size_t middle, padding, record;
	struct mmt_error *error;
	bool fits;

	if (writer->plain) {
		buffer_put(&writer->output, records, size);
		return writer->output.size >= OUTPUT_BYTES ? push_output(writer) : buffer_finish(&writer->output);
	}
	buffer_clear(&writer->scratch);
	error =
	    compressor_frame_within(&writer->compressor, records, size, FRAME_RECORD_BYTES, &writer->scratch, &fits);
	if (error)
		return error;
	if (fits) {
		/* One frame in one record. The payload is padded to a multiple of 8 by a skippable frame, which must
		 * come first: perf 6.1 gives the decoder a wrong output position after the first frame with content. */
		padding = -writer->scratch.size & 7;
		record = RECORD_HEADER_BYTES + (padding ? 8 + padding : 0) + writer->scratch.size;
		put_record_header(&writer->output, RECORD_COMPRESSED, record);
		if (padding) {
			buffer_put_u32(&writer->output, SKIPPABLE_MAGIC);
			buffer_put_u32(&writer->output, (uint32_t)padding);
			buffer_put(&writer->output, "\0\0\0\0\0\0\0", padding);
		}
		buffer_put(&writer->output, writer->scratch.data, writer->scratch.size);
		writer->bytes_in += size;
		writer->bytes_out += record;
	} else {
		for (middle = 0; middle < size / 2; middle += record) {
			record = record_header(records + middle).size;
			if (middle && middle + record > size / 2)
				break;
		}
		if (middle < size) {
			error = emit_records(writer, records, middle);
			return error ? error : emit_records(writer, records + middle, size - middle);
		}
		buffer_put(&writer->output, records, size);
	}
	if (writer->output.size >= OUTPUT_BYTES)
		error = push_output(writer);
	return error ? error : buffer_finish(&writer->output);
}

/* Repetitions are only found within a frame, so that each frame can be read separately: larger frames compress better.
 * But a frame that does not fit into a record is compressed again in halves, which takes time: choose a size at which
 * the next one will fit. */
size_t writer_choose_frame_bytes(size_t frame_bytes, size_t size, size_t compressed)
{
	if (compressed > FRAME_RECORD_BYTES) {
		for (; compressed > FRAME_RECORD_BYTES && frame_bytes > FRAME_BYTES_LEAST; compressed /= 2)
			frame_bytes /= 2;
		return frame_bytes;
	}
	if (size > frame_bytes / 2 && compressed < FRAME_RECORD_BYTES / 3 && frame_bytes < FRAME_BYTES)
		return frame_bytes * 2;
	return frame_bytes;
}

static struct mmt_error *emit_pending(struct writer *writer)
{
	struct mmt_error *error;
	uint64_t before = writer->bytes_out;
	size_t size = writer->pending.size;

	if (!size)
		return NULL;
	error = emit_records(writer, writer->pending.data, size);
	/* Uncompressed output gains nothing from larger frames. */
	if (!writer->plain)
		writer->frame_bytes = writer_choose_frame_bytes(writer->frame_bytes, size, writer->bytes_out - before);
	buffer_clear(&writer->pending);
	return error;
}

struct mmt_error *writer_append(struct writer *writer, const void *record, size_t size)
{
	struct mmt_error *error = NULL;

	if (measure_complete_records(record, size) != size)
		return error_create(MMT_ERROR_INVALID, "record of a wrong size given to the writer");
	writer->round_is_empty = false;
	if (writer->pending.size + size > writer->frame_bytes)
		error = emit_pending(writer);
	buffer_put(&writer->pending, record, size);
	return error ? error : buffer_finish(&writer->pending);
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
	return writer->output.size >= PUSH_BYTES ? push_output(writer) : buffer_finish(&writer->output);
}

struct mmt_error *writer_flush(struct writer *writer)
{
	struct mmt_error *error = emit_pending(writer) ?: push_output(writer);

	if (error || writer->removed)
		return error;
	error = output_file_check(&writer->file);
	writer->removed = error;
	return error;
}

uint64_t writer_bytes(const struct writer *writer)
{
	return writer->removed ? 0 : writer->file_bytes + writer->output.size;
}

/* Everything around the records in a pipe, which cannot be rewritten: perf's pipe format. */

#define STREAM_HEADER_BYTES 16
#define FEATURE_RECORD_BYTES 16 /* header, u64 feature */
#define TRACING_DATA_RECORD_BYTES 16
#define PIECE_BYTES (32u << 10)

/* Write at the end of the file. */
static struct mmt_error *write_next(struct writer *writer, const void *data, size_t size)
{
	struct mmt_error *error = output_file_write(&writer->file, data, size, writer->file_bytes, NULL);

	writer->file_bytes += error ? 0 : size;
	return error;
}

static struct mmt_error *write_buffer(struct writer *writer, struct buffer *buffer)
{
	struct mmt_error *error = buffer_finish(buffer) ?: write_next(writer, buffer->data, buffer->size);

	buffer_clear(buffer);
	return error;
}

static struct mmt_error *put_stream_head(struct writer *writer, struct buffer *head)
{
	buffer_put_u64(head, FORMAT_MAGIC);
	buffer_put_u64(head, STREAM_HEADER_BYTES);
	array_each(attribute, writer->attributes.items, writer->attributes.count) {
		size_t ids = attribute->ids.count * sizeof(uint64_t);
		size_t size = RECORD_HEADER_BYTES + ATTRIBUTE_BYTES + ids;

		if (size > RECORD_BYTES_MAX)
			return error_create(MMT_ERROR_UNSUPPORTED,
					    "a pipe cannot carry the events of so many threads; write to a file");
		put_record_header(head, RECORD_HEADER_ATTR, size);
		buffer_put(head, &attribute->attr, ATTRIBUTE_BYTES);
		buffer_put(head, attribute->ids.items, ids);
	}
	array_each(section, writer->sections.items, writer->sections.count) {
		/* perf reads these from a pipe, if they fit; TRACING_DATA and BUILD_ID have their own records. */
		if (section->feature <= FEATURE_BUILD_ID || section->feature >= FEATURE_MMTRACE_INFO ||
		    section->feature == FEATURE_EVENT_DESC || section->size > PIECE_BYTES)
			continue;
		put_record_header(head, RECORD_HEADER_FEATURE,
				  FEATURE_RECORD_BYTES + ((section->size + 7) & ~(size_t)7));
		buffer_put_u64(head, section->feature);
		buffer_put(head, section->data, section->size);
		buffer_align(head, 8);
		free(TAKE(section->data));
	}
	array_each(section, writer->sections.items, writer->sections.count) {
		if (section->feature != FEATURE_TRACING_DATA)
			continue;
		/* The data follows the record, which contains only its size. */
		put_record_header(head, RECORD_HEADER_TRACING_DATA, TRACING_DATA_RECORD_BYTES);
		buffer_put_u32(head, (uint32_t)((section->size + 7) & ~7ULL));
		buffer_put_u32(head, 0);
		buffer_put(head, section->data, section->size);
		buffer_align(head, 8);
		free(TAKE(section->data));
	}
	return NULL;
}

/* All sections that are not written yet, in pieces: at least one, so that an empty section exists. */
static struct mmt_error *write_sections(struct writer *writer)
{
	CLEANUP(buffer) struct buffer buffer = {.maximum = 2 * PIECE_BYTES};
	struct mmt_error *error = NULL;

	array_each(section, writer->sections.items, writer->sections.count) {
		uint64_t offset = 0;

		if (!section->data)
			continue;
		do {
			uint64_t left = section->size - offset;
			size_t size = left < PIECE_BYTES ? (size_t)left : PIECE_BYTES;

			put_record_header(&buffer, RECORD_HEADER_EVENT_TYPE,
					  SECTION_PIECE_BYTES + ((size + 7) & ~(size_t)7));
			buffer_put_u64(&buffer, SECTION_PIECE_MAGIC);
			buffer_put_u32(&buffer, section->feature);
			buffer_put_u32(&buffer, 0);
			buffer_put_u64(&buffer, section->size);
			buffer_put_u64(&buffer, offset);
			buffer_put_u32(&buffer, (uint32_t)size);
			buffer_put_u32(&buffer, 0);
			buffer_put(&buffer, section->data + offset, size);
			buffer_align(&buffer, 8);
			error = write_buffer(writer, &buffer);
			offset += size;
		} while (!error && offset < section->size);
		if (error)
			break;
	}
	return error;
}

/* Everything around the records: the head of the file, and the late sections. */

#define COMPRESSED_ZSTD 1	   /* the type in HEADER_COMPRESSED */
#define COMPRESSED_RATIO_OFFSET 12 /* into HEADER_COMPRESSED */
#define TEXT_ALIGNMENT 64	   /* as perf pads it */

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

/* Header, ids, attributes, preamble. */
static void put_head(struct writer *writer, struct buffer *head)
{
	uint64_t offset = FORMAT_HEADER_SIZE;
	void *header = buffer_extend(head, FORMAT_HEADER_SIZE);

	if (header)
		memset(header, 0, FORMAT_HEADER_SIZE);
	array_each(attribute, writer->attributes.items, writer->attributes.count) {
		buffer_put(head, attribute->ids.items, attribute->ids.count * sizeof(uint64_t));
	}
	writer->attributes_offset = head->size;
	array_each(attribute, writer->attributes.items, writer->attributes.count) {
		buffer_put(head, &attribute->attr, ATTRIBUTE_BYTES);
		buffer_put_u64(head, offset);
		buffer_put_u64(head, attribute->ids.count * sizeof(uint64_t));
		offset += attribute->ids.count * sizeof(uint64_t);
	}
	buffer_put_u64(head, PREAMBLE_MAGIC);
	buffer_put_u32(head, PREAMBLE_VERSION);
	buffer_put_u32(head, (uint32_t)writer->sections.count);
	offset = head->size + writer->sections.count * 24;
	array_each(section, writer->sections.items, writer->sections.count) {
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
	/* The data is never empty: size 0 in the header means that the recorder was killed. */
	put_record_header(head, RECORD_FINISHED_ROUND, RECORD_HEADER_BYTES);
}

/* `data_size` 0: the recorder has not finished, and there is no feature table. */
static struct mmt_error *write_header(struct writer *writer, uint64_t data_size)
{
	CLEANUP(buffer) struct buffer header = {.maximum = FORMAT_HEADER_SIZE};
	uint64_t features[FEATURE_BITS / 64] = {0};
	struct mmt_error *error;

	array_while(section, writer->sections.items, writer->sections.count, data_size) {
		if (section->offset)
			features[section->feature / 64] |= 1ULL << (section->feature % 64);
	}
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
	return error ? error : output_file_write(&writer->file, header.data, header.size, 0, NULL);
}

struct mmt_error *writer_write_head(struct writer *writer)
{
	/* version, type, level, ratio (known at the end), largest decompressed size of a frame */
	static const uint32_t compression[] = {1, COMPRESSED_ZSTD, 1, 1, FRAME_BYTES};
	CLEANUP(buffer) struct buffer head = {.maximum = LIMIT_HEAD_BYTES};
	CLEANUP(buffer) struct buffer descriptions = {.maximum = LIMIT_HEAD_BYTES};
	struct mmt_error *error;

	/* Names and ids of the attributes. */
	buffer_put_u32(&descriptions, (uint32_t)writer->attributes.count);
	buffer_put_u32(&descriptions, ATTRIBUTE_BYTES);
	array_each(attribute, writer->attributes.items, writer->attributes.count) {
		buffer_put(&descriptions, &attribute->attr, ATTRIBUTE_BYTES);
		buffer_put_u32(&descriptions, (uint32_t)attribute->ids.count);
		writer_put_text(&descriptions, attribute->name);
		buffer_put(&descriptions, attribute->ids.items, attribute->ids.count * sizeof(uint64_t));
	}
	error = writer_take_section(writer, FEATURE_EVENT_DESC, &descriptions);
	if (!error && !writer->plain)
		error = writer_add_section(writer, FEATURE_COMPRESSED, compression, sizeof(compression));
	if (!error && writer->file.stream)
		error = put_stream_head(writer, &head);
	else if (!error)
		put_head(writer, &head);
	error = error ?: write_buffer(writer, &head);
	error = error ?: writer->file.stream ? write_sections(writer) : write_header(writer, 0);
	if (error)
		return error;
	array_each(section, writer->sections.items, writer->sections.count) {
		if (section->feature == FEATURE_COMPRESSED)
			writer->compressed_offset = section->offset;
		free(TAKE(section->data));
	}
	writer->last_push_offset = writer->file_bytes;
	writer->has_head = true;
	return NULL;
}

struct mmt_error *writer_start(struct writer *writer)
{
	struct mmt_error *error = writer->has_head ? NULL : writer_write_head(writer);

	return error ? error : output_file_take_name(&writer->file);
}

COMPARISON(compare_sections, struct writer_section, order_of(a->feature, b->feature))

/* The feature table, which perf expects directly behind the data, and the late sections of at most `limit` bytes. */
static struct mmt_error *write_tail(struct writer *writer, size_t limit)
{
	CLEANUP(buffer) struct buffer table = {.maximum = FEATURE_BITS * 16};
	uint64_t offset = writer->file_bytes;
	struct mmt_error *error;

	for (size_t i = 0; i < writer->sections.count; i++) {
		if (!writer->sections.items[i].data || writer->sections.items[i].size <= limit)
			offset += 16;
	}
	array_each(section, writer->sections.items, writer->sections.count) {
		if (section->data) {
			section->offset = section->size <= limit ? offset : 0;
			offset += section->size <= limit ? section->size : 0;
		}
		if (section->offset) {
			buffer_put_u64(&table, section->offset);
			buffer_put_u64(&table, section->size);
		}
	}
	error = write_buffer(writer, &table);
	array_while(section, writer->sections.items, writer->sections.count, !error) {
		if (section->data && section->offset)
			error = write_next(writer, section->data, section->size);
	}
	return error;
}

/* If the disk is full, the sections that perf and the report need must still fit: drop the large late sections first,
 * then the records of the last write. True: the tail is written, and `error_ret` reports what was dropped. */
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
		error = error ?: write_tail(writer, limits[i]);
		if (!error)
			return true;
		if (*error_ret)
			mmt_error_destroy(error);
		else
			*error_ret = error;
	}
	return false;
}

/* Of a complete file, which the checksum ends. */
static struct mmt_error *write_checksum(struct writer *writer)
{
	uint64_t end = writer->file_bytes - sizeof(uint32_t), offset = 0;
	CLEANUP(free) uint8_t *bytes = malloc(OUTPUT_BYTES);
	uint32_t sum = 0;

	while (bytes && offset < end) {
		size_t wanted = end - offset < OUTPUT_BYTES ? (size_t)(end - offset) : OUTPUT_BYTES;
		ssize_t got = pread(writer->file.fd, bytes, wanted, (off_t)offset);

		if (got <= 0)
			return error_system(got ? errno : EIO, "%s: cannot read", writer->file.path);
		sum = compress_checksum(sum, bytes, (size_t)got);
		offset += (size_t)got;
	}
	return bytes ? output_file_write(&writer->file, &sum, sizeof(sum), end, NULL) : &error_no_memory;
}

struct mmt_error *writer_finish(struct writer *writer)
{
	struct mmt_error *first = writer_flush(writer), *error = NULL;
	uint64_t data_end;
	uint32_t ratio;

	if (writer->file.stream)
		return first ? first : write_sections(writer);
	ratio = writer->bytes_in > writer->bytes_out ? (uint32_t)(writer->bytes_in / writer->bytes_out) : 1;
	vector_sort(&writer->sections, compare_sections);
	if (write_tail_somehow(writer, &data_end, &first)) {
		if (!writer->plain)
			error = output_file_write(&writer->file, &ratio, sizeof(ratio),
						  writer->compressed_offset + COMPRESSED_RATIO_OFFSET, NULL);
		error = error ?: write_header(writer, data_end - writer->data_offset);
		if (!error && writer->sections.items[writer->sections.count - 1].feature == FEATURE_MMTRACE_CHECKSUM)
			error = write_checksum(writer);
	} else {
		/* Without a tail the data extends to the end of the file: nothing else may be there. */
		error = output_file_cut(&writer->file, data_end);
	}
	if (!first)
		return error;
	mmt_error_destroy(error);
	return first;
}
