// SPDX-License-Identifier: LGPL-2.1-or-later
#include "trace/read/recording-file.h"

#include "base/limits.h"

#define WINDOW_BYTES (256u << 10) /* the part of the file in memory, at most; larger than any record */

/* clang-format off */
#define KERNEL_RECORDS(DO) \
	DO(MMAP) DO(LOST) DO(COMM) DO(EXIT) DO(THROTTLE) DO(UNTHROTTLE) DO(FORK) DO(READ) DO(SAMPLE) DO(MMAP2) \
	DO(AUX) DO(ITRACE_START) DO(LOST_SAMPLES) DO(SWITCH) DO(SWITCH_CPU_WIDE) DO(NAMESPACES) DO(KSYMBOL) \
	DO(BPF_EVENT) DO(CGROUP) DO(TEXT_POKE)

#define PERF_RECORDS(DO) \
	DO(HEADER_ATTR) DO(HEADER_TRACING_DATA) DO(HEADER_BUILD_ID) DO(FINISHED_ROUND) DO(ID_INDEX) \
	DO(AUXTRACE_INFO) DO(AUXTRACE) DO(THREAD_MAP) DO(CPU_MAP) DO(EVENT_UPDATE) DO(TIME_CONV) DO(HEADER_FEATURE) \
	DO(COMPRESSED) DO(FINISHED_INIT) DO(COMPRESSED2)
/* clang-format on */

const char *record_type_name(uint32_t type)
{
#define KERNEL_NAME(name) [PERF_RECORD_##name] = #name,
#define PERF_NAME(name) [RECORD_##name] = #name,
	static const char *const names[] = {KERNEL_RECORDS(KERNEL_NAME) PERF_RECORDS(PERF_NAME)};

	return type < sizeof(names) / sizeof(names[0]) && names[type] ? names[type] : "UNKNOWN";
}

struct mmt_error *records_create(const struct recording_file *file, struct records **records_ret)
{
	struct records *records = calloc(1, sizeof(*records));
	struct mmt_error *error;

	if (!records)
		return &error_no_memory;
	records->file = file;
	records->offset = file->data_offset;
	error = decompressor_init(&records->decompressor);
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
	decompressor_deinit(&records->decompressor);
	record_blocks_destroy(records->window);
	record_blocks_destroy(records->plain);
	record_blocks_destroy(records->retired);
	record_blocks_destroy(records->spare);
	free(records);
}

/* The kernel would take as long to provide memory for each frame as the report takes to use it. */
void records_recycle(struct records *records, struct record_block *list)
{
	struct record_block *block = list;

	if (block && block->compressed && !records->spare) {
		list = TAKE(block->next);
		records->spare = block;
	}
	record_blocks_destroy(list);
}

/* NULL: out of memory. */
static struct record_block *create_plain(struct records *records)
{
	struct record_block *block = TAKE(records->spare) ?: record_block_create(LIMIT_FRAME_BYTES);

	if (block) {
		buffer_clear(&block->content);
		block->content.maximum = LIMIT_FRAME_BYTES;
		*block = (struct record_block){.content = block->content, .compressed = true};
	}
	return block;
}

/* Its last record has been read. */
static void leave_block(struct records *records, struct record_block *block)
{
	if (!block)
		return;
	block->left = true;
	if (!block->pending) {
		block->next = records->retired;
		records->retired = block;
	}
}

static struct mmt_error *describe_damage(uint64_t offset, uint32_t type, const char *what)
{
	return error_create(MMT_ERROR_FORMAT, "record at offset %llu (%s): %s", (unsigned long long)offset,
			    record_type_name(type), what);
}

/* Ends the records. */
static void fail(struct records *records, const struct record *record, const char *what, struct mmt_error **damage_ret)
{
	records->ended = true;
	*damage_ret = describe_damage(record->offset, record->header.type, what);
}

/* Whether the recorder is about to complete the file: the feature table begins with the place of a section in the head
 * of the file or behind the table. */
static bool is_feature_table(const struct records *records, const uint8_t *data)
{
	uint64_t place;

	memcpy(&place, data, sizeof(place));
	place = le64toh(place);
	return records->file->incomplete && place >= FORMAT_HEADER_SIZE &&
	       place <= records->offset + FEATURE_BITS * 2 * sizeof(uint64_t);
}

/* The next record that is in the file itself. A truncated file ends with its last complete record. */
static struct mmt_error *next_outer(struct records *records, struct record *record, struct mmt_error **damage_ret)
{
	uint64_t end = records->file->data_end, left = end > records->offset ? end - records->offset : 0;
	size_t size = left < UINT16_MAX ? left : UINT16_MAX;
	const struct record_block *window = records->window;

	if (left == 0) {
		records->ended = true;
		return NULL;
	}
	if (!window || records->offset < window->offset ||
	    records->offset + size > window->offset + window->content.size) {
		size_t loaded = left < WINDOW_BYTES ? left : WINDOW_BYTES;
		struct record_block *moved = record_block_create(WINDOW_BYTES);
		void *room = moved ? buffer_extend(&moved->content, loaded) : NULL;
		struct mmt_error *error;

		leave_block(records, records->window);
		records->window = moved;
		if (!room)
			return moved ? buffer_finish(&moved->content) : &error_no_memory;
		moved->offset = records->offset;
		error = recording_file_read(records->file, records->offset, room, loaded);
		if (error) {
			moved->content.size = 0;
			return error;
		}
	}
	record->block = records->window;
	record->data = record->block->content.data + (records->offset - record->block->offset);
	record->offset = records->offset;
	record->header = size < RECORD_HEADER_BYTES ? (struct perf_event_header){0} : record_header(record->data);
	if (size < RECORD_HEADER_BYTES || record->header.size > size) {
		records->ended = true;
		if (!records->file->incomplete)
			fail(records, record, "reaches beyond the data", damage_ret);
	} else if (is_feature_table(records, record->data)) {
		records->ended = true;
	} else if (record->header.size < RECORD_HEADER_BYTES) {
		fail(records, record, "size less than a record header", damage_ret);
	} else if (record->header.type >= LIMIT_RECORD_TYPE) {
		fail(records, record, "unknown record type", damage_ret);
	} else {
		records->offset += record->header.size;
	}
	return NULL;
}

