// SPDX-License-Identifier: LGPL-2.1-or-later
#include "trace/feed.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>

#include "base/bytes.h"
#include "base/cleanup.h"
#include "trace/records.h"

#define BATCHES 4
#define THREAD_FROM_BYTES (1u << 20) /* of data in the file: less is read before a thread is there */

struct feed {
	const struct recording_file *file;
	const struct layouts *layouts;
	const struct decoder *decoder;
	struct callchain_numbers *numbers;
	struct record_blocks *blocks;
	struct records *records;
	struct order *order;
	struct layouts_recent recent;
	enum feed_end end;
	bool drained; /* no more records to push */
	struct order_unfinished unfinished;

	struct feed_batch batches[BATCHES];
	struct ahead_call *calls[BATCHES]; /* of the batches; NULL before the thread is there */
	size_t filled, used;		   /* counts of batches so far; used: up to the one the caller looks at */
	bool looking;			   /* the caller has batch number `used` */
	bool threaded, stop;
	pthread_t thread;
	pthread_mutex_t lock; /* of filled, used, stop */
	pthread_cond_t change;
};

static struct mmt_error *describe_short_record(const struct record *record)
{
	return error_create(MMT_ERROR_FORMAT, "record at offset %llu (%s): ends too early at byte %u",
			    (unsigned long long)record->offset, record_type_name(record->header.type),
			    record->header.size);
}

/* A fork has its time in its body too, which counts where records have no trailer. */
static uint64_t find_time(const struct record *record)
{
	struct bytes bytes;

	if (record->header.type != PERF_RECORD_FORK && record->header.type != PERF_RECORD_EXIT)
		return 0;
	bytes = bytes_over(record->data, record->header.size);
	bytes_skip(&bytes, sizeof(struct perf_event_header) + 4 * sizeof(uint32_t));
	return bytes_u64(&bytes);
}

static struct mmt_error *stop_pushing(struct feed *feed, struct feed_batch *batch)
{
	bool early = feed->end == FEED_CUT || (feed->end == FEED_WHOLE && batch->damage);

	feed->drained = true;
	return early ? order_end_early(feed->order, &feed->unfinished, &batch->done) : order_end(feed->order);
}

/* One record into the order. */
static struct mmt_error *push_record(struct feed *feed, const struct record *record, struct feed_batch *batch)
{
	struct order_item item = {.record = record->data, .block = record->block, .size = record->header.size};
	struct record_place place;

	if (record->header.type == RECORD_FINISHED_ROUND)
		return order_end_round(feed->order);
	if (!layouts_find_place(feed->layouts, &feed->recent, &record->header, record->data, &place)) {
		batch->damage = describe_short_record(record);
		return stop_pushing(feed, batch);
	}
	/* Records without a time, which perf made up before it began, take their turn where they stand. */
	item.time_ns = place.time_ns ? place.time_ns : find_time(record);
	item.attribute = place.attribute;
	return order_push(feed->order, &item, place.stream);
}

static struct mmt_error *read_record(struct feed *feed, struct feed_batch *batch)
{
	struct mmt_error *error, *damage;
	struct record record;
	bool end;

	error = records_next(feed->records, &record, &end, &damage);
	if (error)
		return error;
	if (!end && !damage)
		return push_record(feed, &record, batch);
	batch->damage = damage;
	return stop_pushing(feed, batch);
}

/* Until some may go out, or a block may go back. */
static struct mmt_error *read_records(struct feed *feed, struct feed_batch *batch)
{
	struct mmt_error *error;

	do
		error = read_record(feed, batch);
	while (!error && !feed->drained && !order_has_releasable(feed->order) && !records_has_retired(feed->records));
	return error;
}

static void add_blocks(struct record_block **list, struct record_block *more)
{
	while (more) {
		struct record_block *block = more;

		more = block->next;
		block->next = *list;
		*list = block;
	}
}

static void fill(struct feed *feed, struct feed_batch *batch)
{
	batch->count = 0;
	batch->calls = NULL;
	/* Blocks from which nothing waits are given back soon, even if there is nothing to hand out. */
	while (!batch->count && !batch->error && !batch->last && !batch->done) {
		batch->count =
		    order_take(feed->order, batch->items, FEED_BATCH_RECORDS, FEED_BATCH_BYTES, &batch->done);
		if (!batch->count && feed->drained)
			batch->last = true;
		else if (!batch->count)
			batch->error = read_records(feed, batch);
		/* Records of an earlier batch may lie in them: they go back with this one, which is used later. */
		add_blocks(&batch->done, records_retired(feed->records));
	}
	batch->last |= batch->error != NULL;
	batch->violations = order_violations(feed->order);
	batch->unfinished = feed->unfinished;
}

/* Room for what is decoded ahead, and whoever lacks it does without. */
static void decode(struct feed *feed, struct feed_batch *batch)
{
	struct ahead_call **calls = &feed->calls[batch - feed->batches];

	if (!feed->decoder)
		return;
	if (!feed->numbers)
		mmt_error_destroy(callchain_numbers_create(&feed->numbers));
	if (!*calls)
		*calls = malloc(FEED_BATCH_RECORDS * sizeof(**calls));
	if (!feed->numbers || !*calls)
		return;
	decode_ahead(feed->decoder, feed->numbers, batch->items, batch->count, *calls);
	batch->calls = *calls;
}

