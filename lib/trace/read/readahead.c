// SPDX-License-Identifier: LGPL-2.1-or-later
#include "trace/read/readahead.h"

#include <linux/perf_event.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include "base/api.h"
#include "base/bytes.h"
#include "base/cleanup.h"
#include "base/compression.h"
#include "trace/read/records.h"

#define HEADER_BYTES sizeof(struct perf_event_header)
#define INPUT_BYTES (UINT16_MAX + 1u) /* larger than any record */

/* Decompression state of a thread. */
struct frame_worker {
	struct decompressor *decompressor;
	uint8_t input[INPUT_BYTES];
	uint64_t offset; /* of the input in the file */
	size_t size;
};

struct frame {
	uint64_t offset;	    /* of its record */
	size_t bytes;		    /* decompressed size according to the frame */
	struct record_block *block; /* NULL: it could not be decompressed */
	bool done;
};

struct frames_ahead {
	const struct recording_file *file;
	struct record_blocks *blocks;
	struct frame_worker *readers, *helpers;

	pthread_mutex_t lock; /* protects the following members */
	pthread_cond_t done;
	struct frame frames[FRAMES_AHEAD_MAX];
	size_t first, count, bytes; /* of frames that wait or are being decompressed */
	uint64_t position;	    /* where to search for the next frame */
	bool parked;		    /* there is no next frame; the reader sets where to continue */
	bool hopeless;		    /* the file has no frames of the expected form */
};

static struct mmt_error *create_worker(struct frame_worker **worker_ret)
{
	*worker_ret = calloc(1, sizeof(**worker_ret));
	return *worker_ret ? decompressor_create(&(*worker_ret)->decompressor) : &error_no_memory;
}

static void destroy_worker(struct frame_worker *worker)
{
	if (worker)
		decompressor_destroy(worker->decompressor);
	free(worker);
}

struct mmt_error *frames_ahead_create(const struct recording_file *file, struct record_blocks *blocks,
				      struct frames_ahead **ahead_ret)
{
	struct frames_ahead *ahead = calloc(1, sizeof(*ahead));
	struct mmt_error *error;

	if (!ahead)
		return &error_no_memory;
	pthread_mutex_init(&ahead->lock, NULL);
	pthread_cond_init(&ahead->done, NULL);
	ahead->file = file;
	ahead->blocks = blocks;
	ahead->parked = true;
	error = create_worker(&ahead->readers);
	if (!error)
		error = create_worker(&ahead->helpers);
	if (error)
		frames_ahead_destroy(ahead);
	else
		*ahead_ret = ahead;
	return error;
}

void frames_ahead_destroy(struct frames_ahead *ahead)
{
	if (!ahead)
		return;
	for (size_t i = 0; i < FRAMES_AHEAD_MAX; i++)
		record_blocks_give_back(ahead->blocks, ahead->frames[i].block);
	destroy_worker(ahead->readers);
	destroy_worker(ahead->helpers);
	pthread_cond_destroy(&ahead->done);
	pthread_mutex_destroy(&ahead->lock);
	free(ahead);
}

bool frames_ahead_find_stream(const uint8_t *record, size_t size, const uint8_t **data_ret, size_t *size_ret)
{
	struct bytes bytes = bytes_over(record + HEADER_BYTES, size - HEADER_BYTES);
	struct perf_event_header header;
	uint64_t given;

	memcpy(&header, record, sizeof(header));
	given = header.type == RECORD_COMPRESSED2 ? bytes_u64(&bytes) : bytes_left(&bytes);
	if (!bytes_ok(&bytes) || given > bytes_left(&bytes))
		return false;
	*size_ret = given;
	*data_ret = bytes_take(&bytes, given);
	return true;
}

/* If that fails, do not read ahead: the reader will report the error. */
static void read_at(const struct frames_ahead *ahead, struct frame_worker *worker, uint64_t offset)
{
	uint64_t left = ahead->file->data_end - offset;
	struct mmt_error *error;

	worker->offset = offset;
	worker->size = left < INPUT_BYTES ? left : INPUT_BYTES;
	error = recording_file_read(ahead->file, offset, worker->input, worker->size);
	if (error)
		worker->size = 0;
	mmt_error_destroy(error);
}

