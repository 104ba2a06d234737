// SPDX-License-Identifier: LGPL-2.1-or-later
#include "mutate-recording.h"

#include <linux/perf_event.h>
#include <stdlib.h>
#include <string.h>

#include "base/compression.h"
#include "base/limits.h"
#include "base/vector.h"
#include "support/section.h"
#include "trace/format/format.h"
#include "trace/read/recording-file.h"
#include "trace/sections/sections.h"

#define DATA_PLACE 40 /* in the header: offset and size of the data */
#define FEATURES_PLACE 72
#define ENTRY_BYTES 16 /* of the table of features: offset and size */
#define PARTS_BYTES (64u << 20)
#define CHANGES_MAX 6

/* Bytes in recording_parts.content. */
struct piece {
	size_t offset, size;
};

typedef VECTOR(struct piece) pieces;

struct recording_parts {
	struct buffer content;
	struct piece head; /* everything before the data */
	pieces records;
	struct piece sections[FEATURE_BITS];
	bool present[FEATURE_BITS], in_head[FEATURE_BITS];
	bool ends_early; /* no table of features */
};

/* The bytes may be a part of the content. */
static struct piece put_piece(struct recording_parts *parts, const void *data, size_t size)
{
	bool own = parts->content.data && (const uint8_t *)data >= parts->content.data &&
		   (const uint8_t *)data < parts->content.data + parts->content.size;
	size_t offset = own ? (size_t)((const uint8_t *)data - parts->content.data) : 0;
	struct piece piece = {parts->content.size, size};
	uint8_t *room = buffer_extend(&parts->content, size);

	if (room && size)
		memcpy(room, own ? parts->content.data + offset : data, size);
	buffer_align(&parts->content, sizeof(uint64_t));
	if (parts->content.error)
		abort();
	return piece;
}

static uint64_t word_at(const uint8_t *data, size_t offset)
{
	uint64_t word;

	memcpy(&word, data + offset, sizeof(word));
	return word;
}

static void put_records(struct recording_parts *parts, const uint8_t *data, size_t size, bool nested);

/* The content of a compressed record. False: it cannot be read. */
static bool put_compressed(struct recording_parts *parts, const uint8_t *record, size_t size)
{
	struct decompressor decompressor = {0};
	struct buffer plain;
	const uint8_t *stream;
	struct mmt_error *error;
	size_t stream_size;
	bool done = false;

	buffer_init(&plain, LIMIT_FRAME_BYTES);
	if (records_find_stream(record, size, &stream, &stream_size) && !decompressor_init(&decompressor)) {
		error = decompressor_feed(&decompressor, stream, stream_size, &plain);
		done = !error && !decompressor.inside;
		mmt_error_destroy(error);
	}
	decompressor_deinit(&decompressor);
	if (done)
		put_records(parts, plain.data, plain.size, true);
	mmt_error_destroy(buffer_finish(&plain));
	buffer_deinit(&plain);
	return done;
}

static void put_records(struct recording_parts *parts, const uint8_t *data, size_t size, bool nested)
{
	for (size_t position = 0; size - position >= sizeof(struct perf_event_header);) {
		struct perf_event_header header;
		bool compressed;

		memcpy(&header, data + position, sizeof(header));
		if (header.size < sizeof(header) || header.size > size - position)
			break;
		compressed = header.type == RECORD_COMPRESSED || header.type == RECORD_COMPRESSED2;
		if ((nested || !compressed || !put_compressed(parts, data + position, header.size)) &&
		    !vector_push(&parts->records, put_piece(parts, data + position, header.size)))
			abort();
		position += header.size;
	}
}

