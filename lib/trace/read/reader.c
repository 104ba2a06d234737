// SPDX-License-Identifier: LGPL-2.1-or-later
#include "trace/read/reader.h"

#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/cold.h"
#include "trace/format/sample-layout.h"
#include "trace/read/decode.h"
#include "trace/read/dedup.h"
#include "trace/read/metadata.h"
#include "trace/read/readahead.h"
#include "trace/read/recording-file.h"
#include "trace/read/records.h"

#define FETCH_AHEAD_RECORDS 6

struct reader {
	struct recording_file *file;
	struct metadata metadata;
	struct layouts layouts;
	struct readahead *readahead;   /* NULL: the last event was returned */
	struct readahead_batch *batch; /* NULL: before the first batch and after the last */
	size_t position;	       /* of the next record in the batch */
	struct dedup dedup;
	struct decoder *decoder;
	struct mmt_error *damage;	      /* first damage */
	uint64_t sequence;		      /* of the last event */
	uint64_t out_of_order;		      /* kept when the readahead is destroyed */
	struct reorder_unfinished unfinished; /* likewise */
	bool stopped;			      /* an event could not be decoded */
};

static enum readahead_end readahead_end_of(const struct reader_metadata *metadata)
{
	if (metadata->packed)
		return READAHEAD_IN_ORDER;
	return metadata->incomplete ? READAHEAD_CUT : READAHEAD_WHOLE;
}

/* Sets what can be derived from the file. Takes `error` and the reader. */
static struct mmt_error *start(struct reader *reader, struct mmt_error *error, struct reader **reader_ret)
{
	if (!error)
		error = metadata_load(&reader->metadata, reader->file);
	if (!error)
		error = layouts_create(reader->file, &reader->layouts);
	if (!error && reader->metadata.values.ours && !reader->metadata.values.has_loss)
		error = incremental_metadata_read(reader->file, &reader->layouts, &reader->metadata.values,
						  &reader->damage);
	if (!error)
		error = decoder_create(reader->file, &reader->layouts, &reader->metadata.values, &reader->decoder);
	if (!error)
		error = readahead_create(reader->file, &reader->layouts, reader->decoder,
					 readahead_end_of(&reader->metadata.values), &reader->readahead);
	if (error)
		reader_close(reader);
	else
		*reader_ret = reader;
	return error;
}

struct mmt_error *reader_open_watched(const char *path, const struct mmt_progress *progress, struct reader **reader_ret)
{
	struct reader *reader = calloc(1, sizeof(*reader));

	if (!reader)
		return &error_no_memory;
	return start(reader, recording_file_open_watched(path, progress, &reader->file), reader_ret);
}

struct mmt_error *reader_open_descriptor(int fd, const char *name, const struct mmt_progress *progress,
					 struct reader **reader_ret)
{
	struct reader *reader = calloc(1, sizeof(*reader));

	if (!reader)
		return &error_no_memory;
	return start(reader, recording_file_open_descriptor(fd, name, progress, &reader->file), reader_ret);
}

struct mmt_error *reader_open(const char *path, struct reader **reader_ret)
{
	return reader_open_watched(path, NULL, reader_ret);
}

uint64_t reader_data_end(const struct reader *reader)
{
	return reader->file->data_end;
}

struct mmt_error *reader_open_again(const struct reader *reader, struct reader **reader_ret)
{
	struct reader *again = calloc(1, sizeof(*again));

	if (!again)
		return &error_no_memory;
	return start(again, recording_file_open_again(reader->file, &again->file), reader_ret);
}

void reader_close(struct reader *reader)
{
	if (!reader)
		return;
	readahead_destroy(reader->readahead);
	decoder_destroy(reader->decoder);
	dedup_deinit(&reader->dedup);
	layouts_deinit(&reader->layouts);
	metadata_deinit(&reader->metadata);
	recording_file_close(reader->file);
	mmt_error_destroy(reader->damage);
	free(reader);
}

const struct recording_file *reader_file(const struct reader *reader)
{
	return reader->file;
}

void reader_leave_out_unused_stacks(struct reader *reader)
{
	reader->decoder->only_used_stacks = true;
}

const struct reader_metadata *reader_metadata(const struct reader *reader)
{
	return &reader->metadata.values;
}

uint64_t reader_file_bytes(const struct reader *reader)
{
	return reader->file->size;
}

const char *reader_damage(const struct reader *reader)
{
	const struct mmt_error *damage = reader->damage ? reader->damage : reader->metadata.damage;

	return damage ? mmt_error_get_message(damage) : NULL;
}

uint64_t reader_out_of_order(const struct reader *reader)
{
	return reader->batch ? reader->batch->violations : reader->out_of_order;
}

struct reorder_unfinished reader_unfinished(const struct reader *reader)
{
	const struct packed_stacks *packed = &reader->metadata.values.stacks;

	return (struct reorder_unfinished){.records = reader->unfinished.records + packed->unfinished_records,
					   .span_ns = reader->unfinished.span_ns + packed->unfinished_ns};
}

/* Keeps only the first. Takes `damage`. */
static void note_damage(struct reader *reader, struct mmt_error *damage)
{
	if (reader->damage)
		mmt_error_destroy(damage);
	else
		reader->damage = damage;
}

static struct mmt_error *describe_wrong_record(const struct perf_event_header *header, uint64_t offset,
					       const char *what, size_t place)
{
	return error_create(MMT_ERROR_FORMAT, "record at offset %llu (%s): %s at byte %zu", (unsigned long long)offset,
			    record_type_name(header->type), what, place);
}

