/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Readahead: threads that read, decompress, reorder and decode what comes next while the caller replays. */
#ifndef TRACE_READ_READAHEAD_H
#define TRACE_READ_READAHEAD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/errors.h"
#include "trace/format/sample-layout.h"
#include "trace/read/decode-ahead.h"
#include "trace/read/recording-file.h"
#include "trace/read/reorder.h"

/*
 * Compressed records of a file, decompressed before their reader comes to them, by another thread that has nothing else
 * to do. It does those that hold one whole frame each, as ours do; everything else, and everything that is wrong, is
 * left to the reader.
 */

#define FRAMES_AHEAD_MAX 32		/* which wait for the reader, or are being done */
#define FRAMES_AHEAD_BYTES (512u << 10) /* in them: when they have so much no more is begun */
#define FRAMES_AHEAD_LARGEST (2u << 20) /* what holds more is left to the reader */

struct frames_ahead;

/* Borrows both. */
struct mmt_error *frames_ahead_create(const struct recording_file *file, struct record_blocks *blocks,
				      struct frames_ahead **ahead_ret) MMT_MUST_CHECK;

/* Accepts NULL. */
void frames_ahead_destroy(struct frames_ahead *ahead);

/* For the one other thread, at any time: the next frame. False: there is nothing to do now. */
bool frames_ahead_decompress_one(struct frames_ahead *ahead);

/*
 * For the reader: what the compressed record at `offset` holds, the caller's now; NULL: the caller is to decompress it.
 * What lies before `end`, where the next record begins, is not begun any more. Offsets only rise. Accepts NULL.
 */
struct record_block *frames_ahead_take(struct frames_ahead *ahead, uint64_t offset, uint64_t end);

/* What a RECORD_COMPRESSED or RECORD_COMPRESSED2 of `size` bytes has of the stream. False: its size inside is wrong. */
bool frames_ahead_find_stream(const uint8_t *record, size_t size, const uint8_t **data_ret, size_t *size_ret);

/*
 * The records of a recording in time order, in batches. Of a large recording a thread of its own reads, decompresses
 * and merges what comes next, a few batches ahead. While it is ahead it also decodes what is in them.
 */

#define READAHEAD_BATCH_RECORDS 4096
#define READAHEAD_BATCH_BYTES (1u << 20)

struct readahead;

struct readahead_batch {
	struct order_item items[READAHEAD_BATCH_RECORDS]; /* with the attribute's index, UINT32_MAX: not known */
	struct ahead_call *calls;			  /* of each item; NULL: not decoded ahead */
	size_t count;
	uint64_t violations;		    /* of the order, up to here */
	struct order_unfinished unfinished; /* behind the last one, and left out */
	bool last;			    /* nothing comes behind it */
	struct mmt_error *damage; /* after the records of this batch, ends the data; the caller that takes it owns it */
	struct mmt_error *error;  /* of this machine; likewise */
	struct record_block *done;
};

/* What is left out behind the last round that has ended, because records of that time may be missing. */
enum readahead_end {
	READAHEAD_WHOLE,    /* nothing, unless damage ends the data */
	READAHEAD_CUT,	    /* all: the recorder did not finish */
	READAHEAD_IN_ORDER, /* nothing: records were written in the order of time, so that none is missing before
			       another */
};

/* Borrows all three, and uses them from another thread. Without a decoder nothing is decoded ahead. */
struct mmt_error *readahead_create(const struct recording_file *file, const struct layouts *layouts,
				   const struct decoder *decoder, enum readahead_end end,
				   struct readahead **readahead_ret) MMT_MUST_CHECK;

/* Accepts NULL. */
void readahead_destroy(struct readahead *readahead);

/* The next batch, valid until the next call; after the last one the last again. */
struct readahead_batch *readahead_next(struct readahead *readahead);

#endif