static void *run(void *context)
{
	struct feed *feed = context;
	bool last = false;

	pthread_setname_np(pthread_self(), "mmtrace-feed");
	while (!last) {
		struct feed_batch *batch;

		pthread_mutex_lock(&feed->lock);
		while (!feed->stop && feed->filled - feed->used == BATCHES)
			pthread_cond_wait(&feed->change, &feed->lock);
		last = feed->stop;
		pthread_mutex_unlock(&feed->lock);
		if (last)
			break;
		batch = &feed->batches[feed->filled % BATCHES];
		fill(feed, batch);
		decode(feed, batch);
		last = batch->last;
		pthread_mutex_lock(&feed->lock);
		feed->filled++;
		pthread_cond_signal(&feed->change);
		pthread_mutex_unlock(&feed->lock);
	}
	return NULL;
}

/* Where one processor is all there is nobody waits while another works. */
static bool has_processors(void)
{
	cpu_set_t set;

	/* What are too many for the set are more than one. */
	return sched_getaffinity(0, sizeof(set), &set) < 0 || CPU_COUNT(&set) > 1;
}

/* Signals are for the threads of the program. */
static void start_thread(struct feed *feed)
{
	sigset_t all, before;

	sigfillset(&all);
	if (pthread_sigmask(SIG_SETMASK, &all, &before))
		return;
	if (has_processors())
		records_let_help(feed->records);
	feed->threaded = pthread_create(&feed->thread, NULL, run, feed) == 0;
	pthread_sigmask(SIG_SETMASK, &before, NULL);
}

struct mmt_error *feed_create(const struct recording_file *file, const struct layouts *layouts,
			      const struct decoder *decoder, enum feed_end end, struct feed **feed_ret)
{
	struct feed *feed = calloc(1, sizeof(*feed));
	struct mmt_error *error;

	if (!feed)
		return &error_no_memory;
	pthread_mutex_init(&feed->lock, NULL);
	pthread_cond_init(&feed->change, NULL);
	feed->file = file;
	feed->layouts = layouts;
	feed->decoder = decoder;
	feed->end = end;
	error = record_blocks_create(&feed->blocks);
	if (!error)
		error = records_create(file, &feed->records);
	if (!error)
		error = order_create(layouts->stream_count, &feed->order);
	if (error) {
		feed_destroy(feed);
		return error;
	}
	records_share_blocks(feed->records, feed->blocks);
	*feed_ret = feed;
	return NULL;
}

static void stop_thread(struct feed *feed)
{
	if (!feed->threaded)
		return;
	pthread_mutex_lock(&feed->lock);
	feed->stop = true;
	pthread_cond_signal(&feed->change);
	pthread_mutex_unlock(&feed->lock);
	pthread_join(feed->thread, NULL);
}

void feed_destroy(struct feed *feed)
{
	if (!feed)
		return;
	stop_thread(feed);
	for (size_t i = 0; i < BATCHES; i++) {
		mmt_error_destroy(feed->batches[i].damage);
		mmt_error_destroy(feed->batches[i].error);
		if (feed->batches[i].done)
			record_blocks_give_back(feed->blocks, feed->batches[i].done);
		free(feed->calls[i]);
	}
	callchain_numbers_destroy(feed->numbers);
	/* The blocks that are still being read are the records' to give back, the others the order's. */
	order_destroy(feed->order, feed->blocks);
	records_destroy(feed->records);
	record_blocks_destroy(feed->blocks);
	pthread_cond_destroy(&feed->change);
	pthread_mutex_destroy(&feed->lock);
	free(feed);
}

/* The caller has seen the batch it looked at. */
static void recycle(struct feed *feed, struct feed_batch *batch)
{
	if (batch->done)
		record_blocks_give_back(feed->blocks, TAKE(batch->done));
	mmt_error_destroy(TAKE(batch->damage));
}

/* With the lock held. Who waits decompresses some of what the thread will come to. */
static void wait_for_batch(struct feed *feed)
{
	while (feed->filled == feed->used) {
		bool helped;

		pthread_mutex_unlock(&feed->lock);
		helped = records_help(feed->records);
		pthread_mutex_lock(&feed->lock);
		if (!helped && feed->filled == feed->used)
			pthread_cond_wait(&feed->change, &feed->lock);
	}
}

struct feed_batch *feed_next(struct feed *feed)
{
	struct feed_batch *batch = &feed->batches[feed->used % BATCHES];

	if (feed->looking && batch->last)
		return batch;
	if (!feed->looking && !feed->threaded && feed->file->data_end - feed->file->data_offset > THREAD_FROM_BYTES)
		start_thread(feed);
	if (feed->looking)
		recycle(feed, batch);
	pthread_mutex_lock(&feed->lock);
	feed->used += feed->looking;
	feed->looking = true;
	if (feed->threaded) {
		pthread_cond_signal(&feed->change);
		wait_for_batch(feed);
	}
	pthread_mutex_unlock(&feed->lock);
	batch = &feed->batches[feed->used % BATCHES];
	if (!feed->threaded)
		fill(feed, batch);
	return batch;
}
