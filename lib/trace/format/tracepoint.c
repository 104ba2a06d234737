// SPDX-License-Identifier: LGPL-2.1-or-later
#include "trace/format/tracepoint.h"

#include "base/limits.h"

/* Magic bytes of perf's TRACING_DATA, a format of trace-cmd. */
#define MAGIC "\027\010\104tracing"
#define MAGIC_BYTES 10
#define VERSION "0.6"
#define LITTLE_ENDIAN_MARK 0
#define LONG_BYTES 8
#define NAME_MARK "name: " /* "name: sys_exit_mmap" and "ID: 101" are in each format text */
#define ID_MARK "ID: "
#define FIELD_MARK "\tfield:"
#define FIELD_LINE_BYTES 512 /* more than twice the kernel's longest line */

void tracepoints_deinit(struct tracepoints *tracepoints)
{
	array_each(item, tracepoints->items.items, tracepoints->items.count) {
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

void tracepoints_encode(const struct tracepoints *tracepoints, uint32_t page_bytes, struct buffer *buffer)
{
	size_t count = tracepoints->items.count, counted_offset;
	uint32_t systems = 0;

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
	/* Each system once, with all of its formats. */
	counted_offset = buffer->size;
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
		buffer_patch(buffer, members_offset, members, sizeof(members));
		systems++;
	}
	buffer_patch(buffer, counted_offset, systems, sizeof(systems));
	buffer_put_u32(buffer, 0); /* kallsyms */
	buffer_put_u32(buffer, 0); /* printk formats */
	buffer_put_u64(buffer, 0); /* saved command lines */
}

static char *copy_text(struct bytes *bytes, uint64_t size)
{
	struct bytes text = bytes_sub(bytes, bytes_count(bytes, size, 1));

	return strndup((const char *)text.start, bytes_left(&text));
}

static struct mmt_error *decode_system(struct bytes *bytes, struct tracepoints *tracepoints)
{
	const char *system = bytes_string(bytes), *name, *id;
	uint64_t count = bytes_count_u32(bytes, sizeof(uint64_t));

	for (uint64_t i = 0; i < count && bytes_ok(bytes); i++) {
		struct tracepoint *item = vector_append(&tracepoints->items);

		if (!item)
			return &error_no_memory;
		item->system = strdup(system);
		item->format = copy_text(bytes, bytes_u64(bytes));
		if (!item->system || !item->format)
			return &error_no_memory;
		if (!bytes_ok(bytes))
			break;
		name = strstr(item->format, NAME_MARK);
		id = strstr(item->format, ID_MARK);
		if (!name || !id) {
			bytes_fail(bytes, "format text without name and ID");
			break;
		}
		name += strlen(NAME_MARK);
		item->name = strndup(name, strcspn(name, "\n"));
		if (!item->name)
			return &error_no_memory;
		item->id = (uint32_t)strtoul(id + strlen(ID_MARK), NULL, 10);
	}
	return NULL;
}

static void expect(struct bytes *bytes, const char *word, const char *failure)
{
	if (strcmp(bytes_string(bytes), word) != 0)
		bytes_fail(bytes, failure);
}

struct mmt_error *tracepoints_decode(struct bytes *bytes, struct tracepoints *tracepoints_ret)
{
	const void *magic = bytes_take(bytes, MAGIC_BYTES);
	struct tracepoints tracepoints = {0};
	struct mmt_error *error = NULL;
	uint64_t count;

	if (magic && memcmp(magic, MAGIC, MAGIC_BYTES) != 0)
		bytes_fail(bytes, "wrong magic");
	bytes_string(bytes); /* version */
	if (bytes_u8(bytes) != LITTLE_ENDIAN_MARK)
		bytes_fail(bytes, "other byte order");
	if (bytes_u8(bytes) != LONG_BYTES)
		bytes_fail(bytes, "kernel that is not 64-bit");
	bytes_u32(bytes); /* page size */
	expect(bytes, "header_page", "no header_page");
	tracepoints.header_page = copy_text(bytes, bytes_u64(bytes));
	expect(bytes, "header_event", "no header_event");
	tracepoints.header_event = copy_text(bytes, bytes_u64(bytes));
	if (!tracepoints.header_page || !tracepoints.header_event)
		error = &error_no_memory;
	count = bytes_count_u32(bytes, sizeof(uint64_t));
	for (uint64_t i = 0; i < count; i++)
		bytes_sub(bytes, bytes_u64(bytes));
	count = bytes_count_u32(bytes, 1 + sizeof(uint32_t));
	for (uint64_t i = 0; i < count && bytes_ok(bytes) && !error; i++)
		error = decode_system(bytes, &tracepoints);
	error = error ?: bytes_finish(bytes, "tracepoint formats");
	if (error)
		tracepoints_deinit(&tracepoints);
	*tracepoints_ret = tracepoints;
	return error;
}

const struct tracepoint *tracepoints_find(const struct tracepoints *tracepoints, uint32_t id)
{
	return array_find(tracepoint, tracepoints->items.items, tracepoints->items.count, tracepoint->id == id);
}

/* "\tfield:unsigned long addr;\toffset:16;\tsize:8;\tsigned:0;" is the only form that the kernel writes. Not parsed
 * with libtraceevent, which crashes on damaged texts. `line` has no newline; `name_size_ret` counts from `name_ret`. */
static bool read_field_line(const char *line, size_t size, const char **name_ret, size_t *name_size_ret,
			    struct tracepoint_field *field_ret)
{
	char copy[FIELD_LINE_BYTES];
	unsigned offset, bytes, is_signed;
	const char *end, *name;

	if (size >= sizeof(copy))
		return false;
	memcpy(copy, line, size);
	copy[size] = '\0';
	if (strncmp(copy, FIELD_MARK, strlen(FIELD_MARK)) != 0)
		return false;
	end = strchr(copy, ';');
	if (!end || sscanf(end, ";\toffset:%5u;\tsize:%5u;\tsigned:%1u;", &offset, &bytes, &is_signed) != 3)
		return false;
	if (bytes == 0 || bytes > LIMIT_FIELD_BYTES || offset > LIMIT_FIELD_BYTES)
		return false;
	for (const char *bracket = end; bracket > copy; bracket--) {
		if (*bracket == '[')
			end = bracket; /* an array: its name ends before the number of elements */
	}
	for (name = end; name > copy && name[-1] != ' ' && name[-1] != '*';)
		name--;
	*name_ret = line + (name - copy);
	*name_size_ret = (size_t)(end - name);
	*field_ret = (struct tracepoint_field){.offset = offset, .size = bytes, .is_signed = is_signed};
	return *name_size_ret > 0;
}

/* Advance *position_ret behind the next field; false: there are no more fields. */
static bool next_field(const char **position, const char **name_ret, size_t *name_size_ret,
		       struct tracepoint_field *field_ret)
{
	while (**position) {
		const char *line = *position;
		size_t size = strcspn(line, "\n");

		*position = line + size + (line[size] == '\n');
		if (read_field_line(line, size, name_ret, name_size_ret, field_ret))
			return true;
	}
	return false;
}

static bool is_name(const char *name, size_t size, const char *wanted)
{
	return strlen(wanted) == size && memcmp(name, wanted, size) == 0;
}

bool tracepoint_field(const struct tracepoint *tracepoint, const char *field, struct tracepoint_field *field_ret)
{
	const char *position = tracepoint->format, *name;
	size_t size;

	while (next_field(&position, &name, &size, field_ret)) {
		if (is_name(name, size, field))
			return true;
	}
	return false;
}

size_t tracepoint_arguments(const struct tracepoint *tracepoint, struct tracepoint_field fields_ret[6])
{
	const char *position = tracepoint->format, *name;
	struct tracepoint_field found;
	bool behind = false;
	size_t size, count = 0;

	while (count < 6 && next_field(&position, &name, &size, &found)) {
		if (behind)
			fields_ret[count++] = found;
		else
			behind = is_name(name, size, "__syscall_nr");
	}
	return count;
}
