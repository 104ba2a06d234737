// SPDX-License-Identifier: LGPL-2.1-or-later
#include "base/bytes.h"

#include "base/vector.h"

#define BUFFER_BYTES_LEAST 256

void bytes_fail(struct bytes *bytes, const char *what)
{
	if (!bytes->failure) {
		bytes->failure = what;
		bytes->failure_offset = (size_t)(bytes->position - bytes->start);
	}
	bytes->position = bytes->end;
}

void bytes_align(struct bytes *bytes, size_t alignment)
{
	size_t offset = (size_t)(bytes->position - bytes->start);
	size_t padding = -offset & (alignment - 1);
	size_t left = bytes_left(bytes);

	bytes->position += padding < left ? padding : left;
}

#define LEB128_BYTES_MAX 32 /* more than any padded number has */

/* The value and, in *shift_ret, how many bits it has; *last_ret: its last byte. */
static uint64_t read_leb128(struct bytes *bytes, unsigned *shift_ret, uint8_t *last_ret)
{
	uint64_t value = 0;
	unsigned shift = 0, count = 0;
	uint8_t byte;

	do {
		if (count++ == LEB128_BYTES_MAX)
			bytes_fail(bytes, "number too long");
		byte = bytes_u8(bytes);
		if (shift < 64)
			value |= (uint64_t)(byte & 0x7f) << shift;
		shift += shift < 64 ? 7 : 0;
	} while (byte & 0x80);
	*shift_ret = shift;
	*last_ret = byte;
	return bytes->failure ? 0 : value;
}

uint64_t bytes_uleb128(struct bytes *bytes)
{
	unsigned shift;
	uint8_t last;

	return read_leb128(bytes, &shift, &last);
}

int64_t bytes_sleb128(struct bytes *bytes)
{
	unsigned shift;
	uint8_t last;
	uint64_t value = read_leb128(bytes, &shift, &last);

	if (last & 0x40 && shift < 64)
		value |= ~0ULL << shift;
	return (int64_t)value;
}

const char *bytes_string(struct bytes *bytes)
{
	const uint8_t *nul = bytes->failure ? NULL : memchr(bytes->position, 0, bytes_left(bytes));

	if (!nul) {
		bytes_fail(bytes, "unterminated string");
		return "";
	}
	return bytes_take(bytes, (size_t)(nul - bytes->position) + 1);
}

struct mmt_error *bytes_finish(const struct bytes *bytes, const char *what)
{
	if (!bytes->failure)
		return NULL;
	return error_create(MMT_ERROR_FORMAT, "%s: %s at byte %zu", what, bytes->failure, bytes->failure_offset);
}

void buffer_init(struct buffer *buffer, size_t maximum)
{
	*buffer = (struct buffer){.maximum = maximum};
}

void buffer_deinit(struct buffer *buffer)
{
	free(buffer->data);
	mmt_error_destroy(buffer->error);
	*buffer = (struct buffer){0};
}

void *buffer_extend(struct buffer *buffer, size_t size)
{
	size_t needed;
	void *room;

	if (buffer->error)
		return NULL;
	if (size > buffer->maximum - buffer->size) {
		buffer->error = error_create(MMT_ERROR_INVALID, "more than %zu bytes", buffer->maximum);
		return NULL;
	}
	needed = buffer->size + size < BUFFER_BYTES_LEAST ? BUFFER_BYTES_LEAST : buffer->size + size;
	if (!vector_reserve_bytes((void **)&buffer->data, &buffer->capacity, needed, 1)) {
		buffer->error = &error_no_memory;
		return NULL;
	}
	room = buffer->data + buffer->size;
	buffer->size += size;
	return room;
}

void buffer_put(struct buffer *buffer, const void *data, size_t size)
{
	void *room = buffer_extend(buffer, size);

	if (room && size)
		memcpy(room, data, size);
}

void buffer_put_u8(struct buffer *buffer, uint8_t value)
{
	buffer_put(buffer, &value, sizeof(value));
}

void buffer_put_u16(struct buffer *buffer, uint16_t value)
{
	value = htole16(value);
	buffer_put(buffer, &value, sizeof(value));
}

void buffer_put_u32(struct buffer *buffer, uint32_t value)
{
	value = htole32(value);
	buffer_put(buffer, &value, sizeof(value));
}

void buffer_put_u64(struct buffer *buffer, uint64_t value)
{
	value = htole64(value);
	buffer_put(buffer, &value, sizeof(value));
}

void buffer_put_string(struct buffer *buffer, const char *text)
{
	buffer_put(buffer, text, strlen(text) + 1);
}

void buffer_align(struct buffer *buffer, size_t alignment)
{
	size_t padding = -buffer->size & (alignment - 1);
	void *room = buffer_extend(buffer, padding);

	if (room)
		memset(room, 0, padding);
}

void buffer_patch(struct buffer *buffer, size_t offset, uint64_t value, size_t size)
{
	value = htole64(value);
	if (!buffer->error)
		memcpy(buffer->data + offset, &value, size);
}

void buffer_clear(struct buffer *buffer)
{
	buffer->size = 0;
}

struct mmt_error *buffer_finish(struct buffer *buffer)
{
	struct mmt_error *error = buffer->error;

	buffer->error = NULL;
	return error;
}
