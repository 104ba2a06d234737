// SPDX-License-Identifier: LGPL-2.1-or-later
/* Puts the records of a recording into time order: reads them, finds their times, and takes them from the order. */
#include "trace/read/ordered-records.h"

#include <linux/perf_event.h>
#include <stdlib.h>

#include "base/bytes.h"
#include "base/cleanup.h"
#include "trace/read/records.h"

struct ordered_records {
	const struct layouts *layouts;
	struct record_blocks *blocks;
	struct records *records;
	struct order *order;
	struct layouts_recent recent;
	enum ordered_end end;
	bool drained; /* no more records to push */
	struct reorder_unfinished unfinished;
	struct ordered_batch batch;
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

static struct mmt_error *stop_pushing(struct ordered_records *ordered)
{
	bool early = ordered->end == ORDERED_CUT || (ordered->end == ORDERED_COMPLETE && ordered->batch.damage);

	ordered->drained = true;
	return early ? reorder_end_early(ordered->order, &ordered->unfinished, &ordered->batch.done)
		     : reorder_end(ordered->order);
}

/* Add one record to the order. */
static struct mmt_error *push_record(struct ordered_records *ordered, const struct record *record)
{
	struct reorder_item item = {.record = record->data, .block = record->block, .size = record->header.size};
	struct record_place place;

	if (record->header.type == RECORD_FINISHED_ROUND)
		return reorder_end_round(ordered->order);
	if (!layouts_find_place(ordered->layouts, &ordered->recent, &record->header, record->data, &place)) {
		ordered->batch.damage = describe_short_record(record);
		return stop_pushing(ordered);
	}
	/* Records without a time, which perf synthesized before it began, keep their place in the file. */
	item.time_ns = place.time_ns ? place.time_ns : find_time(record);
	item.attribute = place.attribute;
	return reorder_push(ordered->order, &item, place.stream);
}

static struct mmt_error *read_record(struct ordered_records *ordered)
{
	struct mmt_error *error, *damage;
	struct record record;
	bool end;

	error = records_next(ordered->records, &record, &end, &damage);
	if (error)
		return error;
	if (!end && !damage)
		return push_record(ordered, &record);
	ordered->batch.damage = damage;
	return stop_pushing(ordered);
}

/* Read until some records may be handed out, or a block may be returned. */
static struct mmt_error *read_records(struct ordered_records *ordered)
{
	struct mmt_error *error;

	do
		error = read_record(ordered);
	while (!error && !ordered->drained && !reorder_has_releasable(ordered->order) &&
	       !records_has_retired(ordered->records));
	return error;
}

static struct mmt_error *fill(struct ordered_records *ordered)
{
	struct ordered_batch *batch = &ordered->batch;
	struct mmt_error *error = NULL;

	/* Return blocks without waiting records soon, even if there is no record to hand out. */
	while (!error && !batch->count && !batch->last && !batch->done) {
		batch->count = reorder_take(ordered->order, batch->items, ORDERED_BATCH_RECORDS, ORDERED_BATCH_BYTES,
					    &batch->done);
		if (!batch->count && ordered->drained)
			batch->last = true;
		else if (!batch->count)
			error = read_records(ordered);
		/* Records of the batch may be in these blocks. */
		record_blocks_add(&batch->done, records_retired(ordered->records));
	}
	batch->last |= error != NULL;
	batch->violations = reorder_violations(ordered->order);
	batch->unfinished = ordered->unfinished;
	return error;
}

struct mmt_error *ordered_records_create(const struct recording_file *file, const struct layouts *layouts,
					 enum ordered_end end, struct ordered_records **ordered_ret)
{
	struct ordered_records *ordered = calloc(1, sizeof(*ordered));
	struct mmt_error *error;

	if (!ordered)
		return &error_no_memory;
	ordered->layouts = layouts;
	ordered->end = end;
	error = record_blocks_create(&ordered->blocks);
	if (!error)
		error = records_create(file, &ordered->records);
	if (!error)
		error = reorder_create(layouts->stream_count, &ordered->order);
	if (error) {
		ordered_records_destroy(ordered);
		return error;
	}
	records_share_blocks(ordered->records, ordered->blocks);
	*ordered_ret = ordered;
	return NULL;
}

void ordered_records_destroy(struct ordered_records *ordered)
{
	if (!ordered)
		return;
	mmt_error_destroy(ordered->batch.damage);
	if (ordered->blocks)
		record_blocks_give_back(ordered->blocks, ordered->batch.done);
	/* The records module returns the blocks that are still being read, the order returns all others. */
	reorder_destroy(ordered->order, ordered->blocks);
	records_destroy(ordered->records);
	record_blocks_destroy(ordered->blocks);
	free(ordered);
}

void ordered_records_give_back(struct ordered_records *ordered, struct record_block *blocks)
{
	record_blocks_give_back(ordered->blocks, blocks);
}

struct mmt_error *ordered_records_next(struct ordered_records *ordered, struct ordered_batch **batch_ret)
{
	struct ordered_batch *batch = *batch_ret = &ordered->batch;

	if (batch->last)
		return NULL;
	ordered_records_give_back(ordered, TAKE(batch->done));
	mmt_error_destroy(TAKE(batch->damage));
	batch->count = 0;
	return fill(ordered);
}
