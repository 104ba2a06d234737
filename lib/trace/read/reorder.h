/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Reorder: merges the records of all rings into time order. */
#pragma once

#include "base/limits.h"
#include "trace/read/recording-file.h"

/*
 * Time order across rings, in bounded memory. Each ring is in time order; different rings are not. A round ends when
 * every ring has been drained up to a head read in that round: later records are younger than the youngest record of
 * the previous round. So at the end of round n all records up to the largest time of round n-1 may be handed out.
 * Waiting records form a few ascending runs, which are merged; the records themselves are not moved.
 *
 * If a recording has no ends of rounds, the older half of the waiting records is handed out whenever
 * LIMIT_ORDER_WINDOW_BYTES are waiting. The same applies if few records keep many blocks, and to a file whose rounds do
 * not end.
 */

#define ORDER_JUMP_NS 1000000000ULL /* by so much the clock has jumped back: later records are not late */
#define ORDER_IN_FLIGHT_NS                                                                                             \
	2000000ULL /* from a record's timestamp to its arrival in a ring, and from the first head to the last */

/* Additional limit for blocks: the one that is being read, and one with few records left. */
#define ORDER_BLOCK_BYTES (2u * LIMIT_FRAME_BYTES)

struct reorder_item {
	uint64_t time_ns; /* 0: none, replaced by the time of the last record handed out */
	const uint8_t *record;
	struct record_block *block;
	uint32_t attribute; /* the caller's */
	uint16_t size;
};

struct order {
	/* From `first` on: records to hand out, up to `releasable`, then other sorted ones, then new ones. */
	VECTOR(struct reorder_item) items, merged; /* merged: room for merging */
	VECTOR(size_t) runs;			   /* start of each run, and finally the end of the last */
	size_t first, releasable;
	size_t sorted;		  /* everything before it is sorted */
	uint64_t youngest_ns;	  /* of this round and those before */
	uint64_t round_before_ns; /* the youngest when the previous round ended */
	uint64_t reached_ns;	  /* if the round ended now, all records up to this time would have been pushed */
	uint64_t complete_ns;	  /* the same, when the previous round ended */
	uint64_t taken_ns;	  /* of the last record handed out */
	uint64_t violations;	  /* records handed out after a younger one; after a jump of the clock, since then */
	size_t bytes;		  /* size of waiting records, including memory for sorting */
	size_t block_bytes;	  /* total size of their blocks */
	size_t rounds_bytes;	  /* limit of both in a file with rounds */
	bool has_rounds;
};

/* A small file must not fill memory. */
struct mmt_error *reorder_create(uint64_t file_bytes, struct order **order_ret) MMT_MUST_CHECK;

/* Also destroys the blocks that only waiting records keep. Accepts NULL. */
void reorder_destroy(struct order *order);

/* Add a record and count it as pending in its block. Records with equal times keep their order of arrival.
 * `from_ring`: the kernel wrote it, not the recorder. */
struct mmt_error *reorder_push(struct order *order, const struct reorder_item *item, bool from_ring) MMT_MUST_CHECK;

struct mmt_error *reorder_end_round(struct order *order) MMT_MUST_CHECK;

/* The input has ended: all records may be handed out. */
struct mmt_error *reorder_end(struct order *order) MMT_MUST_CHECK;

/* Records of an incomplete round: some rings have been read and others have not. */
struct reorder_unfinished {
	uint64_t records; /* number of records younger than the last time for which all records exist */
	uint64_t span_ns; /* from that time to the youngest of these */
};

/* The same if the last round is incomplete: its records are discarded. Blocks: as below. If no round has ended, the
 * file has no rounds, and all records may be handed out. */
struct mmt_error *reorder_end_early(struct order *order, struct reorder_unfinished *unfinished_ret,
				    struct record_block **done) MMT_MUST_CHECK;

/* Takes the next record that may be handed out. False: none may be. A block that gives no more records is added to
 * *done: return it when this record is no longer needed. */
bool reorder_take(struct order *order, struct reorder_item *item_ret, struct record_block **done);
