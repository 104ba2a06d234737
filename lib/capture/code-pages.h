/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The pages of generated code of one program: their bytes as they were last seen, and when each is to be read again. A
 * page that is being written is read each time, one that has stayed as it was ever more rarely. Pure.
 *
 * Whether a page has changed is told by a checksum of 64 bits, not by its bytes, which are kept compressed: one change
 * of 2^64 is not seen, and the page is as it was before until it changes again.
 */
#ifndef CAPTURE_CODE_PAGES_H
#define CAPTURE_CODE_PAGES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "base/map.h"
#include "base/vector.h"
#include "capture/code-store.h"
#include "trace/code-copies.h"

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