static void read_sections(struct recording_parts *parts, const uint8_t *data, size_t size, size_t data_end)
{
	size_t table = data_end;

	for (unsigned i = 0; i < FEATURE_BITS && size - table >= ENTRY_BYTES; i++) {
		uint64_t offset, bytes;

		if (!(word_at(data, FEATURES_PLACE + i / 64 * 8) >> i % 64 & 1))
			continue;
		offset = word_at(data, table);
		bytes = word_at(data, table + 8);
		table += ENTRY_BYTES;
		if (offset > size || bytes > size - offset)
			continue;
		parts->present[i] = true;
		parts->in_head[i] = offset + bytes <= parts->head.size;
		parts->sections[i] =
		    parts->in_head[i] ? (struct piece){offset, bytes} : put_piece(parts, data + offset, bytes);
	}
}

struct recording_parts *recording_parts_read(const uint8_t *data, size_t size)
{
	struct recording_parts *parts = calloc(1, sizeof(*parts));
	uint64_t start, bytes;

	if (!parts)
		abort();
	buffer_init(&parts->content, PARTS_BYTES);
	if (size < FORMAT_HEADER_SIZE || word_at(data, 0) != FORMAT_MAGIC) {
		recording_parts_destroy(parts);
		return NULL;
	}
	start = word_at(data, DATA_PLACE);
	bytes = word_at(data, DATA_PLACE + 8);
	if (start < FORMAT_HEADER_SIZE || start > size) {
		recording_parts_destroy(parts);
		return NULL;
	}
	parts->head = put_piece(parts, data, start);
	parts->ends_early = !bytes || bytes > size - start;
	if (parts->ends_early)
		bytes = size - start;
	put_records(parts, data + start, bytes, false);
	if (!parts->ends_early)
		read_sections(parts, data, size, start + bytes);
	return parts;
}

void recording_parts_destroy(struct recording_parts *parts)
{
	if (!parts)
		return;
	buffer_deinit(&parts->content);
	vector_deinit(&parts->records);
	free(parts);
}

/* A copy that is being changed. */
struct mutation {
	struct recording_parts parts;
	uint64_t random;
};

static uint64_t random_word(struct mutation *mutation)
{
	mutation->random += 0x9e3779b97f4a7c15;
	uint64_t word = mutation->random;

	word = (word ^ word >> 30) * 0xbf58476d1ce4e5b9;
	word = (word ^ word >> 27) * 0x94d049bb133111eb;
	return word ^ word >> 31;
}

static size_t below(struct mutation *mutation, size_t limit)
{
	return limit ? random_word(mutation) % limit : 0;
}

/* A value from elsewhere in the file: a time, address, PID or ID that means something there. */
static uint64_t known_word(struct mutation *mutation)
{
	const struct buffer *content = &mutation->parts.content;

	return content->size >= 8 ? word_at(content->data, below(mutation, content->size / 8) * 8) : 0;
}

static uint64_t change_word(struct mutation *mutation, uint64_t word)
{
	static const uint64_t edges[] = {0,	     1,		 4095,
					 4096,	     INT32_MAX,	 UINT32_MAX,
					 1ULL << 32, 1ULL << 47, LIMIT_RESIDENT_BYTES,
					 INT64_MAX,  1ULL << 63, UINT64_MAX - 4095,
					 UINT64_MAX};

	switch (below(mutation, 7)) {
	case 0:
		return edges[below(mutation, sizeof(edges) / sizeof(*edges))];
	case 1:
		return word + below(mutation, 17) - 8;
	case 2:
		return word ^ 1ULL << below(mutation, 64);
	case 3:
		return below(mutation, 2) ? word * 2 : -word;
	case 4:
		return random_word(mutation);
	default:
		return known_word(mutation);
	}
}

/* Change one field of 1, 2, 4 or 8 bytes. */
static void change_field(struct mutation *mutation, uint8_t *data, size_t size)
{
	static const size_t widths[] = {8, 8, 8, 4, 4, 2, 1};
	size_t width = widths[below(mutation, sizeof(widths) / sizeof(*widths))], offset;
	uint64_t word = 0;

	if (size < width)
		return;
	offset = below(mutation, size / width) * width;
	memcpy(&word, data + offset, width);
	word = change_word(mutation, word);
	memcpy(data + offset, &word, width);
}

