// SPDX-License-Identifier: LGPL-2.1-or-later
/* Puts records into time order and decodes them to batches of events, on a thread of its own where that pays. */
#include "trace/read/event-batches.h"

#include <pthread.h>

#include "base/helper-process.h"
#include "base/cleanup.h"
#include "base/errors.h"
#include "base/limits.h"
#include "base/map.h"
#include "base/vector.h"
#include "trace/read/records.h"

#define BATCHES 3		     /* one that the caller has, one that waits, and one that is filled */
#define THREAD_FROM_BYTES (1u << 20) /* with less data a thread is not worth starting */
#define ORDERED_RECORDS 4096
#define ORDERED_BYTES (1u << 20)
#define CALLCHAINS 8 /* of the largest size, in a batch */

/* Event dedup: a thread created while mmtrace attached to its process can inherit an event from several roots. Each of
 * these fires, so one call produces several records. Of the roots that fire for one (thread, attribute, CPU), only the
 * first counts; ids are per root and CPU. */
struct dedup_root {
	uint64_t key; /* (thread, attribute, CPU) */
	uint64_t id;
	uint64_t time_ns; /* of its last record */
};

struct dedup {
	VECTOR(struct dedup_root) roots;
	struct map places;	/* key -> place in `roots` */
	struct map allocations; /* thread -> when its TID was last reused */
	size_t sweep_at;
};

/* Duplicates are microseconds apart. A root without records for this long loses its preference, so that a thread with a
   reused TID never loses its records to a thread that has ended. */
#define DEDUP_WINDOW_NS 1000000000ULL
#define DEDUP_SWEEP_MINIMUM (1u << 16)

static void dedup_deinit(struct dedup *dedup)
{
	vector_deinit(&dedup->roots);
	map_deinit(&dedup->places);
	map_deinit(&dedup->allocations);
}

static bool is_recent(uint64_t then_ns, uint64_t now_ns)
{
	return now_ns < then_ns || now_ns - then_ns <= DEDUP_WINDOW_NS;
}

static bool add_root(struct dedup *dedup, const struct dedup_root *root)
{
	return map_put(&dedup->places, root->key, dedup->roots.count) && vector_push(&dedup->roots, *root);
}

/* Old entries are not used, so memory need not grow with the recording. */
static void sweep(struct dedup *dedup, uint64_t now_ns)
{
	struct dedup kept = {0};
	uint64_t tid, time_ns;

	for (size_t i = 0; i < dedup->roots.count; i++) {
		if (is_recent(dedup->roots.items[i].time_ns, now_ns))
			(void)add_root(&kept, &dedup->roots.items[i]);
	}
	for (size_t i = 0; map_next(&dedup->allocations, &i, &tid, &time_ns);) {
		if (is_recent(time_ns, now_ns))
			(void)map_put(&kept.allocations, tid, time_ns);
	}
	kept.sweep_at = 2 * (kept.roots.count + kept.allocations.count);
	dedup_deinit(dedup);
	*dedup = kept;
}

/* Whether the record is a duplicate. If out of memory, returns false: one duplicate too many is better than aborting.
 */
static bool dedup_check(struct dedup *dedup, int32_t tid, uint32_t attribute, int32_t cpu, uint64_t id,
			uint64_t time_ns)
{
	/* Attributes are fewer than 2^12, processors than 2^20. */
	const uint64_t key =
	    (uint64_t)(uint32_t)tid << 32 | (uint64_t)(attribute & 0xfff) << 20 | ((uint32_t)cpu & 0xfffff);
	const struct dedup_root fresh = {.key = key, .id = id, .time_ns = time_ns};
	const uint64_t *allocation, *place = map_get(&dedup->places, key);
	struct dedup_root *root = place && *place < dedup->roots.count ? &dedup->roots.items[*place] : NULL;

	if (root) {
		if (root->id != id && is_recent(root->time_ns, time_ns)) {
			allocation = map_get(&dedup->allocations, (uint32_t)tid);
			if (!allocation || root->time_ns >= *allocation)
				return true;
		}
		*root = fresh;
		return false;
	}
	if (dedup->roots.count >= DEDUP_SWEEP_MINIMUM && dedup->roots.count >= dedup->sweep_at)
		sweep(dedup, time_ns);
	(void)add_root(dedup, &fresh);
	return false;
}

/* A new thread has this TID since `time_ns`. */
static void dedup_forget(struct dedup *dedup, int32_t tid, uint64_t time_ns)
{
	if (dedup->allocations.count >= DEDUP_SWEEP_MINIMUM && dedup->allocations.count >= dedup->sweep_at)
		sweep(dedup, time_ns);
	(void)map_put(&dedup->allocations, (uint32_t)tid, time_ns);
}

