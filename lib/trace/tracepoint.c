// SPDX-License-Identifier: LGPL-2.1-or-later
#include "trace/tracepoint.h"

#include <stdlib.h>
#include <string.h>
#include <traceevent/event-parse.h>

#include "trace/format.h"

/* Marks of perf's TRACING_DATA, which trace-cmd made first. */
#define MAGIC "\027\010\104tracing"
#define MAGIC_BYTES 10
#define VERSION "0.6"
#define LITTLE_ENDIAN_MARK 0
#define LONG_BYTES 8
#define LIMIT_SYSTEMS 65536
#define LIMIT_TRACEPOINTS 65536
#define LIMIT_FIELD_BYTES 65535

void tracepoints_deinit(struct tracepoints *tracepoints)
{
	for (size_t i = 0; i < tracepoints->items.count; i++) {
		struct tracepoint *item = &tracepoints->items.items[i];

		free(item->system);
		free(item->name);
		free(item->format);
	}
	vector_deinit(&tracepoints->items);
	free(tracepoints->header_page);
	free(tracepoints->header_event);
	*tracepoints = (struct tracepoints){0};
}

static void put_text(struct buffer *buffer, const char *text)
{
	size_t size = text ? strlen(text) : 0;

	buffer_put_u64(buffer, size);
	buffer_put(buffer, text, size);
}

/* Each system once, with all of its formats. */
static void put_systems(const struct tracepoints *tracepoints, struct buffer *buffer)
{
	size_t count = tracepoints->items.count, counted_offset = buffer->size;
	uint32_t systems = 0;

	buffer_put_u32(buffer, 0);
	for (size_t i = 0; i < count; i++) {
		const char *system = tracepoints->items.items[i].system;
		size_t first = 0, members_offset;
		uint32_t members = 0;

		while (strcmp(tracepoints->items.items[first].system, system) != 0)
			first++;
		if (first < i)
			continue;
		buffer_put_string(buffer, system);
		members_offset = buffer->size;
		buffer_put_u32(buffer, 0);
		for (size_t j = i; j < count; j++) {
			if (strcmp(tracepoints->items.items[j].system, system) != 0)
				continue;
			put_text(buffer, tracepoints->items.items[j].format);
			members++;
		}
		buffer_patch_u32(buffer, members_offset, members);
		systems++;
	}
	buffer_patch_u32(buffer, counted_offset, systems);
}

void tracepoints_encode(const struct tracepoints *tracepoints, uint32_t page_bytes, struct buffer *buffer)
{
	buffer_put(buffer, MAGIC, MAGIC_BYTES);
	buffer_put_string(buffer, VERSION);
	buffer_put_u8(buffer, LITTLE_ENDIAN_MARK);
	buffer_put_u8(buffer, LONG_BYTES);
	buffer_put_u32(buffer, page_bytes);
	buffer_put_string(buffer, "header_page");
	put_text(buffer, tracepoints->header_page);
	buffer_put_string(buffer, "header_event");
	put_text(buffer, tracepoints->header_event);
	buffer_put_u32(buffer, 0); /* formats of ftrace's own events */
	put_systems(tracepoints, buffer);
	buffer_put_u32(buffer, 0); /* kallsyms */
	buffer_put_u32(buffer, 0); /* printk formats */
	buffer_put_u64(buffer, 0); /* saved command lines */
}

static char *copy_text(struct bytes *bytes, uint64_t size)
{
	struct bytes text = bytes_sub(bytes, bytes_count(bytes, size, 1, LIMIT_SECTION_BYTES));

	return strndup((const char *)text.start, bytes_left(&text));
}

/* "name: sys_exit_mmap" and "ID: 101" of a format text. */
static bool read_name_and_id(struct tracepoint *item)
{
	const char *name = strstr(item->format, "name: ");
	const char *id = strstr(item->format, "ID: ");

	if (!name || !id)
		return false;
	name += strlen("name: ");
	item->name = strndup(name, strcspn(name, "\n"));
	item->id = (uint32_t)strtoul(id + strlen("ID: "), NULL, 10);
	return item->name;
}

static struct mmt_error *decode_system(struct bytes *bytes, struct tracepoints *tracepoints)
{
	const char *system = bytes_string(bytes);
	uint64_t count = bytes_u32(bytes);

	count = bytes_count(bytes, count, sizeof(uint64_t), LIMIT_TRACEPOINTS);
	for (uint64_t i = 0; i < count && bytes_ok(bytes); i++) {
		struct tracepoint *item = vector_append(&tracepoints->items);

		if (!item)
			return &error_no_memory;
		item->system = strdup(system);
		item->format = copy_text(bytes, bytes_u64(bytes));
		if (!item->system || !item->format)
			return &error_no_memory;
		if (bytes_ok(bytes) && !read_name_and_id(item))
			bytes_fail(bytes, "format text without name and ID");
	}
	return NULL;
}

