// SPDX-License-Identifier: LGPL-2.1-or-later
#include "trace/records.h"

#include <stdlib.h>
#include <string.h>

#include "base/buffer.h"
#include "base/bytes.h"
#include "base/cleanup.h"
#include "trace/compress.h"

#define HEADER_BYTES sizeof(struct perf_event_header)
#define WINDOW_BYTES (1u << 20) /* of the file in memory, at most; larger than any record */

struct records {
	const struct recording_file *file;
	uint8_t *window;
	size_t window_capacity; /* no more than there are data */
	uint64_t window_offset; /* in the file */
	size_t window_size;
	uint64_t offset; /* of the next record in the file */
	struct decompressor *decompressor;
	struct buffer plain; /* decompressed; a record may begin in one compressed record and end in a later one */
	size_t plain_position;
	uint64_t plain_offset;		/* of the compressed record */
	struct mmt_error *plain_damage; /* behind the records that could be decompressed */
	bool ended;
};

const char *record_type_name(uint32_t type)
{
	static const char *const names[] = {
	    [PERF_RECORD_MMAP] = "MMAP",
	    [PERF_RECORD_LOST] = "LOST",
	    [PERF_RECORD_COMM] = "COMM",
	    [PERF_RECORD_EXIT] = "EXIT",
	    [PERF_RECORD_THROTTLE] = "THROTTLE",
	    [PERF_RECORD_UNTHROTTLE] = "UNTHROTTLE",
	    [PERF_RECORD_FORK] = "FORK",
	    [PERF_RECORD_READ] = "READ",
	    [PERF_RECORD_SAMPLE] = "SAMPLE",
	    [PERF_RECORD_MMAP2] = "MMAP2",
	    [PERF_RECORD_AUX] = "AUX",
	    [PERF_RECORD_ITRACE_START] = "ITRACE_START",
	    [PERF_RECORD_LOST_SAMPLES] = "LOST_SAMPLES",
	    [PERF_RECORD_SWITCH] = "SWITCH",
	    [PERF_RECORD_SWITCH_CPU_WIDE] = "SWITCH_CPU_WIDE",
	    [PERF_RECORD_NAMESPACES] = "NAMESPACES",
	    [PERF_RECORD_KSYMBOL] = "KSYMBOL",
	    [PERF_RECORD_BPF_EVENT] = "BPF_EVENT",
	    [PERF_RECORD_CGROUP] = "CGROUP",
	    [PERF_RECORD_TEXT_POKE] = "TEXT_POKE",
	    [RECORD_HEADER_ATTR] = "HEADER_ATTR",
	    [RECORD_HEADER_TRACING_DATA] = "HEADER_TRACING_DATA",
	    [RECORD_HEADER_BUILD_ID] = "HEADER_BUILD_ID",
	    [RECORD_FINISHED_ROUND] = "FINISHED_ROUND",
	    [RECORD_ID_INDEX] = "ID_INDEX",
	    [RECORD_AUXTRACE_INFO] = "AUXTRACE_INFO",
	    [RECORD_AUXTRACE] = "AUXTRACE",
	    [RECORD_THREAD_MAP] = "THREAD_MAP",
	    [RECORD_CPU_MAP] = "CPU_MAP",
	    [RECORD_EVENT_UPDATE] = "EVENT_UPDATE",
	    [RECORD_TIME_CONV] = "TIME_CONV",
	    [RECORD_HEADER_FEATURE] = "HEADER_FEATURE",
	    [RECORD_COMPRESSED] = "COMPRESSED",
	    [RECORD_FINISHED_INIT] = "FINISHED_INIT",
	    [RECORD_COMPRESSED2] = "COMPRESSED2",
	};

	return type < sizeof(names) / sizeof(names[0]) && names[type] ? names[type] : "UNKNOWN";
}

struct mmt_error *records_create(const struct recording_file *file, struct records **records_ret)
{
	struct records *records = calloc(1, sizeof(*records));
	uint64_t data_bytes = file->data_end - file->data_offset;
	struct mmt_error *error;