struct event_batches {
	const struct recording_file *file;
	const struct layouts *layouts;
	struct decoder *decoder;
	struct dedup dedup;
	struct records *records;
	struct order *order;
	enum ordered_end end;
	bool drained;	       /* no more records to push to the order */
	bool paused;	       /* there are none for now */
	uint64_t names_offset; /* see event_batches_names_offset() */
	struct reorder_unfinished unfinished;
	size_t ordered_count, position; /* in `ordered`; `position`: of the next one to decode */
	struct record_block *done;	/* blocks that give no more records after these */
	bool ended;			/* the order is empty */
	uint64_t sequence;		/* of the last event */

	size_t filled, taken; /* number of batches so far */
	bool threaded, stop;
	pthread_t thread;
	pthread_mutex_t lock; /* protects filled, taken, stop */
	pthread_cond_t change;

	/* Large: not cleared, except for what stands before the events. */
	struct event_batch items[BATCHES];	      /* only the first without a thread */
	struct reorder_item ordered[ORDERED_RECORDS]; /* taken from the order */
};

/* Offset in the file of the record, or of the compressed record that holds it. */
static uint64_t find_offset(const struct reorder_item *item)
{
	const struct record_block *block = item->block;

	return block->compressed ? block->offset : block->offset + (uint64_t)(item->record - block->content.data);
}

static COLD struct mmt_error *describe_damage(uint64_t offset, uint32_t type, const char *what, size_t place)
{
	return error_create(MMT_ERROR_FORMAT, "record at offset %llu (%s): %s at byte %zu", (unsigned long long)offset,
			    record_type_name(type), what, place);
}

/* Keep only the first; `damage` may be NULL. */
static void note_damage(struct event_batch *batch, struct mmt_error *damage)
{
	if (batch->damage)
		mmt_error_destroy(damage);
	else
		batch->damage = damage;
}

/* The data has ended, with or without damage. */
static struct mmt_error *stop_pushing(struct event_batches *batches, struct event_batch *batch,
				      struct mmt_error *damage)
{
	bool early = batches->end == ORDERED_CUT || (batches->end == ORDERED_COMPLETE && damage);

	note_damage(batch, damage);
	batches->drained = true;
	return early ? reorder_end_early(batches->order, &batches->unfinished, &batches->done)
		     : reorder_end(batches->order);
}

/* Read one record and add it to the order. */
static struct mmt_error *push_record(struct event_batches *batches, struct event_batch *batch)
{
	struct reorder_item item;
	struct record_identity identity;
	struct record record;
	struct mmt_error *damage, *error;
	struct bytes bytes;
	bool end;

	error = records_next(batches->records, &record, &end, &damage);
	if (error)
		return error;
	batches->paused = end && !damage && batches->file->follows;
	if (batches->paused)
		return NULL;
	if (end || damage)
		return stop_pushing(batches, batch, damage);
	if (record.header.type == RECORD_FINISHED_ROUND)
		return reorder_end_round(batches->order);
	if (!layouts_identify(batches->layouts, &record.header, record.data, &identity))
		return stop_pushing(
		    batches, batch,
		    describe_damage(record.offset, record.header.type, "ends too early", record.header.size));
	if (record.header.type == RECORD_TEXT_POKE && identity.id == NAME_PIECE_ID)
		batches->names_offset = record.offset;
	/* A FORK record also has a time in its body, which is used if records have no trailer. */
	if (!identity.time_ns && (record.header.type == PERF_RECORD_FORK || record.header.type == PERF_RECORD_EXIT)) {
		bytes = bytes_over(record.data, record.header.size);
		bytes_skip(&bytes, RECORD_HEADER_BYTES + 4 * sizeof(uint32_t));
		identity.time_ns = bytes_u64(&bytes);
	}
	/* Records without a time, which perf synthesized before it began, keep their place in the file. */
	item = (struct reorder_item){.time_ns = identity.time_ns,
				     .record = record.data,
				     .block = record.block,
				     .attribute = identity.attribute,
				     .size = record.header.size};
	return reorder_push(batches->order, &item, identity.id && identity.id < SNAPSHOT_ID_FIRST);
}

