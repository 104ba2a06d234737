/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Where a process has JIT code, and compressed copies of its code pages and of their changes. */
#ifndef CAPTURE_JIT_CODE_CODE_PAGES_H
#define CAPTURE_JIT_CODE_CODE_PAGES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/bytes.h"
#include "base/errors.h"
#include "base/map.h"
#include "base/vector.h"
#include "trace/sections/copies.h"

/* A store of JIT code, kept until recording ends. Each piece is compressed separately, so that it can be replaced.
 * Pure. */

#define CODE_STORE_NONE SIZE_MAX

struct kept_code {
	uint8_t *bytes;
	size_t size;
	size_t plain_size;
};

struct code_store {
	VECTOR(struct kept_code) items;
	VECTOR(size_t) unused; /* indexes of free slots in `items` */
	struct compressor *compressor;
	struct decompressor *decompressor;
	struct buffer scratch;
	size_t plain_bytes, plain_bytes_max;
	size_t kept_bytes, kept_bytes_max;
	bool full; /* a piece was dropped because the store was full */
	/* Frees space for other pieces. Returns false if nothing can be freed. NULL: no callback. */
	bool (*make_room)(void *context);
	void *context;
};

struct mmt_error *code_store_init(struct code_store *store, size_t plain_bytes_max,
				  size_t kept_bytes_max) MMT_MUST_CHECK;

/* Accepts a zeroed value. */
void code_store_deinit(struct code_store *store);

/* Appends the piece to `plain`. */
struct mmt_error *code_store_get(const struct code_store *store, size_t index, struct buffer *plain) MMT_MUST_CHECK;

/*
 * The pages of JIT code of one program: the latest content of each page, and when to read it again. A page that is
 * being written is read in every pass, an unchanged page less and less often. Pure.
 *
 * A 64-bit checksum detects changes, because the content is stored compressed. It misses one change in 2^64; the stored
 * content is then out of date until the page changes again.
 */

#define CODE_PAGE_AGAIN_NS 50000000ULL	    /* when to read a page again after it has changed */
#define CODE_PAGE_AGAIN_NS_MAX 800000000ULL /* the interval doubles up to this while the page does not change */
#define CODE_PAGE_NEVER UINT64_MAX
#define CODE_CHANGE_BYTES 32 /* changes of fewer bytes than this are patched call targets or constants */

struct code_page {
	uint64_t address;
	uint64_t checksum; /* of the latest content other than a blank page */
	size_t kept;	   /* index in the store; CODE_STORE_NONE: the page has always been blank */
	uint64_t due_ns, again_ns;
};

struct code_pages {
	size_t page_bytes;
	VECTOR(struct code_page) items; /* in order of addition */
	struct map index_of_address;
	VECTOR(struct code_change) changes; /* in order of addition */
};

/* Accepts a zeroed value. */
void code_pages_deinit(struct code_pages *pages);

/* Removes everything stored of these pages. */
void code_pages_discard(struct code_pages *pages, struct code_store *store);

/* Stops reading these pages. What is stored of them stays. */
void code_pages_end(struct code_pages *pages);

/* Finds the first run of adjacent pages from START to END that are due at `now_ns`, at most `size_max` bytes. Returns
 * its size; 0: no page is due. */
uint64_t code_pages_due(const struct code_pages *pages, uint64_t start, uint64_t end, uint64_t size_max,
			uint64_t now_ns, uint64_t *start_ret);

/*
 * Stores the content of a page read at `now_ns`. A blank page does not replace stored content. Old content that was
 * other code is kept as a change, whose offset is its index in the store. If the store is full, the content is dropped.
 * Error: out of memory.
 */
struct mmt_error *code_pages_put(struct code_pages *pages, struct code_store *store, uint64_t address,
				 const uint8_t *page, uint64_t now_ns) MMT_MUST_CHECK;

/*
 * The ranges of executable memory of a process that belong to no module. Pure.
 *
 * The ranges are stored in blocks of bounded size, so that an insertion moves few of them. Two adjacent blocks with few
 * ranges are merged, so that there are never many more blocks than needed.
 */

#define CODE_RANGES_BLOCK 128 /* ranges in a block; two adjacent blocks together have more than half of this */

struct code_range {
	uint64_t start, end;
	uint64_t noted_ns; /* when it was seen */
};

struct code_ranges_block {
	VECTOR(struct code_range) items;
};

struct code_ranges {
	VECTOR(struct code_ranges_block)
	blocks;	      /* no block is empty; the ranges are ascending and disjoint across all blocks */
	size_t count; /* of ranges; at most LIMIT_CODE_RANGES */
	bool cut;     /* ranges were dropped because there were LIMIT_CODE_RANGES of them */
};

/* Accepts a zeroed value. */
void code_ranges_deinit(struct code_ranges *ranges);

/* Adds a range. Calls need not be in order of time: a range replaces overlapping ranges that were noted for an earlier
 * time. False: out of memory. */
bool code_ranges_add(struct code_ranges *ranges, uint64_t start, uint64_t end, uint64_t noted_ns);
/* Removes ranges, or parts of them, because something else was mapped there at that time. */
bool code_ranges_remove(struct code_ranges *ranges, uint64_t start, uint64_t end, uint64_t time_ns);
/* Removes all ranges. The ranges added next are the complete list. */
void code_ranges_clear(struct code_ranges *ranges);
/* Returns the first range that ends above `address`, or NULL. */
const struct code_range *code_ranges_from(const struct code_ranges *ranges, uint64_t address);
/* Removes the ranges that were noted up to this time. */
void code_ranges_forget(struct code_ranges *ranges, uint64_t until_ns);

#endif
