/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The records of a recording in time order, in batches. */
#ifndef TRACE_READ_ORDERED_RECORDS_H
#define TRACE_READ_ORDERED_RECORDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/errors.h"
#include "trace/format/sample-layout.h"
#include "trace/read/recording-file.h"
#include "trace/read/reorder.h"

#define ORDERED_BATCH_RECORDS 4096
#define ORDERED_BATCH_BYTES (1u << 20)

struct ordered_records;

struct ordered_batch {
	struct reorder_item items[ORDERED_BATCH_RECORDS]; /* with the index of the attribute, UINT32_MAX: not known */
	size_t count;
	uint64_t violations;		      /* number of records out of order so far */
	struct reorder_unfinished unfinished; /* discarded records after the last one */
	bool last;			      /* there are no more batches */
	struct mmt_error *damage;  /* ends the data after the records of this batch; the caller that takes it owns it */
	struct record_block *done; /* blocks that give no more records; likewise */
};

/* Which records after the end of the last complete round are discarded because records of that time may be missing. */
enum ordered_end {
	ORDERED_COMPLETE, /* none, unless damage ends the data */
	ORDERED_CUT,	  /* all: the recorder did not finish */
	ORDERED_IN_FILE,  /* none: records were written in time order, so no record is missing before another */
};

/* Borrows the file and the layouts. */
struct mmt_error *ordered_records_create(const struct recording_file *file, const struct layouts *layouts,
					 enum ordered_end end, struct ordered_records **ordered_ret) MMT_MUST_CHECK;

/* Accepts NULL. */
void ordered_records_destroy(struct ordered_records *ordered);

/* Give back a list of blocks when no record in them is needed any more. */
void ordered_records_give_back(struct ordered_records *ordered, struct record_block *blocks);

/* The next batch, valid until the next call; its records as long as their blocks. After the last batch, returns the last
 * one again. */
struct mmt_error *ordered_records_next(struct ordered_records *ordered,
				       struct ordered_batch **batch_ret) MMT_MUST_CHECK;

#endif
