// SPDX-License-Identifier: LGPL-2.1-or-later
#include "base/buffer.h"

#include <endian.h>
#include <stdlib.h>
#include <string.h>

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

static struct mmt_error *grow(struct buffer *buffer, size_t size)
{
	size_t capacity = buffer->capacity ? buffer->capacity : 256;
	uint8_t *data;

	while (capacity - buffer->size < size)
		capacity *= 2;
	data = realloc(buffer->data, capacity);
	if (!data)
		return &error_no_memory;
	buffer->data = data;
	buffer->capacity = capacity;
	return NULL;
}

void *buffer_extend(struct buffer *buffer, size_t size)
{
	void *room;

	if (buffer->error)
		return NULL;
	if (size > buffer->maximum - buffer->size) {
		buffer->error = error_create(MMT_ERROR_INVALID, "more than %zu bytes", buffer->maximum);
		return NULL;
	}
	if (size > buffer->capacity - buffer->size || !buffer->data) {
		buffer->error = grow(buffer, size);
		if (buffer->error)
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

void buffer_patch_u32(struct buffer *buffer, size_t offset, uint32_t value)
{
	value = htole32(value);
	if (!buffer->error)
		memcpy(buffer->data + offset, &value, sizeof(value));
}

void buffer_patch_u16(struct buffer *buffer, size_t offset, uint16_t value)
{
	value = htole16(value);
	if (!buffer->error)
		memcpy(buffer->data + offset, &value, sizeof(value));
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
