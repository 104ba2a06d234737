// SPDX-License-Identifier: LGPL-2.1-or-later
#include "trace/resolved-code.h"

#include <string.h>

#include "trace/resolved-stacks.h"

#define CODE_BYTES_MIN 28
#define LINE_BYTES 12
#define CODE_IS_RETURN_ADDRESS 1u
#define CODE_IS_COPY 2u
#define LIMIT_CODES (1u << 28)
/* Eight instructions before the site and eight behind it: of 15 bytes at most, each perhaps of another line. */
#define LIMIT_INSTRUCTIONS 17
#define LIMIT_SITE_BYTES (LIMIT_INSTRUCTIONS * 15)

void resolved_codes_deinit(struct resolved_codes *codes)
{
	vector_deinit(&codes->items);
	vector_deinit(&codes->lines);
}

struct mmt_error *resolved_code_put(struct intern *table, const struct resolved_code *code,
				    const struct resolved_line *lines, uint32_t *number_ret)
{
	struct mmt_error *error;
	struct buffer buffer;

	buffer_init(&buffer, CODE_BYTES_MIN + LIMIT_SITE_BYTES + LIMIT_INSTRUCTIONS * LINE_BYTES);
	buffer_put_u64(&buffer, code->address);
	buffer_put_u64(&buffer, code->site);
	buffer_put_u32(&buffer,
		       (code->is_return_address ? CODE_IS_RETURN_ADDRESS : 0) | (code->is_copy ? CODE_IS_COPY : 0));
	buffer_put_u32(&buffer, code->size);
	buffer_put(&buffer, code->bytes, code->size);
	buffer_put_u32(&buffer, code->line_count);
	for (uint32_t i = 0; i < code->line_count; i++) {
		buffer_put_u32(&buffer, lines[i].offset);
		buffer_put_u32(&buffer, lines[i].source_file);
		buffer_put_u32(&buffer, lines[i].source_line);
	}
	error = buffer_finish(&buffer);
	*number_ret = error ? INTERN_NONE : intern_put(table, buffer.data, buffer.size);
	buffer_deinit(&buffer);
	return !error && *number_ret == INTERN_NONE ? &error_no_memory : error;
}

void resolved_codes_encode(const struct intern *table, struct buffer *buffer)
{
	buffer_put_u32(buffer, (uint32_t)table->count);
	for (uint32_t i = 0; i < table->count; i++) {
		size_t size;
		const void *code = intern_get(table, i, &size);

		buffer_put(buffer, code, size);
	}
}

static struct mmt_error *decode_lines(struct bytes *bytes, size_t text_count, struct resolved_codes *codes,
				      struct resolved_code *code)
{
	uint64_t count = bytes_u32(bytes);

	if (count > LIMIT_INSTRUCTIONS)
		bytes_fail(bytes, "more lines of code than one frame has");
	count = bytes_count(bytes, count, LINE_BYTES, LIMIT_INSTRUCTIONS);
	code->first_line = (uint32_t)codes->lines.count;
	code->line_count = (uint32_t)count;
	for (uint64_t i = 0; i < count && bytes_ok(bytes); i++) {
		struct resolved_line line = {.offset = bytes_u32(bytes)};

		line.source_file = bytes_u32(bytes);
		line.source_line = bytes_u32(bytes);
		if (line.source_file != RESOLVED_NO_TEXT && line.source_file >= text_count)
			bytes_fail(bytes, "line of no text");
		if (line.offset >= code->size)
			bytes_fail(bytes, "line beyond its code");
		if (!vector_push(&codes->lines, line))
			return &error_no_memory;
	}
	return NULL;
}

struct mmt_error *resolved_codes_decode(struct bytes *bytes, size_t text_count, struct resolved_codes *codes)
{
	uint64_t count = bytes_u32(bytes);

	count = bytes_count(bytes, count, CODE_BYTES_MIN, LIMIT_CODES);
	for (uint64_t i = 0; i < count && bytes_ok(bytes); i++) {
		struct resolved_code code = {.address = bytes_u64(bytes)};
		struct mmt_error *error;
		uint32_t flags;

		code.site = bytes_u64(bytes);
		flags = bytes_u32(bytes);
		code.is_return_address = flags & CODE_IS_RETURN_ADDRESS;
		code.is_copy = flags & CODE_IS_COPY;
		code.size = bytes_u32(bytes);
		if (code.size > LIMIT_SITE_BYTES)
			bytes_fail(bytes, "more code than one frame has");
		code.bytes = bytes_take(bytes, code.size);
		error = decode_lines(bytes, text_count, codes, &code);
		if (error)
			return error;
		if (!vector_push(&codes->items, code))
			return &error_no_memory;
	}
	return NULL;
}

const struct resolved_line *resolved_codes_line(const struct resolved_codes *codes, const struct resolved_code *code,
						uint64_t address)
{
	const struct resolved_line *line = NULL;

	for (uint32_t i = 0; i < code->line_count; i++) {
		const struct resolved_line *next = &codes->lines.items[code->first_line + i];

		if (next->offset <= address - code->address)
			line = next;
	}
	return line;
}