	if (!records)
		return &error_no_memory;
	records->file = file;
	records->offset = file->data_offset;
	buffer_init(&records->plain, LIMIT_FRAME_BYTES);
	records->window_capacity = data_bytes < WINDOW_BYTES ? data_bytes : WINDOW_BYTES;
	records->window = malloc(records->window_capacity ? records->window_capacity : 1);
	error = records->window ? decompressor_create(&records->decompressor) : &error_no_memory;
	if (error)
		records_destroy(records);
	else
		*records_ret = records;
	return error;
}

void records_destroy(struct records *records)
{
	if (!records)
		return;
	mmt_error_destroy(records->plain_damage);
	decompressor_destroy(records->decompressor);
	buffer_deinit(&records->plain);
	free(records->window);
	free(records);
}

static struct mmt_error *describe_damage(uint64_t offset, uint32_t type, const char *what)
{
	return error_create(MMT_ERROR_FORMAT, "record at offset %llu (%s): %s", (unsigned long long)offset,
			    record_type_name(type), what);
}

/* The bytes at `offset` in the window, at most `wanted` of them. */
static struct mmt_error *look_at(struct records *records, uint64_t offset, size_t wanted, const uint8_t **data_ret,
				 size_t *size_ret)
{
	uint64_t left = records->file->data_end - offset;
	struct mmt_error *error;

	if (wanted > left)
		wanted = left;
	if (offset < records->window_offset || offset + wanted > records->window_offset + records->window_size) {
		size_t size = left < records->window_capacity ? left : records->window_capacity;

		records->window_size = 0;
		error = recording_file_read(records->file, offset, records->window, size);
		if (error)
			return error;
		records->window_offset = offset;
		records->window_size = size;
	}
	*data_ret = records->window + (offset - records->window_offset);
	*size_ret = wanted;
	return NULL;
}

static struct perf_event_header read_record_header(const uint8_t *data)
{
	struct perf_event_header header;

	memcpy(&header, data, sizeof(header));
	return header;
}

/* The next record that lies in the file. A file that was cut short ends with its last whole record. */
static struct mmt_error *next_outer(struct records *records, struct record *record, struct mmt_error **damage_ret)
{
	uint64_t left = records->file->data_end - records->offset;
	struct mmt_error *error;
	const uint8_t *data;
	size_t size;

	if (left == 0) {
		records->ended = true;
		return NULL;
	}
	error = look_at(records, records->offset, UINT16_MAX, &data, &size);
	if (error)
		return error;
	record->header = size < HEADER_BYTES ? (struct perf_event_header){0} : read_record_header(data);
	record->data = data;
	record->offset = records->offset;
	if (size < HEADER_BYTES || record->header.size > size) {
		records->ended = true;
		if (!records->file->incomplete)
			*damage_ret = describe_damage(records->offset, record->header.type, "reaches beyond the data");
	} else if (record->header.size < HEADER_BYTES) {
		records->ended = true;
		*damage_ret = describe_damage(records->offset, record->header.type, "size less than a record header");
	} else if (record->header.type >= LIMIT_RECORD_TYPE) {
		records->ended = true;
		*damage_ret = describe_damage(records->offset, record->header.type, "no type of a record");
	} else {
		records->offset += record->header.size;
	}
	return NULL;
}

/* Payload that stands behind the record without being counted in its size. */
static void skip_payload(struct records *records, const struct record *record, struct mmt_error **damage_ret)
{
	struct bytes bytes = bytes_over(record->data + HEADER_BYTES, record->header.size - HEADER_BYTES);
	uint64_t left = records->file->data_end - records->offset;
	uint64_t size = record->header.type == RECORD_AUXTRACE ? bytes_u64(&bytes) : bytes_u32(&bytes);

	if (record->header.type == RECORD_HEADER_TRACING_DATA)
		size = (size + 7) & ~7ULL;
	if (bytes_ok(&bytes) && size <= left) {
		records->offset += size;
		return;
	}
	records->ended = true;
	if (!records->file->incomplete || !bytes_ok(&bytes))
		*damage_ret =
		    describe_damage(record->offset, record->header.type, "its payload reaches beyond the data");
}