static uint8_t *bytes_of(struct mutation *mutation, struct piece piece)
{
	return mutation->parts.content.data + piece.offset;
}

/* Where our records have their time: samples behind identifier and task, others before CPU and identifier. 0: not. */
static size_t time_place(const uint8_t *record, size_t size)
{
	struct perf_event_header header;

	memcpy(&header, record, sizeof(header));
	if (size < 40 || header.type >= RECORD_HEADER_ATTR)
		return 0;
	return header.type == PERF_RECORD_SAMPLE ? 24 : size - 24;
}

/* The record happens at the time of another one. */
static void change_time(struct mutation *mutation, struct piece piece, struct piece other)
{
	size_t place = time_place(bytes_of(mutation, piece), piece.size);
	size_t other_place = time_place(bytes_of(mutation, other), other.size);
	uint64_t time_ns;

	if (!place || !other_place)
		return;
	time_ns = word_at(bytes_of(mutation, other), other_place) + below(mutation, 3) - 1;
	memcpy(bytes_of(mutation, piece) + place, &time_ns, sizeof(time_ns));
}

static void insert_record(struct mutation *mutation, size_t position, struct piece piece)
{
	pieces *records = &mutation->parts.records;

	if (!vector_push(records, piece))
		abort();
	memmove(records->items + position + 1, records->items + position,
		(records->count - 1 - position) * sizeof(piece));
	records->items[position] = piece;
}

/* After two ends of rounds, earlier records come too late to be sorted. */
static void insert_rounds(struct mutation *mutation, size_t position)
{
	const struct perf_event_header round = {.type = RECORD_FINISHED_ROUND, .size = sizeof(round)};

	for (int i = 0; i < 2; i++)
		insert_record(mutation, position, put_piece(&mutation->parts, &round, sizeof(round)));
}

static void remove_records(struct mutation *mutation, size_t position, size_t count)
{
	pieces *records = &mutation->parts.records;

	if (count > records->count - position)
		count = records->count - position;
	memmove(records->items + position, records->items + position + count,
		(records->count - position - count) * sizeof(*records->items));
	records->count -= count;
}

static void change_records(struct mutation *mutation)
{
	pieces *records = &mutation->parts.records;
	size_t position = below(mutation, records->count), other = below(mutation, records->count);
	struct piece piece, moved;

	if (!records->count)
		return;
	piece = records->items[position];
	moved = records->items[other];
	switch (below(mutation, 12)) {
	case 0:
		insert_record(mutation, other, put_piece(&mutation->parts, bytes_of(mutation, piece), piece.size));
		break;
	case 1:
		remove_records(mutation, position, 1 + below(mutation, 3));
		break;
	case 2:
		records->items[position] = moved;
		records->items[other] = piece;
		break;
	case 3:
		insert_rounds(mutation, position);
		break;
	case 4:
	case 5:
		change_time(mutation, piece, moved);
		break;
	default:
		/* Change its header rarely. */
		if (piece.size > sizeof(struct perf_event_header) && below(mutation, 16))
			change_field(mutation, bytes_of(mutation, piece) + 8, piece.size - 8);
		else
			change_field(mutation, bytes_of(mutation, piece), piece.size);
	}
}

/* Change what the section contains, compressed or not. */
static void change_content(struct mutation *mutation, struct piece *section)
{
	struct bytes bytes = bytes_over(bytes_of(mutation, *section), section->size);
	size_t room = PARTS_BYTES, size;
	uint32_t version = bytes_u32(&bytes);
	struct buffer plain, packed;
	struct mmt_error *error = section_unpack(&bytes, "section", PARTS_BYTES, &room, &plain);

	buffer_init(&packed, PARTS_BYTES);
	size = plain.size;
	if (!error && size) {
		for (size_t i = below(mutation, 4); i < 4; i++)
			change_field(mutation, plain.data, size);
		if (!below(mutation, 8))
			plain.size -= below(mutation, size);
		error = pack_section(&plain, version, &packed);
		if (!error)
			*section = put_piece(&mutation->parts, packed.data, packed.size);
	} else {
		change_field(mutation, bytes_of(mutation, *section), section->size);
	}
	mmt_error_destroy(error);
	buffer_deinit(&plain);
	buffer_deinit(&packed);
}

