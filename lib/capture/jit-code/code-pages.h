/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Pages of JIT code that were copied, with their changes, in a compressed store. */
#ifndef CAPTURE_JIT_CODE_CODE_PAGES_H
#define CAPTURE_JIT_CODE_CODE_PAGES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buffer.h"
#include "base/errors.h"
#include "base/map.h"
#include "base/vector.h"
#include "trace/sections/code-copies.h"

/* JIT code that is kept until recording ends: each piece compressed by itself, so that it can be replaced. Pure.
 */

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

/*
 * The pages of JIT code of one program: their bytes as they were last seen, and when each is to be read again. A
 * page that is being written is read each time, one that has stayed as it was ever more rarely. Pure.
 *
 * Whether a page has changed is told by a checksum of 64 bits, not by its bytes, which are kept compressed: one change
 * of 2^64 is not seen, and the page is as it was before until it changes again.
 */

#define CODE_PAGE_AGAIN_NS 50000000ULL	    /* after a page has changed */
#define CODE_PAGE_AGAIN_NS_MAX 800000000ULL /* twice as long each time that it has not */
#define CODE_PAGE_NEVER UINT64_MAX
#define CODE_PAGES_MAX 65536  /* of a program; further ones are never read */
#define CODE_CHANGES_MAX 4096 /* of a program; what further ones replace is not kept */
#define CODE_CHANGE_BYTES 32  /* fewer of a page at once are a call or a number that is put in */

struct code_page {
	uint64_t address;
	uint64_t checksum; /* of what was last seen in it, unless that was blank */
	size_t kept;	   /* in the store; CODE_STORE_NONE: nothing was written into it so far */
	uint64_t due_ns, again_ns;
};

struct code_pages {
	size_t page_bytes;
	VECTOR(struct code_page) items; /* in the order of coming */
	struct map index_of_address;
	VECTOR(struct code_change) changes; /* in the order of coming */
};

/* Accepts a zeroed value. */
void code_pages_deinit(struct code_pages *pages);

/* Nothing of them is kept any more. */
void code_pages_give_up(struct code_pages *pages, struct code_store *store);

/* No page of them is read any more: only what is kept stays. */
void code_pages_end(struct code_pages *pages);

/* The first pages in START to END, `size_max` bytes at most, that are to be read at `now_ns`, as they lie one behind
 * the other; their bytes, 0: none. */
uint64_t code_pages_due(const struct code_pages *pages, uint64_t start, uint64_t end, uint64_t size_max,
			uint64_t now_ns, uint64_t *start_ret);

/*
 * What was read of a page at `now_ns`, into `store`: in the place of what was there before, unless it is blank now;
 * that becomes a change, whose offset is its place in the store, where it was other code. What a full store has no room
 * for is left out. Errors: no memory.
 */
struct mmt_error *code_pages_put(struct code_pages *pages, struct code_store *store, uint64_t address,
				 const uint8_t *page, uint64_t now_ns) MMT_MUST_CHECK;

#endif
