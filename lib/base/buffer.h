/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A growable byte buffer with a mandatory maximum; writes little endian. */
#ifndef BASE_BUFFER_H
#define BASE_BUFFER_H

#include <stddef.h>
#include <stdint.h>

#include "base/errors.h"

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

/* Overwrite bytes already written; the field must lie within `size`. */
void buffer_patch_u32(struct buffer *buffer, size_t offset, uint32_t value);
void buffer_patch_u16(struct buffer *buffer, size_t offset, uint16_t value);

/* Discard the content; keep the memory and an earlier failure. */
void buffer_clear(struct buffer *buffer);

/* Returns NULL or the first failure (too large, out of memory), and clears the failure. */
struct mmt_error *buffer_finish(struct buffer *buffer) MMT_MUST_CHECK;

#endif