static void change_sections(struct mutation *mutation)
{
	struct recording_parts *parts = &mutation->parts;
	unsigned first = (unsigned)below(mutation, FEATURE_BITS), number = first;

	do
		number = (number + 1) % FEATURE_BITS;
	while (number != first && !parts->present[number]);
	if (!parts->present[number])
		return;
	if (parts->in_head[number]) {
		change_field(mutation, bytes_of(mutation, parts->sections[number]), parts->sections[number].size);
		return;
	}
	switch (below(mutation, 12)) {
	case 0:
		parts->present[number] = false;
		break;
	case 1:
		parts->sections[number].size = below(mutation, parts->sections[number].size + 1);
		break;
	default:
		change_content(mutation, &parts->sections[number]);
	}
}

static void put_table(const struct recording_parts *parts, size_t start, struct buffer *out)
{
	size_t count = 0, offset;

	for (unsigned i = 0; i < FEATURE_BITS; i++)
		count += parts->present[i];
	offset = out->size - start + count * ENTRY_BYTES;
	for (unsigned i = 0; i < FEATURE_BITS; i++) {
		if (!parts->present[i])
			continue;
		buffer_put_u64(out, parts->in_head[i] ? parts->sections[i].offset : offset);
		buffer_put_u64(out, parts->sections[i].size);
		offset += parts->in_head[i] ? 0 : parts->sections[i].size;
	}
	for (unsigned i = 0; i < FEATURE_BITS; i++) {
		if (parts->present[i] && !parts->in_head[i])
			buffer_put(out, parts->content.data + parts->sections[i].offset, parts->sections[i].size);
	}
}

static void put_file(const struct recording_parts *parts, struct buffer *out)
{
	uint64_t features[FEATURE_BITS / 64] = {0}, data_bytes;
	size_t start = out->size;

	buffer_put(out, parts->content.data + parts->head.offset, parts->head.size);
	for (size_t i = 0; i < parts->records.count; i++)
		buffer_put(out, parts->content.data + parts->records.items[i].offset, parts->records.items[i].size);
	if (out->error)
		abort();
	data_bytes = parts->ends_early ? 0 : out->size - start - parts->head.size;
	memcpy(out->data + start + DATA_PLACE + 8, &data_bytes, sizeof(data_bytes));
	if (parts->ends_early)
		return;
	for (unsigned i = 0; i < FEATURE_BITS; i++)
		features[i / 64] |= (uint64_t)parts->present[i] << i % 64;
	memcpy(out->data + start + FEATURES_PLACE, features, sizeof(features));
	put_table(parts, start, out);
}

void recording_parts_mutate(const struct recording_parts *parts, uint64_t seed, struct buffer *out)
{
	struct mutation mutation = {.parts = *parts, .random = seed};
	struct recording_parts *copy = &mutation.parts;

	buffer_init(&copy->content, PARTS_BYTES);
	buffer_put(&copy->content, parts->content.data, parts->content.size);
	copy->records.items = NULL;
	copy->records.count = copy->records.capacity = 0;
	for (size_t i = 0; i < parts->records.count; i++) {
		if (!vector_push(&copy->records, parts->records.items[i]))
			abort();
	}
	for (size_t i = below(&mutation, CHANGES_MAX); i < CHANGES_MAX; i++) {
		size_t what = below(&mutation, 16);

		if (what < 10)
			change_records(&mutation);
		else if (what < 15)
			change_sections(&mutation);
		else /* behind the header, whose sizes everything else depends on */
			change_field(&mutation, bytes_of(&mutation, copy->head) + FORMAT_HEADER_SIZE,
				     copy->head.size - FORMAT_HEADER_SIZE);
	}
	put_file(copy, out);
	buffer_deinit(&copy->content);
	vector_deinit(&copy->records);
}
