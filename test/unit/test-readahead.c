// SPDX-License-Identifier: LGPL-2.1-or-later
/* With the readahead thread, whatever its timing, the records and the damage are the same as without it. */
#include <check.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "support/suite.h"
#include "base/compression.h"
#include "trace/format/format.h"
#include "trace/read/readahead.h"
#include "trace/read/records.h"

#define FRAMES 60
#define IN_FRAME 500	   /* records */
#define TURNS 8		   /* of help at other times */
#define BLOCK_RECORDS 4096 /* of 32 bytes, in a block of zstd's at most */

static struct buffer content;
static struct compressor *compressor;
static struct recording_file file;
static FILE *stream;
static uint64_t number; /* of records so far */
static uint64_t state;
static atomic_bool enough; /* help */

static uint64_t draw(uint64_t below)
{
	state = state * 6364136223846793005ULL + 1442695040888963407ULL;
	return (state >> 33) % below;
}

static void put_record(struct buffer *buffer, uint32_t type, const void *body, size_t size)
{
	const struct perf_event_header header = {.type = type, .size = (uint16_t)(sizeof(header) + size)};

	buffer_put(buffer, &header, sizeof(header));
	buffer_put(buffer, body, size);
}

static void put_numbers(struct buffer *buffer, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		const uint64_t body[] = {number, number % 3 ? 0 : number * 0x9e3779b97f4a7c15ULL};

		number++;
		put_record(buffer, PERF_RECORD_LOST, body, sizeof(body));
	}
}

static void compress(const struct buffer *plain, struct buffer *frame)
{
	buffer_init(frame, LIMIT_FRAME_BYTES);
	ck_assert_ptr_null(compressor_frame(compressor, plain->data, plain->size, frame));
}

static void put_frame(size_t count)
{
	struct buffer plain, frame;

	buffer_init(&plain, LIMIT_FRAME_BYTES);
	put_numbers(&plain, count);
	compress(&plain, &frame);
	put_record(&content, RECORD_COMPRESSED, frame.data, frame.size);
	buffer_deinit(&frame);
	buffer_deinit(&plain);
}

static void put_frames(size_t count)
{
	for (size_t i = 0; i < count; i++) {
		put_frame(1 + draw(2 * IN_FRAME));
		if (draw(3) == 0)
			put_record(&content, RECORD_FINISHED_ROUND, NULL, 0);
	}
}

static void set_up(void)
{
	state = 1;
	number = 0;
	buffer_init(&content, 64u << 20);
	ck_assert_ptr_null(compressor_create(&compressor));
	stream = tmpfile();
	ck_assert_ptr_nonnull(stream);
	file = (struct recording_file){.path = (char *)"frames", .fd = fileno(stream)};
}

static void tear_down(void)
{
	compressor_destroy(compressor);
	buffer_deinit(&content);
	fclose(stream);
}

static void finish_file(void)
{
	ck_assert_ptr_null(buffer_finish(&content));
	ck_assert_int_eq(pwrite(file.fd, content.data, content.size, 0), (ssize_t)content.size);
	file.size = file.data_end = content.size;
}

static void *help_always(void *context)
{
	struct records *records = context;

	while (!enough) {
		if (!records_decompress_one(records))
			sched_yield();
	}
	return NULL;
}

enum help { HELP_NONE, HELP_AT_TIMES, HELP_ALWAYS };

struct outcome {
	struct buffer found; /* offset and content of each record, and the damage at last */
	size_t helped;
};

static bool read_one(struct records *records, struct record_blocks *blocks, struct outcome *outcome)
{
	struct mmt_error *damage;
	struct record record;
	bool end;

	ck_assert_ptr_null(records_next(records, &record, &end, &damage));
	if (!end) {
		buffer_put_u64(&outcome->found, record.offset);
		buffer_put(&outcome->found, record.data, record.header.size);
	}
	if (damage)
		buffer_put_string(&outcome->found, mmt_error_get_message(damage));
	mmt_error_destroy(damage);
	record_blocks_give_back(blocks, records_retired(records));
	return !end;
}