/* The complete record at `offset`; NULL: there is none. */
static const uint8_t *look_at(const struct frames_ahead *ahead, struct frame_worker *worker, uint64_t offset,
			      struct perf_event_header *header)
{
	bool again = offset != worker->offset;

	for (;;) {
		size_t position = offset - worker->offset, left = worker->size > position ? worker->size - position : 0;

		*header = (struct perf_event_header){.size = HEADER_BYTES};
		if (left >= HEADER_BYTES)
			memcpy(header, worker->input + position, sizeof(*header));
		if (header->size < HEADER_BYTES)
			return NULL;
		if (header->size <= left)
			return worker->input + position;
		if (!again)
			return NULL;
		read_at(ahead, worker, offset);
		again = false;
	}
}

/* The next compressed record, unless it is too far ahead. Records followed by a payload are left to the reader. */
static const uint8_t *find_compressed(const struct frames_ahead *ahead, struct frame_worker *worker,
				      struct perf_event_header *header, uint64_t *offset_ret)
{
	uint64_t offset = ahead->position, limit = offset + INPUT_BYTES;

	read_at(ahead, worker, offset);
	while (offset < limit) {
		const uint8_t *record = look_at(ahead, worker, offset, header);

		if (!record || header->type == RECORD_AUXTRACE || header->type == RECORD_HEADER_TRACING_DATA)
			break;
		*offset_ret = offset;
		if (header->type == RECORD_COMPRESSED || header->type == RECORD_COMPRESSED2)
			return record;
		offset += header->size;
	}
	return NULL;
}

/* Add the next frame to the queue; NULL: not added. Others may wait for the lock during this read, because the reader
 * needs the frame soon anyway. */
static struct frame *claim(struct frames_ahead *ahead, struct frame_worker *worker, const uint8_t **data_ret,
			   size_t *size_ret)
{
	struct frame *frame = &ahead->frames[(ahead->first + ahead->count) % FRAMES_AHEAD_MAX];
	struct perf_event_header header;
	const uint8_t *record;
	uint64_t offset;
	size_t expected;

	if (ahead->parked || ahead->hopeless || ahead->count == FRAMES_AHEAD_MAX || ahead->bytes >= FRAMES_AHEAD_BYTES)
		return NULL;
	record = find_compressed(ahead, worker, &header, &offset);
	ahead->parked = !record || !frames_ahead_find_stream(record, header.size, data_ret, size_ret);
	expected = ahead->parked ? 0 : compress_expect_content(*data_ret, *size_ret, LIMIT_FRAME_BYTES);
	ahead->parked |= expected > FRAMES_AHEAD_LARGEST;
	if (ahead->parked)
		return NULL;
	*frame = (struct frame){.offset = offset, .bytes = expected};
	ahead->position = offset + header.size;
	ahead->count++;
	ahead->bytes += expected;
	return frame;
}

/* NULL: not of the usual form, or out of memory. */
static struct record_block *decompress(const struct frames_ahead *ahead, struct frame_worker *worker,
				       const uint8_t *data, size_t size, size_t expected)
{
	struct record_block *block = record_blocks_take(ahead->blocks, expected, FRAMES_AHEAD_LARGEST);

	if (!block || decompressor_frame(worker->decompressor, data, size, &block->content))
		return block;
	mmt_error_destroy(buffer_finish(&block->content));
	record_blocks_give_back(ahead->blocks, block);
	return NULL;
}

/* Called with the lock held; releases it while working. False: there is nothing to do. */
static bool do_next(struct frames_ahead *ahead, struct frame_worker *worker)
{
	const uint8_t *data;
	size_t size;
	struct frame *frame = claim(ahead, worker, &data, &size);
	struct record_block *block;

	if (!frame)
		return false;
	pthread_mutex_unlock(&ahead->lock);
	block = decompress(ahead, worker, data, size, frame->bytes);
	pthread_mutex_lock(&ahead->lock);
	frame->block = block;
	frame->done = true;
	ahead->hopeless |= !block;
	pthread_cond_signal(&ahead->done);
	return true;
}

