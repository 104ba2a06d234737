// SPDX-License-Identifier: LGPL-2.1-or-later
#include "code/jit/code-timeline.h"

#include "base/limits.h"

#define MAGIC 0x4a695444u
#define MAGIC_SWAPPED 0x4454694au
#define VERSION 1
#define HEADER_BYTES 40
#define PREFIX_BYTES 16
#define LINE_BYTES 17 /* of a DEBUG_INFO record with an empty name */
#define FLAG_ARCH_TIMESTAMP 1u
#define CLOCK_SLACK_NS 1000000000ULL /* a record may be slightly newer than the end of the recording */
#define NO_CODE UINT32_MAX

enum record_id { RECORD_LOAD = 0, RECORD_MOVE = 1, RECORD_DEBUG_INFO = 2, RECORD_UNWINDING_INFO = 4 };

static bool add_place(struct jitdump *dump, uint64_t start, uint64_t size, uint64_t time_ns, uint32_t code)
{
	struct placed_code place = {
	    .range = {.start = start, .end = start + size, .from_ns = time_ns},
	    .code = code,
	    .order = (uint32_t)dump->places.count,
	};

	dump->stats.refused += place.range.end < start;
	if (place.range.end <= start)
		return true;
	if (dump->places.count == LIMIT_TIMELINE_RANGES) {
		dump->stats.dropped++;
		return true;
	}
	return vector_push(&dump->places, place);
}

/* False: out of memory. A record too small for its fields is skipped. */
static bool read_load(struct jitdump *dump, struct bytes record, uint64_t time_ns)
{
	struct dumped_code code = dump->next;
	const uint8_t *end = record.end;
	uint64_t index;

	dump->next = (struct dumped_code){0};
	bytes_skip(&record, 8 + 8); /* pid, tid; vma */
	code.address = bytes_u64(&record);
	code.size = bytes_u64(&record);
	index = bytes_u64(&record);
	code.name = bytes_string(&record);
	/* The code is at the end of the record; there may be padding between the name and the code. */
	if (!bytes_ok(&record)) {
		dump->stats.refused++;
		return true;
	}
	if (code.size && code.size <= bytes_left(&record))
		code.bytes = end - code.size;
	if (!vector_push(&dump->codes, code) || !map_put(&dump->by_index, index, dump->codes.count - 1))
		return false;
	return add_place(dump, code.address, code.size, time_ns, (uint32_t)dump->codes.count - 1);
}

static bool read_move(struct jitdump *dump, struct bytes record, uint64_t time_ns)
{
	uint64_t from, to, size;
	const uint64_t *code;

	bytes_skip(&record, 8 + 8);
	from = bytes_u64(&record);
	to = bytes_u64(&record);
	size = bytes_u64(&record);
	code = map_get(&dump->by_index, bytes_u64(&record));
	if (!bytes_ok(&record) || !code) {
		dump->stats.refused++;
		return true;
	}
	return add_place(dump, from, size, time_ns, NO_CODE) && add_place(dump, to, size, time_ns, (uint32_t)*code);
}

static bool read_records(struct jitdump *dump, struct bytes *bytes)
{
	while (bytes_left(bytes)) {
		struct bytes prefix = *bytes, record;
		uint32_t id = bytes_u32(&prefix), size = bytes_u32(&prefix);
		uint64_t time_ns = bytes_u64(&prefix);

		if (!bytes_ok(&prefix) || size < PREFIX_BYTES || size > bytes_left(bytes)) {
			dump->stats.unread = bytes_left(bytes);
			return true;
		}
		bytes_skip(bytes, PREFIX_BYTES);
		record = bytes_sub(bytes, size - PREFIX_BYTES);
		dump->last_ns = larger_of(dump->last_ns, time_ns);
		if ((id == RECORD_LOAD && !read_load(dump, record, time_ns)) ||
		    (id == RECORD_MOVE && !read_move(dump, record, time_ns)))
			return false;
		if (id == RECORD_DEBUG_INFO) {
			bytes_u64(&record); /* address of the code, which equals that of the next LOAD */
			dump->next.line_count = bytes_u64(&record);
			if (!bytes_ok(&record) || dump->next.line_count > bytes_left(&record) / LINE_BYTES)
				dump->stats.refused++;
			dump->next.lines = record.position;
			dump->next.lines_size = bytes_left(&record);
		}
		if (id == RECORD_UNWINDING_INFO) {
			uint64_t unwinding_size = bytes_u64(&record), header_size = bytes_u64(&record);

			bytes_u64(&record); /* mapped size */
			if (bytes_ok(&record) && unwinding_size <= bytes_left(&record) &&
			    header_size <= unwinding_size) {
				dump->next.eh_frame = record.position;
				dump->next.eh_frame_size = (size_t)(unwinding_size - header_size);
			} else {
				dump->stats.refused++;
			}
		}
	}
	return true;
}

COMPARISON(compare_places, struct placed_code,
	   order_of(a->range.from_ns, b->range.from_ns) ?: order_of(a->order, b->order))

/* No version has extended the header; trust its size field up to the end of the file. */
static struct mmt_error *read_header(struct bytes *bytes, uint64_t *flags_ret)
{
	struct bytes header = *bytes;
	uint32_t magic = bytes_u32(&header), version = bytes_u32(&header), size = bytes_u32(&header);