static void read_all(enum help help, size_t maximum, struct outcome *outcome)
{
	struct record_blocks *blocks;
	struct records *records;
	pthread_t thread;

	*outcome = (struct outcome){0};
	buffer_init(&outcome->found, 256u << 20);
	ck_assert_ptr_null(record_blocks_create(&blocks));
	ck_assert_ptr_null(records_create(&file, &records));
	records_share_blocks(records, blocks);
	if (help)
		records_start_readahead(records);
	enough = false;
	if (help == HELP_ALWAYS)
		ck_assert_int_eq(pthread_create(&thread, NULL, help_always, records), 0);
	for (size_t i = 0; i < maximum && read_one(records, blocks, outcome); i++) {
		for (uint64_t turns = help == HELP_AT_TIMES && draw(100) == 0 ? draw(6) : 0; turns; turns--)
			outcome->helped += records_decompress_one(records);
	}
	if (help == HELP_ALWAYS) {
		enough = true;
		pthread_join(thread, NULL);
	}
	records_destroy(records);
	record_blocks_destroy(blocks);
	ck_assert_ptr_null(buffer_finish(&outcome->found));
}

/* How many frames the readahead thread has done. */
static size_t compare(void)
{
	struct outcome without, with;
	size_t helped = 0;

	finish_file();
	read_all(HELP_NONE, SIZE_MAX, &without);
	for (int i = 0; i <= TURNS; i++) {
		read_all(i < TURNS ? HELP_AT_TIMES : HELP_ALWAYS, SIZE_MAX, &with);
		ck_assert_uint_eq(with.found.size, without.found.size);
		ck_assert_mem_eq(with.found.data, without.found.data, without.found.size);
		helped += with.helped;
		buffer_deinit(&with.found);
	}
	buffer_deinit(&without.found);
	return helped;
}

START_TEST(records_keep_their_order)
{
	put_frames(FRAMES);
	ck_assert_uint_ge(compare(), TURNS * FRAMES / 4);
}
END_TEST

START_TEST(damage_ends_the_records_at_the_same_place)
{
	size_t middle;

	put_frames(FRAMES / 2);
	middle = content.size;
	put_frames(FRAMES / 2);
	/* The magic, the content size and the compressed data, of the first frame after it. */
	for (size_t place = 8; place < 200; place += 17) {
		content.data[middle + place] ^= 0xff;
		ck_assert_uint_gt(compare(), 0);
		content.data[middle + place] ^= 0xff;
	}
}
END_TEST

START_TEST(a_truncated_file_ends_at_the_same_place)
{
	put_frames(FRAMES);
	for (size_t cut = 1; cut < 100; cut += 13) {
		content.size -= cut;
		file.incomplete = cut % 2;
		ck_assert_uint_gt(compare(), 0);
	}
}
END_TEST

/* A record starts in one frame and ends in the next one. */
START_TEST(records_across_frames_are_complete)
{
	struct buffer plain, frame, piece;
	size_t begin = 0;

	buffer_init(&plain, LIMIT_FRAME_BYTES);
	put_numbers(&plain, FRAMES * IN_FRAME);
	while (begin < plain.size) {
		size_t size = 1 + draw(48 * IN_FRAME);

		size = size < plain.size - begin ? size : plain.size - begin;
		piece = (struct buffer){.data = plain.data + begin, .size = size};
		compress(&piece, &frame);
		put_record(&content, RECORD_COMPRESSED, frame.data, frame.size);
		buffer_deinit(&frame);
		begin += size;
	}
	buffer_deinit(&plain);
	ck_assert_uint_gt(compare(), 0);
}
END_TEST

/* As perf writes it, with complete frames before and after. */
START_TEST(reader_handles_a_frame_over_several_records)
{
	struct buffer plain, frame;

	put_frames(FRAMES / 2);
	buffer_init(&plain, LIMIT_FRAME_BYTES);
	put_numbers(&plain, IN_FRAME);
	compress(&plain, &frame);
	put_record(&content, RECORD_COMPRESSED, frame.data, frame.size / 2);
	put_record(&content, RECORD_COMPRESSED, frame.data + frame.size / 2, frame.size - frame.size / 2);
	buffer_deinit(&frame);
	buffer_deinit(&plain);
	put_frames(FRAMES / 2);
	ck_assert_uint_gt(compare(), 0);
}
END_TEST

/* A complete frame inside another unfinished one is damage, even if it is valid itself. The outer one has enough
 * blocks for complete records, and nothing is left over. */
