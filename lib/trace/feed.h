/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The records of a recording in time order, in batches. Of a large recording a thread of its own reads, decompresses
 * and merges what comes next, a few batches ahead. While it is ahead it also decodes what is in them.
 */
#ifndef TRACE_FEED_H
#define TRACE_FEED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "trace/decode-ahead.h"
#include "trace/layout.h"
#include "trace/order.h"
#include "trace/recording-file.h"

#define FEED_BATCH_RECORDS 4096
#define FEED_BATCH_BYTES (1u << 20)

struct feed;

struct feed_batch {
	struct order_item items[FEED_BATCH_RECORDS]; /* with the attribute's index, UINT32_MAX: not known */
	struct ahead_call *calls;		     /* of each item; NULL: not decoded ahead */
	size_t count;
	uint64_t violations;		    /* of the order, up to here */
	struct order_unfinished unfinished; /* behind the last one, and left out */
	bool last;			    /* nothing comes behind it */
	struct mmt_error *damage; /* that ends the data behind what was read for this batch; whoever takes it owns it */
	struct mmt_error *error;  /* of this machine; likewise */
	struct record_block *done;
};

/* What is left out behind the last round that has ended, because records of that time may be missing. */
enum feed_end {
	FEED_WHOLE,    /* nothing, unless damage ends the data */
	FEED_CUT,      /* all: the recorder did not finish */
	FEED_IN_ORDER, /* nothing: records were written in the order of time, so that none is missing before another */
};

/* Borrows all three, and uses them from another thread. Without a decoder nothing is decoded ahead. */
struct mmt_error *feed_create(const struct recording_file *file, const struct layouts *layouts,
			      const struct decoder *decoder, enum feed_end end, struct feed **feed_ret) MMT_MUST_CHECK;
/* Accepts NULL. */
void feed_destroy(struct feed *feed);

/* The next batch, valid until the next call; after the last one the last again. */
struct feed_batch *feed_next(struct feed *feed);

#endif