bool frames_ahead_decompress_one(struct frames_ahead *ahead)
{
	bool helped;

	pthread_mutex_lock(&ahead->lock);
	helped = do_next(ahead, ahead->helpers);
	pthread_mutex_unlock(&ahead->lock);
	return helped;
}

static struct record_block *take_first(struct frames_ahead *ahead)
{
	struct frame *frame = &ahead->frames[ahead->first];

	ahead->first = (ahead->first + 1) % FRAMES_AHEAD_MAX;
	ahead->count--;
	ahead->bytes -= frame->bytes;
	return TAKE(frame->block);
}

/* While the other thread decompresses this frame, the reader decompresses a later one. */
static struct record_block *take(struct frames_ahead *ahead, uint64_t offset)
{
	while (ahead->count && ahead->frames[ahead->first].offset <= offset) {
		const struct frame *frame = &ahead->frames[ahead->first];

		if (!frame->done && !do_next(ahead, ahead->readers))
			pthread_cond_wait(&ahead->done, &ahead->lock);
		else if (frame->done && frame->offset == offset)
			return take_first(ahead);
		else if (frame->done)
			record_blocks_give_back(ahead->blocks, take_first(ahead));
	}
	return NULL;
}

struct record_block *frames_ahead_take(struct frames_ahead *ahead, uint64_t offset, uint64_t end)
{
	struct record_block *block;

	if (!ahead)
		return NULL;
	pthread_mutex_lock(&ahead->lock);
	block = take(ahead, offset);
	if (ahead->position < end) {
		ahead->position = end;
		ahead->parked = false;
	}
	pthread_mutex_unlock(&ahead->lock);
	return block;
}

#define BATCHES 4
#define THREAD_FROM_BYTES (1u << 20) /* with less data a thread is not worth starting */

struct readahead {
	const struct recording_file *file;
	const struct layouts *layouts;
	const struct decoder *decoder;
	struct callchain_numbers *numbers;
	struct record_blocks *blocks;
	struct records *records;
	struct order *order;
	struct layouts_recent recent;
	enum readahead_end end;
	bool drained; /* no more records to push */
	struct reorder_unfinished unfinished;

	struct readahead_batch batches[BATCHES];
	struct ahead_call *calls[BATCHES]; /* of the batches; NULL before the thread runs */
	size_t filled, used;		   /* number of batches so far; used: up to the one that the caller has */
	bool looking;			   /* the caller has batch number `used` */
	bool threaded, stop;
	pthread_t thread;
	pthread_mutex_t lock; /* protects filled, used, stop */
	pthread_cond_t change;
};

static struct mmt_error *describe_short_record(const struct record *record)
{
	return error_create(MMT_ERROR_FORMAT, "record at offset %llu (%s): ends too early at byte %u",
			    (unsigned long long)record->offset, record_type_name(record->header.type),
			    record->header.size);
}

/* A FORK record also has a time in its body, which is used if records have no trailer. */
static uint64_t find_time(const struct record *record)
{
	struct bytes bytes;

	if (record->header.type != PERF_RECORD_FORK && record->header.type != PERF_RECORD_EXIT)
		return 0;
	bytes = bytes_over(record->data, record->header.size);
	bytes_skip(&bytes, sizeof(struct perf_event_header) + 4 * sizeof(uint32_t));
	return bytes_u64(&bytes);
}

static struct mmt_error *stop_pushing(struct readahead *readahead, struct readahead_batch *batch)
{
	bool early = readahead->end == READAHEAD_CUT || (readahead->end == READAHEAD_WHOLE && batch->damage);

	readahead->drained = true;
	return early ? reorder_end_early(readahead->order, &readahead->unfinished, &batch->done)
		     : reorder_end(readahead->order);
}

/* Adds one record to the order. */
static struct mmt_error *push_record(struct readahead *readahead, const struct record *record,
				     struct readahead_batch *batch)
{
	struct reorder_item item = {.record = record->data, .block = record->block, .size = record->header.size};
	struct record_place place;