START_TEST(a_frame_inside_another_is_damage)
{
	struct buffer plain, frame;
	size_t size;

	buffer_init(&plain, LIMIT_FRAME_BYTES);
	for (uint64_t i = 0; i < 4 * BLOCK_RECORDS; i++) {
		const uint64_t body[] = {i, 0, i % 3 ? 0 : i * 0x9e3779b97f4a7c15ULL};

		put_record(&plain, PERF_RECORD_LOST, body, sizeof(body));
	}
	compress(&plain, &frame);
	size = frame.size < UINT16_MAX ? frame.size - 8 : UINT16_MAX - 8;
	put_record(&content, RECORD_COMPRESSED, frame.data, size);
	buffer_deinit(&frame);
	buffer_deinit(&plain);
	put_frames(FRAMES / 2);
	ck_assert_uint_gt(compare(), 0);
}
END_TEST

START_TEST(reader_handles_large_frames)
{
	static const uint8_t zeros[FRAMES_AHEAD_LARGEST + 1];
	const uint16_t size = 1 << 15;
	struct buffer plain, frame;

	for (int i = 0; i < 3; i++) {
		put_frames(FRAMES / 4);
		buffer_init(&plain, LIMIT_FRAME_BYTES);
		while (plain.size <= FRAMES_AHEAD_LARGEST)
			put_record(&plain, PERF_RECORD_LOST, zeros, size);
		compress(&plain, &frame);
		put_record(&content, RECORD_COMPRESSED, frame.data, frame.size);
		buffer_deinit(&frame);
		buffer_deinit(&plain);
	}
	put_frames(FRAMES / 4);
	ck_assert_uint_gt(compare(), 0);
}
END_TEST

START_TEST(nested_sizes_are_checked)
{
	struct buffer plain, frame, body;

	put_frames(FRAMES / 2);
	buffer_init(&plain, LIMIT_FRAME_BYTES);
	put_numbers(&plain, IN_FRAME);
	compress(&plain, &frame);
	for (uint64_t more = 0; more < 2; more++) {
		buffer_init(&body, UINT16_MAX);
		buffer_put_u64(&body, frame.size + more * 8);
		buffer_put(&body, frame.data, frame.size);
		buffer_align(&body, 8);
		put_record(&content, RECORD_COMPRESSED2, body.data, body.size);
		buffer_deinit(&body);
	}
	buffer_deinit(&frame);
	buffer_deinit(&plain);
	put_frames(FRAMES / 2);
	ck_assert_uint_gt(compare(), 0);
}
END_TEST

START_TEST(unused_frames_are_released)
{
	struct outcome outcome;

	put_frames(FRAMES);
	finish_file();
	for (size_t maximum = 1; maximum < FRAMES * IN_FRAME; maximum += 997) {
		read_all(maximum % 2 ? HELP_ALWAYS : HELP_AT_TIMES, maximum, &outcome);
		buffer_deinit(&outcome.found);
	}
}
END_TEST

/* However long the reader does not read. */
START_TEST(readahead_is_bounded)
{
	struct record_blocks *blocks;
	struct frames_ahead *ahead;
	size_t done = 0;

	for (int i = 0; i < FRAMES; i++)
		put_frame(4 * IN_FRAME);
	finish_file();
	ck_assert_ptr_null(record_blocks_create(&blocks));
	ck_assert_ptr_null(frames_ahead_create(&file, blocks, &ahead));
	ck_assert(!frames_ahead_decompress_one(ahead));
	ck_assert_ptr_null(frames_ahead_take(ahead, 0, 0));
	ck_assert(!frames_ahead_decompress_one(ahead));
	ck_assert_ptr_null(frames_ahead_take(ahead, 0, content.data[6] | content.data[7] << 8));
	while (frames_ahead_decompress_one(ahead))
		done++;
	ck_assert_uint_gt(done, 0);
	ck_assert_uint_le(done, FRAMES_AHEAD_MAX);
	ck_assert_uint_le((done - 1) * 4 * IN_FRAME * 24, FRAMES_AHEAD_BYTES);
	frames_ahead_destroy(ahead);
	record_blocks_destroy(blocks);
}
END_TEST

Suite *test_suite(void)
{
	Suite *suite = suite_create("readahead");
	TCase *cases = add_tcase(suite, "readahead");

	tcase_add_checked_fixture(cases, set_up, tear_down);
	tcase_set_timeout(cases, 300);
	tcase_add_tests(cases, records_keep_their_order, damage_ends_the_records_at_the_same_place,
			a_truncated_file_ends_at_the_same_place, records_across_frames_are_complete,
			reader_handles_a_frame_over_several_records, a_frame_inside_another_is_damage,
			reader_handles_large_frames, nested_sizes_are_checked, unused_frames_are_released,
			readahead_is_bounded);
	return suite;
}
