// SPDX-License-Identifier: LGPL-2.1-or-later
/* Opens a recording, puts its records into time order and decodes them to events. */
#include "trace/read/reader.h"

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

	array_each(root, dedup->roots.items, dedup->roots.count) {
		if (is_recent(root->time_ns, now_ns))
			(void)add_root(&kept, root);
	}
	map_each(thread, &dedup->allocations, true) {
		if (is_recent(thread->value, now_ns))
			(void)map_put(&kept.allocations, thread->key, thread->value);
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
static void note_damage(struct reader *reader, struct mmt_error *damage)
{
	if (reader->damage)
		mmt_error_destroy(damage);
	else
		reader->damage = damage;
}

/* The data has ended, with or without damage. If the recorder did not finish, or damage ends the data, records of the
 * last round may be missing, and those that exist are discarded. The records of a packed recording are in the order of
 * time, so that none is missing before another. */
static struct mmt_error *stop_pushing(struct reader *reader, struct mmt_error *damage)
{
	const struct reader_metadata *metadata = &reader->metadata.values;
	bool incomplete = metadata->incomplete && !reader->file->finished;
	bool early = !metadata->packed && (incomplete || damage);

	note_damage(reader, damage);
	reader->drained = true;
	return early ? reorder_end_early(reader->order, &reader->unfinished, &reader->done)
		     : reorder_end(reader->order);
}

/* Read one record and add it to the order. */
static struct mmt_error *push_record(struct reader *reader)
{
	struct reorder_item item;
	struct record_identity identity;
	struct record record;
	struct mmt_error *damage, *error;
	struct bytes bytes;
	bool end;

	error = records_next(reader->records, &record, &end, &damage);
	if (error)
		return error;
	reader->paused = end && !damage && reader->file->follows;
	if (reader->paused)
		return NULL;
	if (end || damage)
		return stop_pushing(reader, damage);
	if (record.header.type == RECORD_FINISHED_ROUND)
		return reorder_end_round(reader->order);
	if (!layouts_identify(&reader->layouts, &record.header, record.data, &identity))
		return stop_pushing(reader, describe_damage(record.offset, record.header.type, "ends too early",
							    record.header.size));
	if (record.header.type == RECORD_TEXT_POKE && identity.id == NAME_PIECE_ID)
		reader->names_offset = record.offset;
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
	return reorder_push(reader->order, &item, identity.id && identity.id < SNAPSHOT_ID_FIRST);
}

/* False: the record gives no event. */
static bool decode_item(struct reader *reader, const struct reorder_item *item, struct event *event)
{
	struct perf_event_header header = record_header(item->record);
	struct dedup *dedup = &reader->dedup;
	struct record_identity identity;
	struct bytes bytes;
	bool may_be_copy;

	layouts_read(&reader->layouts, &header, item->record, item->attribute, &identity);
	/* The parts of a snapshot have different ids. */
	may_be_copy = identity.attribute != UINT32_MAX && identity.id && identity.id < SNAPSHOT_ID_FIRST &&
		      identity.tid >= 0 && identity.cpu >= 0 &&
		      reader->layouts.items[identity.attribute].may_come_twice;
	if (may_be_copy &&
	    dedup_check(dedup, identity.tid, identity.attribute, identity.cpu, identity.id, identity.time_ns))
		return false;
	if (!decoder_decode(&reader->decoder, &header, item->record, &identity, event, &bytes)) {
		note_damage(reader,
			    describe_damage(find_offset(item), header.type, bytes.failure, bytes.failure_offset));
		reader->ended = true;
		return false;
	}
	event->sequence = ++reader->sequence;
	event->record = item->record;
	event->file_offset = find_offset(item);
	/* A new thread has this TID from now on. */
	if (event->kind == EVENT_FORK) {
		if (dedup->allocations.count >= DEDUP_SWEEP_MINIMUM && dedup->allocations.count >= dedup->sweep_at)
			sweep(dedup, item->time_ns);
		(void)map_put(&dedup->allocations, (uint32_t)event->task.tid, item->time_ns);
	}
	return true;
}

/* The code after the last event needs the memory more. */
static void end_events(struct reader *reader)
{
	reader->names_offset = 0; /* damage may be why */
	record_blocks_destroy(TAKE(reader->done));
	/* `records` destroys the blocks that are still being read, the order all others. */
	reorder_destroy(TAKE(reader->order));
	records_destroy(TAKE(reader->records));
	dedup_deinit(&reader->dedup);
	free(TAKE(reader->decoder.callchain));
}

static struct mmt_error *begin_events(struct reader *reader)
{
	reader->dedup = (struct dedup){0};
	reader->drained = reader->ended = false;
	reader->sequence = reader->out_of_order = 0;
	reader->unfinished = (struct reorder_unfinished){0};
	reader->decoder.callchain = malloc(LIMIT_CALLCHAIN * sizeof(uint64_t));
	if (!reader->decoder.callchain)
		return &error_no_memory;
	return records_create(reader->file, &reader->records) ?: reorder_create(reader->file->size, &reader->order);
}

/* Sets what can be derived from the file. Takes `error` and the file. */
static struct mmt_error *start(struct mmt_error *error, struct recording_file *file, struct reader **reader_ret)
{
	struct reader *reader = error ? NULL : calloc(1, sizeof(*reader));

	if (!reader) {
		recording_file_close(file);
		return error ? error : &error_no_memory;
	}
	reader->file = file;
	error = metadata_load(&reader->metadata, file) ?: layouts_create(file, &reader->layouts);
	if (!error && reader->metadata.values.ours && !reader->metadata.values.has_loss)
		error = incremental_metadata_read(file, &reader->layouts, &reader->metadata.values, &reader->damage);
	error = error ?: decoder_init(&reader->decoder, file, &reader->layouts, &reader->metadata.values);
	error = error ?: begin_events(reader);
	if (error)
		reader_close(reader);
	else
		*reader_ret = reader;
	return error;
}

struct mmt_error *reader_open(const char *path, const struct mmt_progress *progress, struct reader **reader_ret)
{
	struct recording_file *file = NULL;
	struct mmt_error *error = recording_file_open(path, progress, &file);

	return start(error, file, reader_ret);
}

struct mmt_error *reader_open_again(const struct reader *reader, struct reader **reader_ret)
{
	reader->file->users++;
	return start(NULL, reader->file, reader_ret);
}

struct mmt_error *reader_rewind(struct reader *reader)
{
	end_events(reader);
	return begin_events(reader);
}

void reader_close(struct reader *reader)
{
	if (!reader)
		return;
	end_events(reader);
	free(reader->decoder.fields);
	layouts_deinit(&reader->layouts);
	metadata_deinit(&reader->metadata);
	recording_file_close(reader->file);
	mmt_error_destroy(reader->damage);
	free(reader);
}

struct mmt_error *reader_follow(struct reader *reader, bool follows)
{
	reader->file->follows = follows;
	return follows ? recording_file_grow(reader->file) : NULL;
}

const char *reader_damage(const struct reader *reader)
{
	const struct mmt_error *damage = reader->damage ? reader->damage : reader->metadata.damage;

	return damage ? damage->message : NULL;
}

struct reorder_unfinished reader_unfinished(const struct reader *reader)
{
	const struct packed_stacks *packed = &reader->metadata.values.stacks;

	return (struct reorder_unfinished){.records = reader->unfinished.records + packed->unfinished_records,
					   .span_ns = reader->unfinished.span_ns + packed->unfinished_ns};
}

struct mmt_error *reader_next(struct reader *reader, struct event *event_ret, bool *end_ret)
{
	struct mmt_error *error = NULL;
	struct reorder_item item;

	*end_ret = false;
	reader->paused = false;
	while (!error && !reader->ended && !reader->paused) {
		if (reader->done)
			records_recycle(reader->records, TAKE(reader->done));
		if (!reorder_take(reader->order, &item, &reader->done)) {
			reader->ended = reader->drained;
			error = reader->drained ? NULL : push_record(reader);
			continue;
		}
		reader->out_of_order = reader->order->violations;
		if (decode_item(reader, &item, event_ret))
			return NULL;
	}
	if (!reader->paused)
		end_events(reader);
	reader->ended |= error != NULL;
	*end_ret = !error;
	return error;
}