	if (record->header.type == RECORD_FINISHED_ROUND)
		return reorder_end_round(readahead->order);
	if (!layouts_find_place(readahead->layouts, &readahead->recent, &record->header, record->data, &place)) {
		batch->damage = describe_short_record(record);
		return stop_pushing(readahead, batch);
	}
	/* Records without a time, which perf synthesized before it began, keep their place in the file. */
	item.time_ns = place.time_ns ? place.time_ns : find_time(record);
	item.attribute = place.attribute;
	return reorder_push(readahead->order, &item, place.stream);
}

static struct mmt_error *read_record(struct readahead *readahead, struct readahead_batch *batch)
{
	struct mmt_error *error, *damage;
	struct record record;
	bool end;

	error = records_next(readahead->records, &record, &end, &damage);
	if (error)
		return error;
	if (!end && !damage)
		return push_record(readahead, &record, batch);
	batch->damage = damage;
	return stop_pushing(readahead, batch);
}

/* Until some records may be handed out, or a block may be returned. */
static struct mmt_error *read_records(struct readahead *readahead, struct readahead_batch *batch)
{
	struct mmt_error *error;

	do
		error = read_record(readahead, batch);
	while (!error && !readahead->drained && !reorder_has_releasable(readahead->order) &&
	       !records_has_retired(readahead->records));
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

static void fill(struct readahead *readahead, struct readahead_batch *batch)
{
	batch->count = 0;
	batch->calls = NULL;
	/* Return blocks without waiting records soon, even if there is no record to hand out. */
	while (!batch->count && !batch->error && !batch->last && !batch->done) {
		batch->count = reorder_take(readahead->order, batch->items, READAHEAD_BATCH_RECORDS,
					    READAHEAD_BATCH_BYTES, &batch->done);
		if (!batch->count && readahead->drained)
			batch->last = true;
		else if (!batch->count)
			batch->error = read_records(readahead, batch);
		/* Records of an earlier batch may be in these blocks, so return them with this batch, which is used
		 * later. */
		add_blocks(&batch->done, records_retired(readahead->records));
	}
	batch->last |= batch->error != NULL;
	batch->violations = reorder_violations(readahead->order);
	batch->unfinished = readahead->unfinished;
}

/* Memory for decoding ahead. If there is none, batches are not decoded ahead. */
static void decode(struct readahead *readahead, struct readahead_batch *batch)
{
	struct ahead_call **calls = &readahead->calls[batch - readahead->batches];

	if (!readahead->decoder)
		return;
	if (!readahead->numbers)
		mmt_error_destroy(callchain_numbers_create(&readahead->numbers));
	if (!*calls)
		*calls = malloc(READAHEAD_BATCH_RECORDS * sizeof(**calls));
	if (!readahead->numbers || !*calls)
		return;
	decode_ahead(readahead->decoder, readahead->numbers, batch->items, batch->count, *calls);
	batch->calls = *calls;
}

static void *run(void *context)
{
	struct readahead *readahead = context;
	bool last = false;

	pthread_setname_np(pthread_self(), "mmtrace-ahead");
	while (!last) {
		struct readahead_batch *batch;

		pthread_mutex_lock(&readahead->lock);
		while (!readahead->stop && readahead->filled - readahead->used == BATCHES)
			pthread_cond_wait(&readahead->change, &readahead->lock);
		last = readahead->stop;
		pthread_mutex_unlock(&readahead->lock);
		if (last)
			break;
		batch = &readahead->batches[readahead->filled % BATCHES];
		fill(readahead, batch);
		decode(readahead, batch);
		last = batch->last;
		pthread_mutex_lock(&readahead->lock);
		readahead->filled++;
		pthread_cond_signal(&readahead->change);
		pthread_mutex_unlock(&readahead->lock);
	}
	return NULL;
}

/* With a single CPU, decompressing in two threads gains nothing. */
static bool has_processors(void)
{
	cpu_set_t set;

	/* If the set is too small, there are more CPUs than one. */
	return sched_getaffinity(0, sizeof(set), &set) < 0 || CPU_COUNT(&set) > 1;
}

static void start_thread(struct readahead *readahead)
{
	if (has_processors())
		records_start_readahead(readahead->records);
	readahead->threaded = thread_start(&readahead->thread, run, readahead) == 0;
}

struct mmt_error *readahead_create(const struct recording_file *file, const struct layouts *layouts,
				   const struct decoder *decoder, enum readahead_end end,
				   struct readahead **readahead_ret)
{
	struct readahead *readahead = calloc(1, sizeof(*readahead));
	struct mmt_error *error;

