/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The pages of JIT code of one program: compressed copies of their latest bytes, and when to read them again. Pure. */
#ifndef CAPTURE_JIT_CODE_JIT_PAGES_H
#define CAPTURE_JIT_CODE_JIT_PAGES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/bytes.h"
#include "base/errors.h"
#include "base/map.h"
#include "base/vector.h"
#include "trace/sections/jit-code.h"

/* What the copies of all programs share. */
struct jit_store {
	struct compressor *compressor;
	struct decompressor *decompressor;
	struct buffer scratch;
	size_t plain_bytes, plain_bytes_max;
	size_t stored_bytes, stored_bytes_max;
	bool full; /* a page was dropped because the store was full */
	/* Frees space for other pages. Returns false if nothing can be freed. NULL: no callback. */
	bool (*make_room)(void *context);
	void *context;
};

struct mmt_error *jit_store_init(struct jit_store *store, size_t plain_bytes_max,
				 size_t stored_bytes_max) MMT_MUST_CHECK;

/* Accepts a zeroed value. */
void jit_store_deinit(struct jit_store *store);

/*
 * A page that is being written is read in every pass, an unchanged page less and less often. A 64-bit checksum detects
 * changes. It misses one change in 2^64; the stored bytes are then out of date until the page changes again.
 */

#define JIT_PAGE_AGAIN_NS 50000000ULL	   /* when to read a page again after it has changed */
#define JIT_PAGE_AGAIN_NS_MAX 800000000ULL /* the interval doubles up to this while the page does not change */
#define JIT_PAGE_NEVER UINT64_MAX
#define JIT_REPLACED_BYTES_MIN 32 /* changes of fewer bytes than this are patched call targets or constants */

struct jit_page {
	uint64_t address;
	uint64_t checksum; /* of the stored content */
	uint8_t *bytes; /* compressed; NULL: not stored, because the page has always been blank or there is no room */
	size_t size;
	uint64_t due_ns, again_ns;
	struct jit_code_change replaced; /* all code that other code replaced; size 0: none */
};

struct jit_pages {
	size_t page_bytes;
	VECTOR(struct jit_page) items; /* in order of addition */
	struct map index_of_address;
};

/* Removes everything stored of these pages. Accepts a zeroed value. */
void jit_pages_discard(struct jit_pages *pages, struct jit_store *store);

/* Stops reading these pages. What is stored of them stays. */
void jit_pages_end(struct jit_pages *pages);

/* Finds the first run of adjacent pages from START to END that are due at `now_ns`, at most `size_max` bytes. Returns
 * its size; 0: no page is due. */
uint64_t jit_pages_due(const struct jit_pages *pages, uint64_t start, uint64_t end, uint64_t size_max, uint64_t now_ns,
		       uint64_t *start_ret);

/* Stores the content of a page read at `now_ns`. A blank page does not replace stored content. If the store is full,
 * the content is dropped, and the stored code that it replaced counts as replaced for ever. Error: out of memory. */
struct mmt_error *jit_pages_put(struct jit_pages *pages, struct jit_store *store, uint64_t address, const uint8_t *page,
				uint64_t now_ns) MMT_MUST_CHECK;

/* Appends the stored bytes of the page to `plain`. */
struct mmt_error *jit_page_get(const struct jit_page *page, const struct jit_store *store,
			       struct buffer *plain) MMT_MUST_CHECK;

#endif