/* Append the event of the record, if it gives one. */
static void decode_item(struct event_batches *batches, const struct reorder_item *item, struct event_batch *batch)
{
	struct event *event = &batch->events[batch->count];
	struct record_identity identity;
	struct perf_event_header header;
	struct bytes bytes;
	bool may_be_copy;

	header = record_header(item->record);
	layouts_read(batches->layouts, &header, item->record, item->attribute, &identity);
	/* The parts of a snapshot have different ids. */
	may_be_copy = identity.attribute != UINT32_MAX && identity.id && identity.id < SNAPSHOT_ID_FIRST &&
		      identity.tid >= 0 && identity.cpu >= 0 &&
		      batches->layouts->items[identity.attribute].may_come_twice;
	if (may_be_copy &&
	    dedup_check(&batches->dedup, identity.tid, identity.attribute, identity.cpu, identity.id, identity.time_ns))
		return;
	if (!decoder_decode(batches->decoder, &header, item->record, &identity, event, &bytes)) {
		note_damage(batch,
			    describe_damage(find_offset(item), header.type, bytes.failure, bytes.failure_offset));
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

/* Take the next records from the order. The blocks before belong to this batch: it has the last of their events. */
static void take_records(struct event_batches *batches, struct event_batch *batch)
{
	record_blocks_add(&batch->done, TAKE(batches->done));
	batches->position = batches->ordered_count = 0;
	/* Return blocks without waiting records soon, even if there is no record to hand out. */
	while (!batch->error && !batches->ordered_count && !batches->ended && !batches->done && !batches->paused) {
		batches->ordered_count =
		    reorder_take(batches->order, batches->ordered, ORDERED_RECORDS, ORDERED_BYTES, &batches->done);
		batches->ended = !batches->ordered_count && batches->drained;
		/* Read until some records may be handed out, or a block may be returned. */
		while (!batch->error && !batches->ordered_count && !batches->drained && !batches->done &&
		       !batches->paused && !reorder_has_releasable(batches->order)) {
			batch->error = push_record(batches, batch);
			/* Records that were taken may be in these blocks. */
			record_blocks_add(&batches->done, records_retired(batches->records));
		}
	}
}

static void fill(struct event_batches *batches, struct event_batch *batch)
{
	struct decoder *decoder = batches->decoder;

	records_recycle(batches->records, TAKE(batch->done));
	batch->count = 0;
	batches->paused = false;
	decoder->callchain = batch->callchains;
	decoder->callchain_left = CALLCHAINS * LIMIT_CALLCHAIN;
	while (!batch->count && !batch->last && !batches->paused) {
		if (batches->position == batches->ordered_count)
			take_records(batches, batch);
		while (batches->position < batches->ordered_count && batch->count < EVENT_BATCH_EVENTS &&
		       !batch->last && decoder->callchain_left >= LIMIT_CALLCHAIN)
			decode_item(batches, &batches->ordered[batches->position++], batch);
		batch->last |= batch->error || (batches->ended && batches->position == batches->ordered_count);
	}
	batch->violations = reorder_violations(batches->order);
	batch->unfinished = batches->unfinished;
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
	struct event_batches *batches = malloc(sizeof(*batches));
	struct mmt_error *error;

	if (!batches)
		return &error_no_memory;
	memset(batches, 0, offsetof(struct event_batches, items));
	for (size_t i = 0; i < BATCHES; i++)
		memset(&batches->items[i], 0, offsetof(struct event_batch, events));
	pthread_mutex_init(&batches->lock, NULL);
	pthread_cond_init(&batches->change, NULL);
	batches->file = file;
	batches->layouts = layouts;
	batches->decoder = decoder;
	batches->end = end;
	error = records_create(file, &batches->records) ?: reorder_create(file->size, &batches->order);
	for (size_t i = 0; !error && i < BATCHES; i++) {
		batches->items[i].callchains = malloc(CALLCHAINS * LIMIT_CALLCHAIN * sizeof(uint64_t));
		if (!batches->items[i].callchains)
			error = &error_no_memory;
	}
	if (error) {
		event_batches_destroy(batches);
		return error;
	}
	*batches_ret = batches;
	return NULL;
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
		record_blocks_destroy(batches->items[i].done);
		free(batches->items[i].callchains);
	}
	record_blocks_destroy(batches->done);
	/* `records` destroys the blocks that are still being read, the order all others. */
	reorder_destroy(batches->order);
	records_destroy(batches->records);
	dedup_deinit(&batches->dedup);
	pthread_cond_destroy(&batches->change);
	pthread_mutex_destroy(&batches->lock);
	free(batches);
}

uint64_t event_batches_names_offset(const struct event_batches *batches)
{
	return batches->names_offset;
}

struct event_batch *event_batches_next(struct event_batches *batches)
{
	struct event_batch *batch;

	if (!batches->taken && !batches->file->follows &&
	    batches->file->data_end - batches->file->data_offset > THREAD_FROM_BYTES)
		batches->threaded = thread_start(&batches->thread, run, batches) == 0;
	batch = &batches->items[batches->threaded ? batches->taken % BATCHES : 0];
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