	if (!readahead)
		return &error_no_memory;
	pthread_mutex_init(&readahead->lock, NULL);
	pthread_cond_init(&readahead->change, NULL);
	readahead->file = file;
	readahead->layouts = layouts;
	readahead->decoder = decoder;
	readahead->end = end;
	error = record_blocks_create(&readahead->blocks);
	if (!error)
		error = records_create(file, &readahead->records);
	if (!error)
		error = reorder_create(layouts->stream_count, &readahead->order);
	if (error) {
		readahead_destroy(readahead);
		return error;
	}
	records_share_blocks(readahead->records, readahead->blocks);
	*readahead_ret = readahead;
	return NULL;
}

static void stop_thread(struct readahead *readahead)
{
	if (!readahead->threaded)
		return;
	pthread_mutex_lock(&readahead->lock);
	readahead->stop = true;
	pthread_cond_signal(&readahead->change);
	pthread_mutex_unlock(&readahead->lock);
	pthread_join(readahead->thread, NULL);
}

void readahead_destroy(struct readahead *readahead)
{
	if (!readahead)
		return;
	stop_thread(readahead);
	for (size_t i = 0; i < BATCHES; i++) {
		mmt_error_destroy(readahead->batches[i].damage);
		mmt_error_destroy(readahead->batches[i].error);
		if (readahead->batches[i].done)
			record_blocks_give_back(readahead->blocks, readahead->batches[i].done);
		free(readahead->calls[i]);
	}
	callchain_numbers_destroy(readahead->numbers);
	/* The records module returns the blocks that are still being read, the order returns all others. */
	reorder_destroy(readahead->order, readahead->blocks);
	records_destroy(readahead->records);
	record_blocks_destroy(readahead->blocks);
	pthread_cond_destroy(&readahead->change);
	pthread_mutex_destroy(&readahead->lock);
	free(readahead);
}

/* The caller has finished with its batch. */
static void recycle(struct readahead *readahead, struct readahead_batch *batch)
{
	if (batch->done)
		record_blocks_give_back(readahead->blocks, TAKE(batch->done));
	mmt_error_destroy(TAKE(batch->damage));
}

/* Called with the lock held. While waiting, decompress frames that the thread will need. */
static void wait_for_batch(struct readahead *readahead)
{
	while (readahead->filled == readahead->used) {
		bool helped;

		pthread_mutex_unlock(&readahead->lock);
		helped = records_decompress_one(readahead->records);
		pthread_mutex_lock(&readahead->lock);
		if (!helped && readahead->filled == readahead->used)
			pthread_cond_wait(&readahead->change, &readahead->lock);
	}
}

struct readahead_batch *readahead_next(struct readahead *readahead)
{
	struct readahead_batch *batch = &readahead->batches[readahead->used % BATCHES];

	if (readahead->looking && batch->last)
		return batch;
	if (!readahead->looking && !readahead->threaded &&
	    readahead->file->data_end - readahead->file->data_offset > THREAD_FROM_BYTES)
		start_thread(readahead);
	if (readahead->looking)
		recycle(readahead, batch);
	pthread_mutex_lock(&readahead->lock);
	readahead->used += readahead->looking;
	readahead->looking = true;
	if (readahead->threaded) {
		pthread_cond_signal(&readahead->change);
		wait_for_batch(readahead);
	}
	pthread_mutex_unlock(&readahead->lock);
	batch = &readahead->batches[readahead->used % BATCHES];
	if (!readahead->threaded)
		fill(readahead, batch);
	return batch;
}
