// SPDX-License-Identifier: LGPL-2.1-or-later
#include "trace/reader.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "trace/copies.h"
#include "trace/decode.h"
#include "trace/layout.h"
#include "trace/metadata.h"
#include "trace/name-pieces.h"
#include "trace/order.h"
#include "trace/recording-file.h"
#include "trace/records.h"

struct reader {
	struct recording_file *file;
	struct metadata metadata;
	struct layouts layouts;
	struct records *records;
	struct order *order;
	struct copies copies;
	struct decoder *decoder;
	struct mmt_error *damage; /* the first */
	uint64_t sequence;	  /* of the last event */
	uint64_t handed_out_ns;	  /* the time of the last record that left the order */
	bool drained;		  /* no more records to push */
	bool stopped;		  /* an event could not be decoded */
};

struct mmt_error *reader_open(const char *path, struct reader **reader_ret)
{
	struct reader *reader = calloc(1, sizeof(*reader));
	struct mmt_error *error;

	if (!reader)
		return &error_no_memory;
	error = recording_file_open(path, &reader->file);
	if (!error)
		error = metadata_load(&reader->metadata, reader->file);
	if (!error)
		error = layouts_create(reader->file, &reader->layouts);
	if (!error && reader->metadata.values.ours && !reader->metadata.values.has_loss)
		error = name_pieces_read(reader->file, &reader->layouts, &reader->metadata.values, &reader->damage);
	if (!error)
		error = decoder_create(reader->file, &reader->layouts, &reader->metadata.values, &reader->decoder);
	if (!error)
		error = records_create(reader->file, &reader->records);
	if (!error)
		error = order_create(&reader->order);
	if (error)
		reader_close(reader);
	else
		*reader_ret = reader;
	return error;
}

void reader_close(struct reader *reader)
{
	if (!reader)
		return;
	order_destroy(reader->order);
	records_destroy(reader->records);
	decoder_destroy(reader->decoder);
	copies_deinit(&reader->copies);
	layouts_deinit(&reader->layouts);
	metadata_deinit(&reader->metadata);
	recording_file_close(reader->file);
	mmt_error_destroy(reader->damage);
	free(reader);
}

const struct reader_metadata *reader_metadata(const struct reader *reader)
{
	return &reader->metadata.values;
}

const char *reader_damage(const struct reader *reader)
{
	const struct mmt_error *damage = reader->damage ? reader->damage : reader->metadata.damage;

	return damage ? mmt_error_get_message(damage) : NULL;
}

uint64_t reader_out_of_order(const struct reader *reader)
{
	return order_violations(reader->order);
}

/* Only the first is kept. Takes `damage`. */
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

/* A fork has its time in its body too, which counts where records have no trailer. */
static uint64_t find_time(const struct record *record, const struct record_identity *identity)
{
	struct bytes bytes = bytes_over(record->data, record->header.size);

	if (identity->time_ns)
		return identity->time_ns;
	if (record->header.type != PERF_RECORD_FORK && record->header.type != PERF_RECORD_EXIT)
		return 0;
	bytes_skip(&bytes, sizeof(struct perf_event_header) + 4 * sizeof(uint32_t));
	return bytes_u64(&bytes);
}

static void stop_pushing(struct reader *reader)
{
	reader->drained = true;
	order_end(reader->order);
}

/* One record into the order. */
static struct mmt_error *push_record(struct reader *reader, const struct record *record)
{
	struct record_identity identity;
	uint64_t time_ns;

	if (record->header.type == RECORD_FINISHED_ROUND) {
		order_end_round(reader->order);
		return NULL;
	}
	if (!layouts_identify(&reader->layouts, &record->header, record->data, &identity)) {
		note_damage(reader, describe_wrong_record(&record->header, record->offset, "ends too early",
							  record->header.size));
		stop_pushing(reader);
		return NULL;
	}
	/* Records without a time, which perf made up before it began, take their turn where they stand. */
	time_ns = find_time(record, &identity);
	if (time_ns == 0)
		time_ns = reader->handed_out_ns;
	return order_push(reader->order, time_ns, record->offset, record->data, record->header.size);
}

static struct mmt_error *read_record(struct reader *reader)
{
	struct mmt_error *error, *damage;
	struct record record;
	bool end;

	error = records_next(reader->records, &record, &end, &damage);
	if (error)
		return error;
	if (!end && !damage)
		return push_record(reader, &record);
	if (damage)
		note_damage(reader, damage);
	stop_pushing(reader);
	return NULL;
}

static bool is_copy(struct reader *reader, const struct record_identity *identity)
{
	if (identity->attribute == UINT32_MAX || identity->id == 0 || identity->tid < 0 || identity->cpu < 0)
		return false;
	/* The parts of a snapshot have ids of their own. */
	if (!reader->layouts.items[identity->attribute].may_come_twice || identity->id >= SNAPSHOT_ID_FIRST)
		return false;
	return copies_check(&reader->copies, identity);
}

/* False: the record is a copy, or damaged; nothing to hand out. */
static bool decode_item(struct reader *reader, const struct order_item *item, struct event *event)
{
	struct record_identity identity;
	struct perf_event_header header;
	struct bytes bytes;

	reader->handed_out_ns = item->time_ns;
	memcpy(&header, item->record, sizeof(header));
	/* It was long enough when it was pushed. */
	(void)layouts_identify(&reader->layouts, &header, item->record, &identity);
	if (is_copy(reader, &identity))
		return false;
	if (!decoder_decode(reader->decoder, &header, item->record, &identity, event, &bytes)) {
		note_damage(reader,
			    describe_wrong_record(&header, item->file_offset, bytes.failure, bytes.failure_offset));
		reader->stopped = true;
		return false;
	}
	event->sequence = ++reader->sequence;
	event->record = item->record;
	event->file_offset = item->file_offset;
	if (event->kind == EVENT_FORK)
		copies_forget(&reader->copies, event->task.tid, item->time_ns);
	return true;
}

struct mmt_error *reader_next(struct reader *reader, struct event *event_ret, bool *end_ret)
{
	struct mmt_error *error;
	struct order_item item;

	*end_ret = false;
	while (!reader->stopped) {
		if (order_pop(reader->order, &item)) {
			if (decode_item(reader, &item, event_ret))
				return NULL;
			continue;
		}
		if (reader->drained)
			break;
		error = read_record(reader);
		if (error)
			return error;
	}
	*end_ret = true;
	return NULL;
}
