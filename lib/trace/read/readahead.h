/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Readahead: threads that read, decompress, reorder and decode the next records while the caller replays. */
#ifndef TRACE_READ_READAHEAD_H
#define TRACE_READ_READAHEAD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/errors.h"
#include "trace/format/sample-layout.h"
#include "trace/read/decode.h"
#include "trace/read/recording-file.h"
#include "trace/read/reorder.h"

/*
 * Compressed records of a file that another thread decompresses before the reader needs them. It handles records that
 * hold exactly one complete frame, as mmtrace writes them; all others, and all damaged ones, are left to the reader.
 */

#define FRAMES_AHEAD_MAX 32		/* frames that wait for the reader or are being decompressed */
#define FRAMES_AHEAD_BYTES (512u << 10) /* total size at which no more frames are started */
#define FRAMES_AHEAD_LARGEST (2u << 20) /* larger frames are left to the reader */

struct frames_ahead;

/* Borrows both arguments. */
struct mmt_error *frames_ahead_create(const struct recording_file *file, struct record_blocks *blocks,
				      struct frames_ahead **ahead_ret) MMT_MUST_CHECK;

/* Accepts NULL. */
void frames_ahead_destroy(struct frames_ahead *ahead);

/* For the other thread, at any time: decompress the next frame. False: there is nothing to do now. */
bool frames_ahead_decompress_one(struct frames_ahead *ahead);

/*
 * For the reader: takes the content of the compressed record at `offset`; NULL: the caller must decompress it. Frames
 * before `end`, where the next record begins, are no longer started. Offsets must ascend. Accepts NULL.
 */
struct record_block *frames_ahead_take(struct frames_ahead *ahead, uint64_t offset, uint64_t end);

/* Finds the part of the zstd stream in a RECORD_COMPRESSED or RECORD_COMPRESSED2 of `size` bytes. False: the size
 * inside is wrong. */
bool frames_ahead_find_stream(const uint8_t *record, size_t size, const uint8_t **data_ret, size_t *size_ret);

/*
 * The records of a recording in time order, in batches. For a large recording a separate thread reads, decompresses and
 * merges a few batches ahead, and also decodes their records.
 */

#define READAHEAD_BATCH_RECORDS 4096
#define READAHEAD_BATCH_BYTES (1u << 20)

struct readahead;

struct readahead_batch {
	struct reorder_item items[READAHEAD_BATCH_RECORDS]; /* including the attribute's index, UINT32_MAX: not known */
	struct ahead_call *calls;			    /* for each item; NULL: not decoded ahead */
	size_t count;
	uint64_t violations;		      /* number of records out of order so far */
	struct reorder_unfinished unfinished; /* discarded records after the last one */
	bool last;			      /* there are no more batches */
	struct mmt_error *damage; /* ends the data after the records of this batch; the caller that takes it owns it */
	struct mmt_error *error;  /* error of this machine; likewise */
	struct record_block *done;
};

/* Which records after the end of the last complete round are discarded because records of that time may be missing. */
enum readahead_end {
	READAHEAD_WHOLE,    /* none, unless damage ends the data */
	READAHEAD_CUT,	    /* all: the recorder did not finish */
	READAHEAD_IN_ORDER, /* none: records were written in time order, so no record is missing before another */
};

/* Borrows all three arguments and uses them from another thread. Without a decoder nothing is decoded ahead. */
struct mmt_error *readahead_create(const struct recording_file *file, const struct layouts *layouts,
				   const struct decoder *decoder, enum readahead_end end,
				   struct readahead **readahead_ret) MMT_MUST_CHECK;

/* Accepts NULL. */
void readahead_destroy(struct readahead *readahead);

/* The next batch, valid until the next call. After the last batch, returns the last one again. */
struct readahead_batch *readahead_next(struct readahead *readahead);

#endif
