/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Where programs have JIT code, and the copies of its pages with their changes. */
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

/* Copied pages of JIT code with their changes, in a compressed store. */

/* JIT code that is kept until recording ends. Each piece is compressed separately, so that it can be replaced. Pure. */

#define CODE_STORE_NONE SIZE_MAX
#define CODE_KEPT_BYTES_MAX (20u << 20) /* compressed: the recorder's memory */

struct kept_code {
	uint8_t *bytes;
	size_t size;
	size_t plain_size;
};

struct code_store {
	VECTOR(struct kept_code) items;
	VECTOR(size_t) unused; /* free slots among them */
	struct compressor *compressor;
	struct decompressor *decompressor;
	struct buffer scratch;
	size_t plain_bytes, plain_bytes_max;
	size_t kept_bytes, kept_bytes_max;
	bool full; /* a piece was dropped because the store was full */
	/* Frees space for other pieces; false: nothing can be freed. NULL: no such callback. */
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
 * The pages of JIT code of one program: their latest content, and when to read each page next. A page that is being
 * written is read at every pass, an unchanged page less and less often. Pure.
 *
 * A 64-bit checksum detects changes, because the content is kept compressed. It misses one change in 2^64; the page
 * then keeps its old content until it changes again.
 */

#define CODE_PAGE_AGAIN_NS 50000000ULL	    /* after a page has changed */
#define CODE_PAGE_AGAIN_NS_MAX 800000000ULL /* doubles each time that the page is unchanged */
#define CODE_PAGE_NEVER UINT64_MAX
#define CODE_PAGES_MAX 65536  /* of a program; others are never read */
#define CODE_CHANGES_MAX 4096 /* of a program; code replaced after that is not kept */
#define CODE_CHANGE_BYTES 32  /* smaller changes of a page are call targets or constants that are patched in */

struct code_page {
	uint64_t address;
	uint64_t checksum; /* of the latest content, unless the page was blank */
	size_t kept;	   /* index in the store; CODE_STORE_NONE: the page has been blank so far */
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

/* Drop everything kept of these pages. */
void code_pages_give_up(struct code_pages *pages, struct code_store *store);

/* Stop reading these pages; keep what is stored. */
void code_pages_end(struct code_pages *pages);

/* The first adjacent pages in START to END, `size_max` bytes at most, that are due at `now_ns`; returns their size, 0:
 * none. */
uint64_t code_pages_due(const struct code_pages *pages, uint64_t start, uint64_t end, uint64_t size_max,
			uint64_t now_ns, uint64_t *start_ret);

/*
 * Stores the content of a page read at `now_ns`. It replaces the previous content unless the page is blank now.
 * Previous content that was other code becomes a change, whose offset is its index in the store. Content is dropped if
 * the store is full. Errors: out of memory.
 */
struct mmt_error *code_pages_put(struct code_pages *pages, struct code_store *store, uint64_t address,
				 const uint8_t *page, uint64_t now_ns) MMT_MUST_CHECK;

/*
 * Where a process has executable memory that belongs to no module: ranges that come and go. Pure.
 *
 * The ranges are stored in blocks of bounded size, so that an insertion moves few of them. Two neighbouring blocks with
 * few ranges are merged, so there are never many more blocks than needed.
 */

#define CODE_RANGES_MAX 16384
#define CODE_RANGES_BLOCK 128 /* most ranges in a block; two neighbours together have more than half as many */

struct code_range {
	uint64_t start, end;
	uint64_t noted_ns; /* when it was seen */
};

struct code_ranges_block {
	VECTOR(struct code_range) items;
};

struct code_ranges {
	VECTOR(struct code_ranges_block) blocks; /* none empty; all their ranges are ascending, disjoint */
	size_t count;				 /* number of ranges: at most CODE_RANGES_MAX */
	bool cut;				 /* ranges were dropped because of the limit */
};

/* Accepts a zeroed value. */
void code_ranges_deinit(struct code_ranges *ranges);

/* Adds a range. Ranges may be noted in any order of time: a range replaces those noted for an earlier time. False: out
 * of memory. */
bool code_ranges_add(struct code_ranges *ranges, uint64_t start, uint64_t end, uint64_t noted_ns);
/* Something else was mapped there at that time. */
bool code_ranges_remove(struct code_ranges *ranges, uint64_t start, uint64_t end, uint64_t time_ns);
/* The ranges added next are the complete list. */
void code_ranges_clear(struct code_ranges *ranges);
/* The first range that ends above `address`; NULL: none. */
const struct code_range *code_ranges_from(const struct code_ranges *ranges, uint64_t address);
/* Ranges noted up to this time are gone. */
void code_ranges_forget(struct code_ranges *ranges, uint64_t until_ns);

#endif
