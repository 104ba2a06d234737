/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Compressed records of a file, decompressed before their reader comes to them, by another thread that has nothing else
 * to do. It does those that hold one whole frame each, as ours do; everything else, and everything that is wrong, is left
 * to the reader.
 */
#ifndef TRACE_FRAMES_AHEAD_H
#define TRACE_FRAMES_AHEAD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "trace/record-blocks.h"
#include "trace/recording-file.h"

#define FRAMES_AHEAD_MAX 32	       /* which wait for the reader, or are being done */
#define FRAMES_AHEAD_BYTES (512u << 10)	/* in them: when they have so much no more is begun */
#define FRAMES_AHEAD_LARGEST (2u << 20) /* what holds more is left to the reader */

struct frames_ahead;

/* Borrows both. */
struct mmt_error *frames_ahead_create(const struct recording_file *file, struct record_blocks *blocks,
				      struct frames_ahead **ahead_ret) MMT_MUST_CHECK;
/* Nobody uses it any more. Accepts NULL. */
void frames_ahead_destroy(struct frames_ahead *ahead);

/* For the one other thread, at any time: the next frame. False: there is nothing to do now. */
bool frames_ahead_help(struct frames_ahead *ahead);

/*
 * For the reader: what the compressed record at `offset` holds, the caller's now; NULL: the caller is to decompress it.
 * What lies before `end`, where the next record begins, is not begun any more. Offsets only rise. Accepts NULL.
 */
struct record_block *frames_ahead_take(struct frames_ahead *ahead, uint64_t offset, uint64_t end);

/* What a RECORD_COMPRESSED or RECORD_COMPRESSED2 of `size` bytes has of the stream. False: its size inside is wrong. */
bool frames_ahead_find_stream(const uint8_t *record, size_t size, const uint8_t **data_ret, size_t *size_ret);

#endif
