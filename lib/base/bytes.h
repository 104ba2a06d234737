/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The bounds-checked cursor over untrusted bytes. No other code in the library reads such bytes.
 *
 * The cursor is sticky: after the first read past the end every read returns zero, an empty string or an empty
 * sub-cursor, and bytes_finish() reports the first failure. A decoder can therefore read all fields in the order of the
 * format table and check once. Integers are little endian (files of the other byte order are refused when they are
 * opened). Reads need no alignment.
 */
#pragma once

#include <endian.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/errors.h"

struct bytes {
	const uint8_t *position;
	const uint8_t *end;
	const uint8_t *start;
	const char *failure;   /* NULL without a failure; else a static string that describes it */
	size_t failure_offset; /* from `start` */
};

/* Borrows the bytes. `data` may be NULL when `size` is 0. */
static inline struct bytes bytes_over(const void *data, size_t size)
{
	const uint8_t *start = data ? (const uint8_t *)data : (const uint8_t *)"";

	return (struct bytes){.position = start, .end = start + size, .start = start};
}

/* Mark a value just read as wrong; `what` is a static string such as "length 0". Later reads return zero. */
void bytes_fail(struct bytes *bytes, const char *what);

static inline size_t bytes_left(const struct bytes *bytes)
{
	return (size_t)(bytes->end - bytes->position);
}

/* Borrowed pointer to `size` bytes, or NULL past the end. */
static inline const void *bytes_take(struct bytes *bytes, size_t size)
{
	const uint8_t *taken = bytes->position;

	if (bytes->failure || size > bytes_left(bytes)) {
		bytes_fail(bytes, "ends too early");
		return NULL;
	}
	bytes->position += size;
	return taken;
}

static inline void bytes_skip(struct bytes *bytes, size_t size)
{
	(void)bytes_take(bytes, size);
}

/* An unsigned integer of at most 8 bytes. Inline because every event is decoded with it. */
static inline uint64_t bytes_number(struct bytes *bytes, size_t size)
{
	const void *taken = bytes_take(bytes, size);
	uint64_t value = 0;

	if (taken)
		memcpy(&value, taken, size);
	return le64toh(value);
}

static inline uint8_t bytes_u8(struct bytes *bytes)
{
	return (uint8_t)bytes_number(bytes, sizeof(uint8_t));
}

static inline uint16_t bytes_u16(struct bytes *bytes)
{
	return (uint16_t)bytes_number(bytes, sizeof(uint16_t));
}

static inline uint32_t bytes_u32(struct bytes *bytes)
{
	return (uint32_t)bytes_number(bytes, sizeof(uint32_t));
}

static inline uint64_t bytes_u64(struct bytes *bytes)
{
	return bytes_number(bytes, sizeof(uint64_t));
}

/* Variable-length integers of DWARF; bits beyond 64 are dropped. */
uint64_t bytes_uleb128(struct bytes *bytes);
int64_t bytes_sleb128(struct bytes *bytes);

/* Skip to a multiple of `alignment` (a power of two) from the cursor's start; at most to the end, without failing. */
void bytes_align(struct bytes *bytes, size_t alignment);

/* Returns a cursor over the next `size` bytes and skips them in this one. */
static inline struct bytes bytes_sub(struct bytes *bytes, uint64_t size)
{
	const void *taken = size <= bytes_left(bytes) ? bytes_take(bytes, (size_t)size) : NULL;

	if (taken)
		return bytes_over(taken, (size_t)size);
	bytes_fail(bytes, "ends too early");
	return bytes_over(NULL, 0);
}

/* Returns a borrowed NUL-terminated string. Without a NUL before the end, fails and returns "". */
const char *bytes_string(struct bytes *bytes);

/* Checks a count of elements that follow, of at least `element_size` bytes each. Fails, and returns 0, if they do not
 * fit into the remaining bytes, so that a count cannot claim more memory than a multiple of the input. */
static inline uint64_t bytes_count(struct bytes *bytes, uint64_t count, size_t element_size)
{
	if (bytes->failure)
		return 0;
	if (!element_size || count <= bytes_left(bytes) / element_size)
		return count;
	bytes_fail(bytes, "count larger than the data");
	return 0;
}

/* Reads the count as well. */
static inline uint64_t bytes_count_u32(struct bytes *bytes, size_t element_size)
{
	return bytes_count(bytes, bytes_u32(bytes), element_size);
}

/* Returns the count, or fails and returns 0 if it exceeds the limit. */
static inline uint64_t bytes_at_most(struct bytes *bytes, uint64_t count, uint64_t limit)
{
	if (count <= limit)
		return count;
	bytes_fail(bytes, "count beyond the limit");
	return 0;
}

static inline bool bytes_ok(const struct bytes *bytes)
{
	return !bytes->failure;
}

/* Returns NULL or MMT_ERROR_FORMAT "<what>: <failure> at byte N". Unread bytes are not a failure. */
struct mmt_error *bytes_finish(const struct bytes *bytes, const char *what) MMT_MUST_CHECK;

/* A growable byte buffer with a mandatory maximum; writes little endian. */

struct buffer {
	uint8_t *data;
	size_t size;
	size_t capacity;
	size_t maximum;
	struct mmt_error *error; /* first failure, owned until buffer_finish() returns it; later writes do nothing */
};

void buffer_init(struct buffer *buffer, size_t maximum);
/* Accepts a zeroed buffer. */
void buffer_deinit(struct buffer *buffer);

/* For CLEANUP(buffer). */
static inline void cleanup_buffer(struct buffer *buffer)
{
	buffer_deinit(buffer);
}

/* Adds `size` uninitialised bytes at the end and returns them; NULL after a failure. */
void *buffer_extend(struct buffer *buffer, size_t size);

void buffer_put(struct buffer *buffer, const void *data, size_t size);
void buffer_put_u8(struct buffer *buffer, uint8_t value);
void buffer_put_u16(struct buffer *buffer, uint16_t value);
void buffer_put_u32(struct buffer *buffer, uint32_t value);
void buffer_put_u64(struct buffer *buffer, uint64_t value);
/* Includes the NUL. */
void buffer_put_string(struct buffer *buffer, const char *text);
/* Pads with zero bytes to a multiple of `alignment`, a power of two. */
void buffer_align(struct buffer *buffer, size_t alignment);

/* Overwrite bytes already written with a number of this size; the field must lie within the buffer's. */
void buffer_patch(struct buffer *buffer, size_t offset, uint64_t value, size_t size);

/* Discard the content; keep the memory and an earlier failure. */
void buffer_clear(struct buffer *buffer);

/* Returns NULL or the first failure (too large, out of memory), and clears the failure. */
struct mmt_error *buffer_finish(struct buffer *buffer) MMT_MUST_CHECK;
