// SPDX-License-Identifier: LGPL-2.1-or-later
/* Decodes ordered records to batches of events, on a thread of its own where that pays. */
#include "trace/read/event-batches.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/api.h"
#include "base/cleanup.h"
#include "base/cold.h"
#include "base/limits.h"
#include "trace/read/dedup.h"
#include "trace/read/records.h"

#define BATCHES 3		     /* one that the caller has, one that waits, and one that is filled */
#define THREAD_FROM_BYTES (1u << 20) /* with less data a thread is not worth starting */
#define CALLCHAINS 8		     /* of the largest size, in a batch: those with kernel addresses are copied */

struct event_batches {
	uint64_t data_bytes;
	const struct layouts *layouts;
	struct decoder *decoder;
	struct dedup dedup;
	struct ordered_records *ordered;
	struct ordered_batch *records; /* NULL: before the first */
	size_t position;	       /* of the next record in it */
	uint64_t sequence;	       /* of the last event */

	struct event_batch items[BATCHES];
	size_t filled, taken; /* number of batches so far */
	bool threaded, stop;
	pthread_t thread;
	pthread_mutex_t lock; /* protects filled, taken, stop */
	pthread_cond_t change;
};

static bool is_copy(struct event_batches *batches, const struct record_identity *identity)
{
	if (identity->attribute == UINT32_MAX || identity->id == 0 || identity->tid < 0 || identity->cpu < 0)
		return false;
	/* The parts of a snapshot have different ids. */
	if (!batches->layouts->items[identity->attribute].may_come_twice || identity->id >= SNAPSHOT_ID_FIRST)
		return false;
	return dedup_check(&batches->dedup, identity->tid, identity->attribute, identity->cpu, identity->id,
			   identity->time_ns);
}

/* Offset in the file of the record, or of the compressed record that holds it. */
static uint64_t find_offset(const struct reorder_item *item)
{
	const struct record_block *block = item->block;

	return block->compressed ? block->offset : block->offset + (uint64_t)(item->record - block->content.data);
}

static COLD struct mmt_error *describe_damage(const struct reorder_item *item, uint32_t type, const struct bytes *bytes)
{
	return error_create(MMT_ERROR_FORMAT, "record at offset %llu (%s): %s at byte %zu",
			    (unsigned long long)find_offset(item), record_type_name(type), bytes->failure,
			    bytes->failure_offset);
}

/* Keep only the first; `damage` may be NULL. */
static void note_damage(struct event_batch *batch, struct mmt_error *damage)
{
	if (batch->damage)
		mmt_error_destroy(damage);
	else
		batch->damage = damage;
}

/* Append the event of the record, if it gives one. */
static void decode_item(struct event_batches *batches, const struct reorder_item *item, struct event_batch *batch)
{
	struct event *event = &batch->events[batch->count];
	struct record_identity identity;
	struct perf_event_header header;
	struct bytes bytes;

	if (item->epoch != batches->dedup.epoch)
		dedup_begin_epoch(&batches->dedup, item->epoch);
	memcpy(&header, item->record, sizeof(header));
	layouts_read(batches->layouts, &header, item->record, item->attribute, &identity);
	if (is_copy(batches, &identity))
		return;
	if (!decoder_decode(batches->decoder, &header, item->record, &identity, event, &bytes)) {
		note_damage(batch, describe_damage(item, header.type, &bytes));
		batch->last = true;
		return;
	}
	event->sequence = ++batches->sequence;
	event->record = item->record;
	event->file_offset = find_offset(item);
	if (event->kind == EVENT_FORK)
		dedup_forget(&batches->dedup, event->task.tid, item->time_ns);
	batch->count++;
}

/* Get the next records. The blocks of the ones before belong to this batch: it has the last of their events. */
static void take_records(struct event_batches *batches, struct event_batch *batch)
{
	if (batches->records)
		record_blocks_add(&batch->done, TAKE(batches->records->done));
	batch->error = ordered_records_next(batches->ordered, &batches->records);
	batches->position = 0;
	note_damage(batch, TAKE(batches->records->damage));
}

