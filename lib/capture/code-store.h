/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Generated code that is kept until recording ends: each piece compressed by itself, so that it can be replaced. Pure.
 */
#ifndef CAPTURE_CODE_STORE_H
#define CAPTURE_CODE_STORE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buffer.h"
#include "base/error.h"
#include "base/vector.h"

#define CODE_STORE_NONE SIZE_MAX
#define CODE_KEPT_BYTES_MAX (20u << 20) /* compressed: the recorder's memory */

struct kept_code {
	uint8_t *bytes;
	size_t size;
	size_t plain_size;
};

struct code_store {
	VECTOR(struct kept_code) items;
	VECTOR(size_t) unused; /* places among them */
	struct compressor *compressor;
	struct decompressor *decompressor;
	struct buffer scratch;
	size_t plain_bytes, plain_bytes_max;
	size_t kept_bytes, kept_bytes_max;
	bool full; /* something had no room */
	/* Remove something that is not about to be replaced; false: there is nothing to be removed. NULL: never. */
	bool (*make_room)(void *context);
	void *context;
};

struct mmt_error *code_store_init(struct code_store *store, size_t plain_bytes_max,
				  size_t kept_bytes_max) MMT_MUST_CHECK;
/* Accepts a zeroed value. */
void code_store_deinit(struct code_store *store);

/* In the place of what is at `*index`; CODE_STORE_NONE: at a new one. *kept_ret is false where there is no room for it:
 * then all stays as it was. */
struct mmt_error *code_store_put(struct code_store *store, size_t *index, const void *code, size_t size,
				 bool *kept_ret) MMT_MUST_CHECK;

/* Its place may be given again. CODE_STORE_NONE: nothing. */
void code_store_remove(struct code_store *store, size_t index);

/* Appended to `plain`. */
struct mmt_error *code_store_get(const struct code_store *store, size_t index, struct buffer *plain) MMT_MUST_CHECK;

#endif
