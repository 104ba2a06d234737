/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The events of a recording in time order, in batches. For a large recording a thread reads, decompresses, reorders and
 * decodes the next batch while the caller replays one. */
#ifndef TRACE_READ_EVENT_BATCHES_H
#define TRACE_READ_EVENT_BATCHES_H

#include "trace/format/event.h"
#include "trace/read/decode.h"
#include "trace/read/reorder.h"

#define EVENT_BATCH_EVENTS 256

/* Which records after the end of the last complete round are discarded because records of that time may be missing. */
enum ordered_end {
	ORDERED_COMPLETE, /* none, unless damage ends the data */
	ORDERED_CUT,	  /* all: the recorder did not finish */
	ORDERED_IN_FILE,  /* none: records were written in time order, so no record is missing before another */
};

struct event_batch {
	size_t count;			      /* of `events` */
	uint64_t violations;		      /* number of records out of order so far */
	struct reorder_unfinished unfinished; /* discarded records at the end */
	struct mmt_error *damage;	      /* ends the events after this batch; the caller may take it */
	struct mmt_error *error;	      /* error of this machine; likewise */
	bool last;			      /* there are no more batches */
	uint64_t *callchains;
	struct record_block *done;		 /* blocks to destroy after it */
	struct event events[EVENT_BATCH_EVENTS]; /* borrow from records and from `callchains` */
};

struct event_batches;

/* Borrows all arguments, which a thread uses from the first call of event_batches_next() on. */
struct mmt_error *event_batches_create(const struct recording_file *file, const struct layouts *layouts,
				       struct decoder *decoder, enum ordered_end end,
				       struct event_batches **batches_ret) MMT_MUST_CHECK;

/* Accepts NULL. */
void event_batches_destroy(struct event_batches *batches);

/* Offset in the file of the last incremental metadata so far; 0: none. */
uint64_t event_batches_names_offset(const struct event_batches *batches);

/* The next batch, valid until the next call. Not to be called after the last batch. It may be empty if the file is
 * followed: there are no more events for now. No thread then reads ahead, and the process can fork. */
struct event_batch *event_batches_next(struct event_batches *batches);

#endif