/* A payload that follows the record and is not included in its size. */
static void skip_payload(struct records *records, const struct record *record, struct mmt_error **damage_ret)
{
	struct bytes bytes = bytes_over(record->data + RECORD_HEADER_BYTES, record->header.size - RECORD_HEADER_BYTES);
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
		fail(records, record, "its payload reaches beyond the data", damage_ret);
}

bool records_find_stream(const uint8_t *record, size_t size, const uint8_t **data_ret, size_t *size_ret)
{
	struct bytes bytes = bytes_over(record + RECORD_HEADER_BYTES, size - RECORD_HEADER_BYTES);
	struct perf_event_header header = record_header(record);
	uint64_t given = header.type == RECORD_COMPRESSED2 ? bytes_u64(&bytes) : bytes_left(&bytes);

	if (!bytes_ok(&bytes) || given > bytes_left(&bytes))
		return false;
	*size_ret = given;
	*data_ret = bytes_take(&bytes, given);
	return true;
}

static struct mmt_error *decompress(struct records *records, const struct record *record, struct mmt_error **damage_ret)
{
	struct record_block *before = records->plain, *plain;
	const struct recording_file *file = records->file;
	const uint8_t *data;
	struct mmt_error *error;
	size_t size;

	if (!records_find_stream(record->data, record->header.size, &data, &size)) {
		fail(records, record, "invalid size inside", damage_ret);
		return NULL;
	}
	/* A small file must not take hours: compressed records of a recorder take two bytes or more, and their stack
	 * dumps, which are mostly zeros, a 463rd part of their size. */
	if (records->plain_records > LIMIT_PLAIN_RECORDS_ANYWHERE + file->size ||
	    records->plain_bytes > LIMIT_PLAIN_BYTES_ANYWHERE + file->size * LIMIT_PLAIN_EXPANSION) {
		fail(records, record, "more compressed records than a file of this size can have", damage_ret);
		return NULL;
	}
	/* Continue with the part of a record that the previous frame ended with: in its block if that has nothing else,
	 * or else in a new one. Many small frames must not copy it each time. */
	if (before && !records->plain_position) {
		before->offset = record->offset;
		before->content.maximum = LIMIT_FRAME_BYTES;
	} else {
		plain = create_plain(records);
		if (!plain)
			return &error_no_memory;
		if (before)
			buffer_put(&plain->content, before->content.data + records->plain_position,
				   before->content.size - records->plain_position);
		plain->offset = record->offset;
		leave_block(records, before);
		records->plain = plain;
		records->plain_position = 0;
		error = buffer_finish(&plain->content);
		if (error)
			return error;
	}
	error = decompressor_feed(&records->decompressor, data, size, &records->plain->content);
	if (error && error->code != MMT_ERROR_NO_MEMORY) {
		records->plain_damage =
		    error_context(error, "record at offset %llu (%s)", (unsigned long long)record->offset,
				  record_type_name(record->header.type));
		error = NULL;
	}
	return error;
}

/* False: the decompressed bytes contain no more complete record. */
static inline bool next_inner(struct records *records, struct record *record, struct mmt_error **damage_ret)
{
	struct record_block *plain = records->plain;
	size_t left = plain ? plain->content.size - records->plain_position : 0;
	const char *wrong = NULL;
	const uint8_t *data;

	if (left < RECORD_HEADER_BYTES)
		return false;
	data = plain->content.data + records->plain_position;
	record->header = record_header(data);
	record->data = data;
	record->offset = plain->offset;
	record->block = plain;
	if (record->header.size < RECORD_HEADER_BYTES)
		wrong = "size less than a record header, inside a compressed record";
	else if (record->header.type >= LIMIT_RECORD_TYPE)
		wrong = "unknown record type, inside a compressed record";
	else if (record->header.type == RECORD_COMPRESSED || record->header.type == RECORD_COMPRESSED2)
		wrong = "inside a compressed record";
	if (wrong) {
		fail(records, record, wrong, damage_ret);
		return false;
	}
	if (record->header.size > left)
		return false;
	records->plain_position += record->header.size;
	records->plain_records++;
	records->plain_bytes += record->header.size;
	return true;
}

struct mmt_error *records_next(struct records *records, struct record *record_ret, bool *end_ret,
			       struct mmt_error **damage_ret)
{
	struct mmt_error *error = NULL;

	*end_ret = false;
	*damage_ret = NULL;
	records_recycle(records, TAKE(records->retired));
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
	if (records->plain && records->plain->content.size > records->plain_position && !records->file->incomplete &&
	    !*damage_ret)
		*damage_ret =
		    describe_damage(records->plain->offset, RECORD_COMPRESSED, "the data ends inside a record");
	records->ended = *damage_ret || !records->file->follows;
	*end_ret = true;
	return NULL;
}