	bytes_skip(&header, 4 + 4 + 4 + 8); /* machine, padding, pid, time */
	*flags_ret = bytes_u64(&header);
	if (magic == MAGIC_SWAPPED)
		return error_create(MMT_ERROR_UNSUPPORTED, "it has the other byte order");
	if (!bytes_ok(&header) || magic != MAGIC || size < HEADER_BYTES)
		return error_create(MMT_ERROR_FORMAT, "it is not a jitdump");
	if (version != VERSION)
		return error_create(MMT_ERROR_UNSUPPORTED, "its version is %u, which mmtrace does not know", version);
	bytes_skip(bytes, size);
	return NULL;
}

struct mmt_error *jitdump_create(const void *data, size_t size, uint64_t clock_end_ns, struct jitdump **dump_ret)
{
	struct bytes bytes = bytes_over(data, size);
	struct jitdump *dump;
	uint64_t flags;
	struct mmt_error *error = read_header(&bytes, &flags);

	if (error)
		return error;
	dump = calloc(1, sizeof(*dump));
	if (!dump)
		return &error_no_memory;
	if (!read_records(dump, &bytes))
		error = &error_no_memory;
	dump->stats.other_clock = flags & FLAG_ARCH_TIMESTAMP ||
				  (dump->last_ns > clock_end_ns && dump->last_ns - clock_end_ns > CLOCK_SLACK_NS);
	for (size_t i = 0; dump->stats.other_clock && i < dump->places.count; i++)
		dump->places.items[i].range.from_ns = 0;
	vector_sort(&dump->places, compare_places);
	for (size_t i = 0; !error && i < dump->places.count; i++) {
		if (!vector_push(&dump->ranges, dump->places.items[i].range))
			error = &error_no_memory;
	}
	error = error ?: code_timeline_create(dump->ranges.items, dump->ranges.count, &dump->timeline);
	if (error)
		jitdump_destroy(dump);
	else
		*dump_ret = dump;
	return error;
}

void jitdump_destroy(struct jitdump *dump)
{
	if (!dump)
		return;
	vector_deinit_each(&dump->codes, code, cfi_destroy(code->cfi));
	code_timeline_destroy(dump->timeline);
	vector_deinit(&dump->places);
	vector_deinit(&dump->ranges);
	map_deinit(&dump->by_index);
	free(dump);
}

uint32_t jitdump_find(struct jitdump *dump, uint64_t address, uint64_t time_ns)
{
	uint32_t place = code_timeline_find(dump->timeline, address, time_ns);

	return place == CODE_TIMELINE_NONE || dump->places.items[place].code == NO_CODE ? CODE_TIMELINE_NONE : place;
}

struct named_code jitdump_code(const struct jitdump *dump, uint32_t number)
{
	const struct placed_code *place = &dump->places.items[number];
	const struct dumped_code *code = &dump->codes.items[place->code];
	uint64_t size = place->range.end - place->range.start;

	return (struct named_code){.name = code->name,
				   .start = place->range.start,
				   .size = size,
				   .from_ns = place->range.from_ns,
				   .bytes = size <= code->size ? code->bytes : NULL};
}

/* An address in the place, converted to the address space of the LOAD. */
static uint64_t loaded_address(const struct jitdump *dump, uint32_t number, uint64_t address)
{
	const struct placed_code *place = &dump->places.items[number];

	return address - place->range.start + dump->codes.items[place->code].address;
}

bool jitdump_line(const struct jitdump *dump, uint32_t number, uint64_t address, const char **file_ret,
		  uint32_t *line_ret)
{
	const struct dumped_code *code = &dump->codes.items[dump->places.items[number].code];
	struct bytes bytes = bytes_over(code->lines, code->lines_size);
	uint64_t wanted = loaded_address(dump, number, address), nearest = 0;
	const char *file = NULL;
	bool found = false;

	for (uint64_t i = 0; i < code->line_count && bytes_left(&bytes); i++) {
		uint64_t start = bytes_u64(&bytes);
		uint32_t line = bytes_u32(&bytes);
		const char *name;

		bytes_u32(&bytes); /* discriminator */
		name = bytes_string(&bytes);
		if (!bytes_ok(&bytes))
			break;
		if (strcmp(name, "\xff"))
			file = name;
		if (start > wanted || start < code->address || (found && start < nearest) || !file)
			continue;
		found = true;
		nearest = start;
		*file_ret = file;
		*line_ret = line;
	}
	return found;
}

const struct cfi_row *jitdump_cfi(struct jitdump *dump, uint32_t number, uint64_t address)
{
	struct dumped_code *code = &dump->codes.items[dump->places.items[number].code];

	if (!code->cfi_made && code->eh_frame_size) {
		/* perf places the section after the code, so runtimes write offsets relative to that place. */
		uint64_t place = code->address + ((code->size + 7) & ~7ULL);

		code->cfi = cfi_create_from_memory(code->eh_frame, code->eh_frame_size, place);
	}
	code->cfi_made = true;
	return code->cfi ? cfi_find(code->cfi, loaded_address(dump, number, address)) : NULL;
}