static void fill(struct event_batches *batches, struct event_batch *batch)
{
	struct decoder *decoder = batches->decoder;
	const struct ordered_batch *records;

	ordered_records_give_back(batches->ordered, TAKE(batch->done));
	batch->count = 0;
	decoder->callchain = batch->callchains;
	decoder->callchain_left = CALLCHAINS * LIMIT_CALLCHAIN;
	while (!batch->count && !batch->last) {
		if (!batches->records || batches->position == batches->records->count)
			take_records(batches, batch);
		records = batches->records;
		while (batches->position < records->count && batch->count < EVENT_BATCH_EVENTS && !batch->last &&
		       decoder->callchain_left >= LIMIT_CALLCHAIN)
			decode_item(batches, &records->items[batches->position++], batch);
		batch->last |= batch->error || (records->last && batches->position == records->count);
	}
	batch->violations = batches->records->violations;
	batch->unfinished = batches->records->unfinished;
}

static void *run(void *context)
{
	struct event_batches *batches = context;
	bool last = false;

	pthread_setname_np(pthread_self(), "mmtrace-ahead");
	while (!last) {
		struct event_batch *batch;

		pthread_mutex_lock(&batches->lock);
		while (!batches->stop && batches->filled - batches->taken == BATCHES - 1)
			pthread_cond_wait(&batches->change, &batches->lock);
		last = batches->stop;
		pthread_mutex_unlock(&batches->lock);
		if (last)
			break;
		batch = &batches->items[batches->filled % BATCHES];
		fill(batches, batch);
		last = batch->last;
		pthread_mutex_lock(&batches->lock);
		batches->filled++;
		pthread_cond_signal(&batches->change);
		pthread_mutex_unlock(&batches->lock);
	}
	return NULL;
}

struct mmt_error *event_batches_create(const struct recording_file *file, const struct layouts *layouts,
				       struct decoder *decoder, enum ordered_end end,
				       struct event_batches **batches_ret)
{
	struct event_batches *batches = calloc(1, sizeof(*batches));
	struct mmt_error *error;

	if (!batches)
		return &error_no_memory;
	pthread_mutex_init(&batches->lock, NULL);
	pthread_cond_init(&batches->change, NULL);
	batches->data_bytes = file->data_end - file->data_offset;
	batches->layouts = layouts;
	batches->decoder = decoder;
	error = ordered_records_create(file, layouts, end, &batches->ordered);
	for (size_t i = 0; !error && i < BATCHES; i++) {
		batches->items[i].callchains = malloc(CALLCHAINS * LIMIT_CALLCHAIN * sizeof(uint64_t));
		if (!batches->items[i].callchains)
			error = &error_no_memory;
	}
	if (error)
		event_batches_destroy(batches);
	else
		*batches_ret = batches;
	return error;
}

void event_batches_destroy(struct event_batches *batches)
{
	if (!batches)
		return;
	if (batches->threaded) {
		pthread_mutex_lock(&batches->lock);
		batches->stop = true;
		pthread_cond_signal(&batches->change);
		pthread_mutex_unlock(&batches->lock);
		pthread_join(batches->thread, NULL);
	}
	for (size_t i = 0; i < BATCHES; i++) {
		mmt_error_destroy(batches->items[i].damage);
		mmt_error_destroy(batches->items[i].error);
		if (batches->ordered)
			ordered_records_give_back(batches->ordered, batches->items[i].done);
		free(batches->items[i].callchains);
	}
	ordered_records_destroy(batches->ordered);
	dedup_deinit(&batches->dedup);
	pthread_cond_destroy(&batches->change);
	pthread_mutex_destroy(&batches->lock);
	free(batches);
}

struct event_batch *event_batches_next(struct event_batches *batches)
{
	struct event_batch *batch = &batches->items[batches->taken % BATCHES];

	if (!batches->taken && batches->data_bytes > THREAD_FROM_BYTES)
		batches->threaded = thread_start(&batches->thread, run, batches) == 0;
	if (!batches->threaded)
		fill(batches, batch);
	pthread_mutex_lock(&batches->lock);
	while (batches->threaded && batches->filled == batches->taken)
		pthread_cond_wait(&batches->change, &batches->lock);
	batches->taken++;
	pthread_cond_signal(&batches->change);
	pthread_mutex_unlock(&batches->lock);
	return batch;
}