static void expect(struct bytes *bytes, const char *word, const char *failure)
{
	if (strcmp(bytes_string(bytes), word) != 0)
		bytes_fail(bytes, failure);
}

static void decode_start(struct bytes *bytes)
{
	const void *magic = bytes_take(bytes, MAGIC_BYTES);

	if (magic && memcmp(magic, MAGIC, MAGIC_BYTES) != 0)
		bytes_fail(bytes, "wrong magic");
	bytes_string(bytes); /* version */
	if (bytes_u8(bytes) != LITTLE_ENDIAN_MARK)
		bytes_fail(bytes, "other byte order");
	if (bytes_u8(bytes) != LONG_BYTES)
		bytes_fail(bytes, "kernel that is not of 64 bits");
	bytes_u32(bytes); /* page size */
}

static struct mmt_error *decode_body(struct bytes *bytes, struct tracepoints *tracepoints)
{
	struct mmt_error *error = NULL;
	uint64_t count;

	expect(bytes, "header_page", "no header_page");
	tracepoints->header_page = copy_text(bytes, bytes_u64(bytes));
	expect(bytes, "header_event", "no header_event");
	tracepoints->header_event = copy_text(bytes, bytes_u64(bytes));
	if (!tracepoints->header_page || !tracepoints->header_event)
		return &error_no_memory;
	count = bytes_u32(bytes);
	count = bytes_count(bytes, count, sizeof(uint64_t), LIMIT_TRACEPOINTS);
	for (uint64_t i = 0; i < count; i++)
		bytes_sub(bytes, bytes_u64(bytes));
	count = bytes_u32(bytes);
	count = bytes_count(bytes, count, 1 + sizeof(uint32_t), LIMIT_SYSTEMS);
	for (uint64_t i = 0; i < count && bytes_ok(bytes) && !error; i++)
		error = decode_system(bytes, tracepoints);
	return error;
}

struct mmt_error *tracepoints_decode(struct bytes *bytes, struct tracepoints *tracepoints_ret)
{
	struct tracepoints tracepoints = {0};
	struct mmt_error *error;

	decode_start(bytes);
	error = decode_body(bytes, &tracepoints);
	if (!error)
		error = bytes_finish(bytes, "tracepoint formats");
	if (error)
		tracepoints_deinit(&tracepoints);
	else
		*tracepoints_ret = tracepoints;
	return error;
}

const struct tracepoint *tracepoints_find(const struct tracepoints *tracepoints, uint32_t id)
{
	for (size_t i = 0; i < tracepoints->items.count; i++) {
		if (tracepoints->items.items[i].id == id)
			return &tracepoints->items.items[i];
	}
	return NULL;
}

/* NULL: not parsable. The event belongs to the parser. */
static struct tep_event *parse(struct tep_handle *parser, const struct tracepoint *tracepoint)
{
	tep_set_loglevel(TEP_LOG_NONE);
	tep_set_long_size(parser, LONG_BYTES);
	/* The print format may be beyond the parser; the fields are there all the same. */
	(void)tep_parse_event(parser, tracepoint->format, strlen(tracepoint->format), tracepoint->system);
	return tep_find_event_by_name(parser, tracepoint->system, tracepoint->name);
}

static bool read_field(const struct tep_format_field *field, struct tracepoint_field *field_ret)
{
	if (!field || field->offset < 0 || field->size <= 0 || field->offset > LIMIT_FIELD_BYTES ||
	    field->size > LIMIT_FIELD_BYTES)
		return false;
	*field_ret = (struct tracepoint_field){
	    .offset = (uint32_t)field->offset,
	    .size = (uint32_t)field->size,
	    .is_signed = field->flags & TEP_FIELD_IS_SIGNED,
	};
	return true;
}

bool tracepoint_field(const struct tracepoint *tracepoint, const char *field, struct tracepoint_field *field_ret)
{
	struct tep_handle *parser = tep_alloc();
	struct tep_event *event;
	bool found = false;

	if (!parser)
		return false;
	event = parse(parser, tracepoint);
	if (event)
		found = read_field(tep_find_any_field(event, field), field_ret);
	tep_free(parser);
	return found;
}

size_t tracepoint_arguments(const struct tracepoint *tracepoint, struct tracepoint_field fields_ret[6])
{
	struct tep_handle *parser = tep_alloc();
	struct tep_format_field *field;
	struct tep_event *event;
	size_t count = 0;

	if (!parser)
		return 0;
	event = parse(parser, tracepoint);
	field = event ? tep_find_field(event, "__syscall_nr") : NULL;
	for (field = field ? field->next : NULL; field && count < 6; field = field->next) {
		if (!read_field(field, &fields_ret[count]))
			break;
		count++;
	}
	tep_free(parser);
	return count;
}
