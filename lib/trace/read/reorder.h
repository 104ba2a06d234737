/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Reorder: merges the records of all rings into time order. */
#ifndef TRACE_READ_REORDER_H
#define TRACE_READ_REORDER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/errors.h"
#include "trace/format/format.h"
#include "trace/read/recording-file.h"

/*
 * Time order across rings, in bounded memory. Records of one ring are in order, rings are not in order with each other.
 * A round ends when every ring has been drained up to a head read in that round: what comes later is younger than the
 * youngest record of the round before. So at the end of round n everything up to the largest time of round n-1 may go
 * out. What waits is a few ascending runs, which are merged; records stay where they are.
 *
 * A clock that jumps back is told by the events: the times of one only rise, and none is older than what may go out.
 * What is behind the jump is a new epoch, which goes out behind the one before. Rings are drained one after the other,
 * so for this round and the next one records of both may come: those whose time is nearer to that behind the jump are
 * behind it.
 *
 * Without ends of rounds, as when a recorder was made without them, the older half of what waits goes out whenever
 * ORDER_WINDOW_BYTES wait. Of blocks that a few records keep, and in a file whose rounds do not end, likewise.
 */

#define ORDER_WINDOW_BYTES (32u << 20)
#define ORDER_JUMP_NS 1000000000ULL
#define ORDER_NO_STREAM UINT32_MAX
#define ORDER_IN_FLIGHT_NS                                                                                             \
	2000000ULL /* from a record's time to its place in a ring, and from the first head to the last */
#define ORDER_ROUNDS_BYTES (512u << 20) /* of a file with ends of rounds */

/* Blocks may have so much more: the one that is being read, and one that has nearly gone out. */
#define ORDER_BLOCK_BYTES (2u * LIMIT_FRAME_BYTES)

struct order;

struct order_item {
	uint64_t time_ns; /* 0: none; then that of what was taken last */
	const uint8_t *record;
	struct record_block *block;
	uint32_t attribute;   /* the caller's */
	uint16_t size, epoch; /* the second is the order's */
};

/* Streams: sources whose records come in order, each known by its number. */
struct mmt_error *order_create(size_t streams, struct order **order_ret) MMT_MUST_CHECK;

/* Blocks with records that have not gone out are given back to `blocks`. Accepts NULL. */
void order_destroy(struct order *order, struct record_blocks *blocks);

/*
 * Equal times keep their order of arrival. The record is one more that its block has pending. ORDER_NO_STREAM: it says
 * nothing of the clock.
 */
struct mmt_error *order_push(struct order *order, const struct order_item *item, uint32_t stream) MMT_MUST_CHECK;

struct mmt_error *order_end_round(struct order *order) MMT_MUST_CHECK;

/* Nothing more comes: everything may go out. */
struct mmt_error *order_end(struct order *order) MMT_MUST_CHECK;

/* What a round has brought whose end never came: some rings have been read and others have not. */
struct order_unfinished {
	uint64_t records; /* younger than what is known to be all there */
	uint64_t span_ns; /* from there to the youngest of these */
};

/* The same where a round was cut off: these records are let go. Blocks: as below. Where no round has ended
 * nothing is known of rounds, and everything goes out. */
struct mmt_error *order_end_early(struct order *order, struct order_unfinished *unfinished_ret,
				  struct record_block **done) MMT_MUST_CHECK;

/*
 * The next records that may go out, at most `maximum` of them and as few as fill `bytes`; how many. Blocks that no
 * record will come from any more are added to *done: they may be given back when these records are no longer needed.
 */
size_t order_take(struct order *order, struct order_item *items_ret, size_t maximum, size_t bytes,
		  struct record_block **done);

/* Whether order_take() would give any. */
bool order_has_releasable(const struct order *order);

/* Records taken with a time before one taken earlier; after a jump of the clock, since then. */
uint64_t order_violations(const struct order *order);

/* Bytes held, with all that lies in the blocks; for the test of boundedness. */
size_t order_bytes(const struct order *order);

/* Records that are decoded soon, asked for from memory in time: in the order of time they lie all over their blocks. */

#define FETCH_CACHE_LINE_BYTES 64
#define FETCH_RECORD_BYTES 384 /* what is behind is mostly a copied stack, of which little is read */

static inline void fetch(const void *start, size_t size)
{
	const uint8_t *line = (const uint8_t *)((uintptr_t)start & ~(uintptr_t)(FETCH_CACHE_LINE_BYTES - 1));

	for (; line < (const uint8_t *)start + size; line += FETCH_CACHE_LINE_BYTES)
		__builtin_prefetch(line);
}

static inline void fetch_record(const void *record, size_t size)
{
	fetch(record, size < FETCH_RECORD_BYTES ? size : FETCH_RECORD_BYTES);
}

#endif