static inline bool is_copy(struct reader *reader, uint32_t attribute, int32_t tid, int32_t cpu, uint64_t id,
			   uint64_t time_ns)
{
	if (attribute == UINT32_MAX || id == 0 || tid < 0 || cpu < 0)
		return false;
	/* The parts of a snapshot have different ids. */
	if (!reader->layouts.items[attribute].may_come_twice || id >= SNAPSHOT_ID_FIRST)
		return false;
	return dedup_check(&reader->dedup, tid, attribute, cpu, id, time_ns);
}

/* Offset in the file of the record, or of the compressed record that holds it. */
static uint64_t find_offset(const struct reorder_item *item)
{
	const struct record_block *block = item->block;

	return block->compressed ? block->offset : block->offset + (uint64_t)(item->record - block->content.data);
}

static void number_event(struct reader *reader, const struct reorder_item *item, struct event *event)
{
	event->sequence = ++reader->sequence;
	event->record = item->record;
	event->file_offset = find_offset(item);
}

/* False: the record is a copy. */
static bool expand_item(struct reader *reader, const struct reorder_item *item, const struct ahead_call *call,
			struct event *event)
{
	if (is_copy(reader, item->attribute, call->tid, call->cpu, call->id, item->time_ns))
		return false;
	decode_ahead_expand(reader->decoder, item, call, event);
	number_event(reader, item, event);
	return true;
}

/* False: the record is a copy or damaged; there is no event to return. */
static COLD bool decode_item(struct reader *reader, const struct reorder_item *item, struct event *event)
{
	struct record_identity identity;
	struct perf_event_header header;
	struct bytes bytes;

	memcpy(&header, item->record, sizeof(header));
	layouts_read(&reader->layouts, &header, item->record, item->attribute, &identity);
	if (is_copy(reader, identity.attribute, identity.tid, identity.cpu, identity.id, identity.time_ns))
		return false;
	if (!decoder_decode(reader->decoder, &header, item->record, &identity, event, &bytes)) {
		note_damage(reader,
			    describe_wrong_record(&header, find_offset(item), bytes.failure, bytes.failure_offset));
		reader->stopped = true;
		return false;
	}
	number_event(reader, item, event);
	if (event->kind == EVENT_FORK)
		dedup_forget(&reader->dedup, event->task.tid, item->time_ns);
	return true;
}

static COLD struct mmt_error *take_batch(struct reader *reader)
{
	reader->batch = readahead_next(reader->readahead);
	reader->position = 0;
	if (reader->batch->damage)
		note_damage(reader, TAKE(reader->batch->damage));
	return TAKE(reader->batch->error);
}

/* Prefetch what another CPU has just written: calls decoded ahead and their registers, or complete records. */
static void fetch_ahead(const struct reader *reader)
{
	const struct readahead_batch *batch = reader->batch;
	size_t near = reader->position + FETCH_AHEAD_RECORDS, far = near + FETCH_AHEAD_RECORDS;

	if (far >= batch->count)
		return;
	if (batch->calls)
		fetch(&batch->calls[far], sizeof(batch->calls[far]));
	if (!batch->calls || !batch->calls[near].ready)
		fetch_record(batch->items[near].record, batch->items[near].size);
	else if (batch->calls[near].registers)
		fetch(batch->calls[near].registers,
		      reader->decoder->fields[batch->items[near].attribute].register_count * sizeof(uint64_t));
}

/* The next event of the batch. False: the record gives no event. */
static bool take_item(struct reader *reader, struct event *event)
{
	const struct readahead_batch *batch = reader->batch;
	size_t position = reader->position++;

	fetch_ahead(reader);
	if (batch->items[position].epoch != reader->dedup.epoch)
		dedup_begin_epoch(&reader->dedup, batch->items[position].epoch);
	if (batch->calls && batch->calls[position].ready)
		return expand_item(reader, &batch->items[position], &batch->calls[position], event);
	return decode_item(reader, &batch->items[position], event);
}

/* Free the readahead: the code after the last event needs the memory more. */
static COLD void end_feed(struct reader *reader)
{
	reader->out_of_order = reader_out_of_order(reader);
	if (reader->batch)
		reader->unfinished = reader->batch->unfinished;
	reader->batch = NULL;
	readahead_destroy(TAKE(reader->readahead));
	/* Return free memory to the kernel: the allocator keeps the readahead thread's memory for other threads. */
	(void)malloc_trim(0);
}

bool reader_look_ahead(const struct reader *reader, size_t events, struct reader_ahead *ahead_ret)
{
	const struct readahead_batch *batch = reader->batch;
	size_t position = reader->position - 1 + events;
	const struct ahead_call *call;

	if (!batch || !batch->calls || position >= batch->count || !batch->calls[position].ready ||
	    call_describe(reader->metadata.values.attributes[batch->items[position].attribute].call)->place ==
		CALL_AT_RESULT)
		return false;
	call = &batch->calls[position];
	*ahead_ret = (struct reader_ahead){.pid = call->pid, .address = call->arguments[0]};
	return true;
}

struct mmt_error *reader_next(struct reader *reader, struct event *event_ret, bool *end_ret)
{
	*end_ret = false;
	while (reader->readahead && !reader->stopped) {
		struct mmt_error *error;

		while (reader->batch && reader->position < reader->batch->count && !reader->stopped) {
			if (take_item(reader, event_ret))
				return NULL;
		}
		if (reader->stopped || (reader->batch && reader->batch->last))
			break;
		error = take_batch(reader);
		if (error)
			return error;
	}
	*end_ret = true;
	end_feed(reader);
	return NULL;
}
