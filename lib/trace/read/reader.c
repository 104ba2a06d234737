// SPDX-License-Identifier: LGPL-2.1-or-later
#include "trace/read/reader.h"

#include <malloc.h>

#include "base/cleanup.h"
#include "base/errors.h"
#include "trace/format/sample-layout.h"
#include "trace/read/decode.h"
#include "trace/read/metadata.h"
#include "trace/read/event-batches.h"
#include "trace/read/recording-file.h"

struct reader {
	struct recording_file *file;
	struct metadata metadata;
	struct layouts layouts;
	struct event_batches *batches; /* NULL: the last event was returned */
	struct event_batch *batch;     /* NULL: before the first batch and after the last */
	size_t position;	       /* of the next event in the batch */
	struct decoder decoder;
	struct mmt_error *damage;	      /* first damage */
	uint64_t out_of_order;		      /* so far */
	struct reorder_unfinished unfinished; /* at the end */
};

static enum ordered_end end_of(const struct reader_metadata *metadata)
{
	if (metadata->packed)
		return ORDERED_IN_FILE;
	return metadata->incomplete ? ORDERED_CUT : ORDERED_COMPLETE;
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
	if (!error)
		error = decoder_init(&reader->decoder, file, &reader->layouts, &reader->metadata.values);
	if (!error)
		error = event_batches_create(file, &reader->layouts, &reader->decoder, end_of(&reader->metadata.values),
					     &reader->batches);
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
	event_batches_destroy(TAKE(reader->batches));
	reader->batch = NULL;
	reader->out_of_order = 0;
	reader->unfinished = (struct reorder_unfinished){0};
	return event_batches_create(reader->file, &reader->layouts, &reader->decoder, end_of(&reader->metadata.values),
				    &reader->batches);
}

void reader_close(struct reader *reader)
{
	if (!reader)
		return;
	event_batches_destroy(reader->batches);
	free(reader->decoder.fields);
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
	reader->decoder.only_used_stacks = true;
}

struct mmt_error *reader_follow(struct reader *reader, bool follows)
{
	reader->file->follows = follows;
	return follows ? recording_file_grow(reader->file) : NULL;
}

uint64_t reader_names_offset(const struct reader *reader)
{
	return reader->batches ? event_batches_names_offset(reader->batches) : 0; /* damage has ended the events */
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
	return reader->out_of_order;
}

struct reorder_unfinished reader_unfinished(const struct reader *reader)
{
	const struct packed_stacks *packed = &reader->metadata.values.stacks;

	return (struct reorder_unfinished){.records = reader->unfinished.records + packed->unfinished_records,
					   .span_ns = reader->unfinished.span_ns + packed->unfinished_ns};
}

/* NULL without an error: there are no more. */
static COLD struct mmt_error *take_batch(struct reader *reader)
{
	if (!reader->batches || (reader->batch && reader->batch->last)) {
		/* Free the batches: the code after the last event needs the memory more. */
		if (reader->batch)
			reader->unfinished = reader->batch->unfinished;
		reader->batch = NULL;
		event_batches_destroy(TAKE(reader->batches));
		/* Return free memory to the kernel: the allocator keeps the thread's memory for other threads. */
		(void)malloc_trim(0);
		return NULL;
	}
	reader->batch = event_batches_next(reader->batches);
	reader->position = 0;
	reader->out_of_order = reader->batch->violations;
	if (!reader->damage)
		reader->damage = TAKE(reader->batch->damage);
	return TAKE(reader->batch->error);
}

struct mmt_error *reader_next(struct reader *reader, struct event *event_ret, bool *end_ret)
{
	*end_ret = false;
	while (!reader->batch || reader->position == reader->batch->count) {
		struct mmt_error *error = take_batch(reader);

		*end_ret = !reader->batch || (!reader->batch->count && !reader->batch->last);
		if (error || *end_ret)
			return error;
	}
	*event_ret = reader->batch->events[reader->position++];
	return NULL;
}