/* Append the content of a compressed record to what is left of the one before. */
static struct mmt_error *decompress(struct records *records, const struct record *record, struct mmt_error **damage_ret)
{
	struct bytes bytes = bytes_over(record->data + HEADER_BYTES, record->header.size - HEADER_BYTES);
	struct buffer *plain = &records->plain;
	size_t left = plain->size - records->plain_position;
	size_t size = bytes_left(&bytes);
	struct mmt_error *error;

	if (left)
		memmove(plain->data, plain->data + records->plain_position, left);
	plain->size = left;
	records->plain_position = 0;
	records->plain_offset = record->offset;
	if (record->header.type == RECORD_COMPRESSED2) {
		uint64_t given = bytes_u64(&bytes);

		if (!bytes_ok(&bytes) || given > bytes_left(&bytes)) {
			records->ended = true;
			*damage_ret = describe_damage(record->offset, record->header.type, "impossible size inside");
			return NULL;
		}
		size = given;
	}
	error = decompressor_feed(records->decompressor, bytes_take(&bytes, size), size, plain);
	if (error && mmt_error_get_code(error) != MMT_ERROR_NO_MEMORY) {
		records->plain_damage =
		    error_context(error, "record at offset %llu (%s)", (unsigned long long)record->offset,
				  record_type_name(record->header.type));
		error = NULL;
	}
	return error;
}

/* False: no whole record is left in the decompressed bytes. */
static bool next_inner(struct records *records, struct record *record, struct mmt_error **damage_ret)
{
	size_t left = records->plain.size - records->plain_position;
	const char *wrong = NULL;
	const uint8_t *data;

	if (left < HEADER_BYTES)
		return false;
	data = records->plain.data + records->plain_position;
	record->header = read_record_header(data);
	record->data = data;
	record->offset = records->plain_offset;
	if (record->header.size < HEADER_BYTES)
		wrong = "size less than a record header, inside a compressed record";
	else if (record->header.type >= LIMIT_RECORD_TYPE)
		wrong = "no type of a record, inside a compressed record";
	else if (record->header.type == RECORD_COMPRESSED || record->header.type == RECORD_COMPRESSED2)
		wrong = "inside a compressed record";
	if (wrong) {
		records->ended = true;
		*damage_ret = describe_damage(record->offset, record->header.type, wrong);
		return false;
	}
	if (record->header.size > left)
		return false;
	records->plain_position += record->header.size;
	return true;
}

static void check_leftover(struct records *records, struct mmt_error **damage_ret)
{
	if (records->plain.size > records->plain_position && !records->file->incomplete && !*damage_ret)
		*damage_ret =
		    describe_damage(records->plain_offset, RECORD_COMPRESSED, "the data end inside of a record");
}

struct mmt_error *records_next(struct records *records, struct record *record_ret, bool *end_ret,
			       struct mmt_error **damage_ret)
{
	struct mmt_error *error = NULL;

	*end_ret = false;
	*damage_ret = NULL;
	while (!error && !*damage_ret && !records->ended) {
		if (next_inner(records, record_ret, damage_ret))
			return NULL;
		if (!*damage_ret)
			*damage_ret = TAKE(records->plain_damage);
		if (*damage_ret)
			break;
		error = next_outer(records, record_ret, damage_ret);
		if (error || *damage_ret || records->ended)
			break;
		switch (record_ret->header.type) {
		case RECORD_COMPRESSED:
		case RECORD_COMPRESSED2:
			error = decompress(records, record_ret, damage_ret);
			break;
		case RECORD_AUXTRACE:
		case RECORD_HEADER_TRACING_DATA:
			skip_payload(records, record_ret, damage_ret);
			if (!*damage_ret && !records->ended)
				return NULL;
			break;
		default:
			return NULL;
		}
	}
	if (error)
		return error;
	check_leftover(records, damage_ret);
	records->ended = true;
	*end_ret = true;
	return NULL;
}
