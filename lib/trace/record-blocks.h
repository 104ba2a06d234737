/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Where records lie while they are looked at: a piece of the file, or what one compressed record holds. Whoever keeps
 * records keeps their block, so that none has to be copied; a pool takes back blocks for the next ones. The pool is the
 * one thing here that two threads may use at once.
 */
#ifndef TRACE_RECORD_BLOCKS_H
#define TRACE_RECORD_BLOCKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buffer.h"
#include "base/error.h"

struct record_block {
	struct buffer content;
	uint64_t offset; /* in the file: of the content, or of the compressed record */
	bool compressed;
	bool left;	/* no more records will be found in it */
	size_t pending; /* records in it that wait in the order */
	size_t counted; /* bytes, by the order while it has pending ones */
	struct record_block *next;
};

struct record_blocks;

struct mmt_error *record_blocks_create(struct record_blocks **blocks_ret) MMT_MUST_CHECK;
/* Those that were given back go with it. Accepts NULL. */
void record_blocks_destroy(struct record_blocks *blocks);

/* An empty one, which bears at most `maximum` bytes, and is to hold `expected` of them (0: nobody knows); NULL: out of
 * memory. */
struct record_block *record_blocks_take(struct record_blocks *blocks, size_t expected, size_t maximum);

/* A list of them, linked by `next`; may be NULL. */
void record_blocks_give_back(struct record_blocks *blocks, struct record_block *list);

#endif
