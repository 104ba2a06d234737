// SPDX-License-Identifier: LGPL-2.1-or-later
#include "trace/frames-ahead.h"

#include <linux/perf_event.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/cleanup.h"
#include "trace/compress.h"

#define HEADER_BYTES sizeof(struct perf_event_header)
#define INPUT_BYTES (UINT16_MAX + 1u) /* larger than any record */

/* What a thread needs to decompress. */
struct hand {
	struct decompressor *decompressor;
	uint8_t input[INPUT_BYTES];
	uint64_t offset; /* of the input in the file */
	size_t size;
};

struct frame {
	uint64_t offset;	    /* of its record */
	size_t bytes;		    /* that it says it holds */
	struct record_block *block; /* NULL: it could not be done */
	bool done;
};

struct frames_ahead {
	const struct recording_file *file;
	struct record_blocks *blocks;
	struct hand *readers, *helpers;

	pthread_mutex_t lock; /* of what follows */
	pthread_cond_t done;
	struct frame frames[FRAMES_AHEAD_MAX];
	size_t first, count, bytes; /* of those that wait or are being done */
	uint64_t position;	    /* where the next is looked for */
	bool parked;		    /* there is none; the reader will tell where to go on */
	bool hopeless;		    /* the file's are not of that kind */
};

static struct mmt_error *create_hand(struct hand **hand_ret)
{
	*hand_ret = calloc(1, sizeof(**hand_ret));
	return *hand_ret ? decompressor_create(&(*hand_ret)->decompressor) : &error_no_memory;
}

static void destroy_hand(struct hand *hand)
{
	if (hand)
		decompressor_destroy(hand->decompressor);
	free(hand);
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
	error = create_hand(&ahead->readers);
	if (!error)
		error = create_hand(&ahead->helpers);
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
	destroy_hand(ahead->readers);
	destroy_hand(ahead->helpers);
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

/* Nothing is read where that fails: the reader will say why. */
static void read_at(const struct frames_ahead *ahead, struct hand *hand, uint64_t offset)
{
	uint64_t left = ahead->file->data_end - offset;
	struct mmt_error *error;

	hand->offset = offset;
	hand->size = left < INPUT_BYTES ? left : INPUT_BYTES;
	error = recording_file_read(ahead->file, offset, hand->input, hand->size);
	if (error)
		hand->size = 0;
	mmt_error_destroy(error);
}

/* The record at `offset`, whole; NULL: there is none. */
static const uint8_t *look_at(const struct frames_ahead *ahead, struct hand *hand, uint64_t offset,
			      struct perf_event_header *header)
{
	bool again = offset != hand->offset;

	for (;;) {
		size_t position = offset - hand->offset, left = hand->size > position ? hand->size - position : 0;

		*header = (struct perf_event_header){.size = HEADER_BYTES};
		if (left >= HEADER_BYTES)
			memcpy(header, hand->input + position, sizeof(*header));
		if (header->size < HEADER_BYTES)
			return NULL;
		if (header->size <= left)
			return hand->input + position;
		if (!again)
			return NULL;
		read_at(ahead, hand, offset);
		again = false;
	}
}

/* The next compressed record, unless much comes before it. What has a payload behind it is the reader's. */
static const uint8_t *find_compressed(const struct frames_ahead *ahead, struct hand *hand,
				      struct perf_event_header *header, uint64_t *offset_ret)
{
	uint64_t offset = ahead->position, limit = offset + INPUT_BYTES;

	read_at(ahead, hand, offset);
	while (offset < limit) {
		const uint8_t *record = look_at(ahead, hand, offset, header);

		if (!record || header->type == RECORD_AUXTRACE || header->type == RECORD_HEADER_TRACING_DATA)
			break;
		*offset_ret = offset;
		if (header->type == RECORD_COMPRESSED || header->type == RECORD_COMPRESSED2)
			return record;
		offset += header->size;
	}
	return NULL;
}

/* The next frame gets its place among the others; NULL: it gets none. What is read here its reader needs soon, so that
 * others may wait meanwhile. */
static struct frame *claim(struct frames_ahead *ahead, struct hand *hand, const uint8_t **data_ret, size_t *size_ret)
{
	struct frame *frame = &ahead->frames[(ahead->first + ahead->count) % FRAMES_AHEAD_MAX];
	struct perf_event_header header;
	const uint8_t *record;
	uint64_t offset;
	size_t expected;

	if (ahead->parked || ahead->hopeless || ahead->count == FRAMES_AHEAD_MAX || ahead->bytes >= FRAMES_AHEAD_BYTES)
		return NULL;
	record = find_compressed(ahead, hand, &header, &offset);
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

/* NULL: it is none of the usual ones, or there is no memory. */
static struct record_block *decompress(const struct frames_ahead *ahead, struct hand *hand, const uint8_t *data,
				       size_t size, size_t expected)
{
	struct record_block *block = record_blocks_take(ahead->blocks, expected, FRAMES_AHEAD_LARGEST);

	if (!block || decompressor_frame(hand->decompressor, data, size, &block->content))
		return block;
	mmt_error_destroy(buffer_finish(&block->content));
	record_blocks_give_back(ahead->blocks, block);
	return NULL;
}

/* With the lock held, which is let go meanwhile. False: there is nothing to do. */
static bool do_next(struct frames_ahead *ahead, struct hand *hand)
{
	const uint8_t *data;
	size_t size;
	struct frame *frame = claim(ahead, hand, &data, &size);
	struct record_block *block;

	if (!frame)
		return false;
	pthread_mutex_unlock(&ahead->lock);
	block = decompress(ahead, hand, data, size, frame->bytes);
	pthread_mutex_lock(&ahead->lock);
	frame->block = block;
	frame->done = true;
	ahead->hopeless |= !block;
	pthread_cond_signal(&ahead->done);
	return true;
}

bool frames_ahead_help(struct frames_ahead *ahead)
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

/* While the other thread is at it the reader does what comes later. */
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
