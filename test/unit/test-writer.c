// SPDX-License-Identifier: LGPL-2.1-or-later
/* How much the writer puts into a frame. */
#include <check.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/compression.h"
#include "support/suite.h"
#include "support/temporary.h"
#include "trace/write/writer.h"

#define BYTES (24u << 20)
#define REPEATED_BYTES (80u << 20) /* frames grow on the way */
#define STACK_BYTES 8192
#define ROUND_BYTES (8u << 20) /* the recorder ends them after 6 MiB plus one read */
#define RECORDS 210000
#define ROUND_RECORDS 21000
#define RECORD_HUNDREDTHS_MAX 520 /* of a byte */

/* Frames of repetitive data, until they have the maximum size; frames of incompressible data stay small. */
START_TEST(frames_grow_with_repetitive_data)
{
	size_t bytes = FRAME_BYTES_LEAST;

	for (unsigned i = 0; i < 10; i++)
		bytes = writer_choose_frame_bytes(bytes, bytes, bytes / 1000);
	ck_assert_uint_eq(bytes, FRAME_BYTES);
	for (unsigned i = 0; i < 10; i++)
		bytes = writer_choose_frame_bytes(bytes, bytes, bytes / 2);
	ck_assert_uint_eq(bytes, FRAME_BYTES_LEAST);
}
END_TEST

START_TEST(fitting_frames_keep_their_size)
{
	size_t bytes = 4 * FRAME_BYTES_LEAST;

	/* One of twice the size might not fit into a record. */
	ck_assert_uint_eq(writer_choose_frame_bytes(bytes, bytes, FRAME_RECORD_BYTES / 2), bytes);
	ck_assert_uint_eq(writer_choose_frame_bytes(bytes, bytes, FRAME_RECORD_BYTES), bytes);
	ck_assert_uint_eq(writer_choose_frame_bytes(bytes, bytes, FRAME_RECORD_BYTES + 1), bytes / 2);
	/* A frame that a round ended early shows nothing about full ones. */
	ck_assert_uint_eq(writer_choose_frame_bytes(bytes, bytes / 2, 100), bytes);
}
END_TEST

struct frames {
	size_t count;
	size_t content; /* of all */
	size_t largest;
};

static void expect_refused(struct mmt_error *error)
{
	ck_assert_ptr_nonnull(error);
	mmt_error_destroy(error);
}

static void add_frame(struct frames *frames, struct decompressor *decompressor, const uint8_t *data, size_t size)
{
	struct buffer content;

	buffer_init(&content, FRAME_BYTES + 1);
	ck_assert_ptr_null(decompressor_feed(decompressor, data, size, &content));
	frames->count++;
	frames->content += content.size;
	frames->largest = content.size > frames->largest ? content.size : frames->largest;
	buffer_deinit(&content);
}

/* The compressed records of the file, from its data section on. */
static struct frames read_frames(int fd)
{
	struct {
		uint64_t before[5], data_offset, data_bytes;
	} header;
	struct decompressor decompressor;
	struct frames frames = {0};
	uint8_t *data;

	ck_assert_int_eq(pread(fd, &header, sizeof(header), 0), sizeof(header));
	data = malloc(header.data_bytes);
	ck_assert_ptr_nonnull(data);
	ck_assert_int_eq(pread(fd, data, header.data_bytes, (off_t)header.data_offset), (ssize_t)header.data_bytes);
	ck_assert_ptr_null(decompressor_init(&decompressor));
	for (size_t offset = 0; offset < header.data_bytes;) {
		struct perf_event_header record;

		memcpy(&record, data + offset, sizeof(record));
		if (record.type == RECORD_COMPRESSED)
			add_frame(&frames, &decompressor, data + offset + sizeof(record), record.size - sizeof(record));
		offset += record.size;
	}
	decompressor_deinit(&decompressor);
	free(data);
	return frames;
}

/* This many bytes, of this many different stacks in turn. */
static struct frames write_stacks(size_t bytes, unsigned stacks)
{
	const struct perf_event_attr attr = {.type = PERF_TYPE_SOFTWARE, .config = PERF_COUNT_SW_DUMMY};
	const struct perf_event_header header = {.type = PERF_RECORD_SAMPLE, .size = STACK_BYTES};
	char path[TEMPORARY_PATH_SIZE];
	uint64_t body[STACK_BYTES / 8];
	int fd;
	const uint64_t id = 1;
	struct writer *writer;
	struct frames frames;

	temporary_name(path);
	ck_assert_ptr_null(writer_create(path, &writer));
	writer->file.replaces = true;
	ck_assert_ptr_null(writer_add_attribute(writer, &attr, "dummy", &id, 1));
	ck_assert_ptr_null(writer_start(writer));
	for (unsigned i = 0; i < bytes / STACK_BYTES; i++) {
		uint64_t state = i % stacks;

		for (size_t word = 0; word < STACK_BYTES / 8; word++)
			body[word] = state = (state + 1) * 6364136223846793005ULL;
		memcpy(body, &header, sizeof(header));
		ck_assert_ptr_null(writer_append(writer, body, sizeof(body)));
	}
	ck_assert_ptr_null(writer_finish(writer));
	writer_destroy(writer);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	ck_assert_int_ge(fd, 0);
	frames = read_frames(fd);
	close(fd);
	return frames;
}

START_TEST(a_repeated_stack_takes_few_bytes)
{
	struct frames frames = write_stacks(REPEATED_BYTES, 1);

	ck_assert_uint_eq(frames.content, REPEATED_BYTES);
	ck_assert_uint_eq(frames.largest, FRAME_BYTES);
	ck_assert_uint_le(frames.count, REPEATED_BYTES / FRAME_BYTES + 6);
}
END_TEST

START_TEST(stacks_that_do_not_repeat_are_in_small_frames)
{
	struct frames frames = write_stacks(BYTES, BYTES / STACK_BYTES);

	ck_assert_uint_eq(frames.content, BYTES);
	ck_assert_uint_le(frames.largest, FRAME_BYTES_LEAST);
}
END_TEST

/* Words of a record that repeats, except for its time. */
static void append_repeated(struct writer *writer, size_t event, unsigned words, uint64_t time_ns)
{
	struct perf_event_header header = {.type = PERF_RECORD_SAMPLE, .size = (uint16_t)(words * sizeof(uint64_t))};
	uint64_t record[64], state = event + 1;

	for (unsigned i = 0; i < words; i++)
		record[i] = state = state * 6364136223846793005ULL + 1442695040888963407ULL;
	memcpy(record, &header, sizeof(header));
	record[4] = time_ns;
	ck_assert_ptr_null(writer_append(writer, record, header.size));
}

/*
 * A mapping, a sample with its callchain, a small one, like those of mmap and munmap, of threads that alternate
 * irregularly. Each is as long as the recorder's; only times differ.
 */
START_TEST(repeated_records_take_little_more_than_their_times)
{
	const struct perf_event_attr attr = {.type = PERF_TYPE_SOFTWARE, .config = PERF_COUNT_SW_DUMMY};
	const uint64_t id = 1;
	char path[TEMPORARY_PATH_SIZE];
	uint64_t time_ns = 1ULL << 40, state = 1, before;
	struct writer *writer;

	temporary_name(path);
	ck_assert_ptr_null(writer_create(path, &writer));
	writer->file.replaces = true;
	ck_assert_ptr_null(writer_add_attribute(writer, &attr, "dummy", &id, 1));
	ck_assert_ptr_null(writer_start(writer));
	before = writer_bytes(writer);
	for (unsigned i = 0; i < RECORDS; i++) {
		static const unsigned words[] = {14, 57, 13};
		size_t event;

		state = state * 6364136223846793005ULL + 1442695040888963407ULL;
		event = (state >> 40) % 3;
		time_ns += 4000 + (state >> 54);
		append_repeated(writer, event, words[event], time_ns);
		if (i % ROUND_RECORDS == ROUND_RECORDS - 1)
			ck_assert_ptr_null(writer_end_round(writer));
	}
	ck_assert_ptr_null(writer_flush(writer));
	ck_assert_uint_le((writer_bytes(writer) - before) * 100 / RECORDS, RECORD_HUNDREDTHS_MAX);
	ck_assert_ptr_null(writer_finish(writer));
	writer_destroy(writer);
}
END_TEST

/* The file of a killed recorder has all rings up to the same time. */
static void expect_complete_round(bool plain, size_t bytes)
{
	struct perf_event_header header = {.type = PERF_RECORD_SAMPLE, .size = STACK_BYTES};
	char path[TEMPORARY_PATH_SIZE];
	uint64_t body[STACK_BYTES / 8], state = 1;
	struct writer *writer;
	struct stat before, during, after;

	temporary_name(path);
	ck_assert_ptr_null(writer_create(path, &writer));
	writer->file.replaces = true;
	if (plain)
		writer->plain = true;
	ck_assert_ptr_null(writer_start(writer));
	ck_assert_int_eq(stat(path, &before), 0);
	for (unsigned i = 0; i < bytes / STACK_BYTES; i++) {
		for (size_t word = 0; word < STACK_BYTES / 8; word++)
			body[word] = state = (state + 1) * 6364136223846793005ULL;
		memcpy(body, &header, sizeof(header));
		ck_assert_ptr_null(writer_append(writer, body, sizeof(body)));
	}
	ck_assert_int_eq(stat(path, &during), 0);
	ck_assert_ptr_null(writer_end_round(writer));
	ck_assert_int_eq(stat(path, &after), 0);
	ck_assert_int_eq(during.st_size, before.st_size);
	ck_assert_int_gt(after.st_size, before.st_size + (off_t)bytes / 2);
	ck_assert_uint_eq(writer_bytes(writer), (uint64_t)after.st_size);
	writer_destroy(writer);
}

START_TEST(rounds_are_written_completely)
{
	expect_complete_round(false, 3u << 20);
	expect_complete_round(false, ROUND_BYTES);
	expect_complete_round(true, ROUND_BYTES);
}
END_TEST

START_TEST(records_of_a_wrong_size_are_refused)
{
	const struct perf_event_header header = {.type = PERF_RECORD_SAMPLE, .size = 64};
	char path[TEMPORARY_PATH_SIZE];
	uint8_t record[64] = {0};
	struct writer *writer;

	temporary_name(path);
	memcpy(record, &header, sizeof(header));
	ck_assert_ptr_null(writer_create(path, &writer));
	expect_refused(writer_append(writer, record, 56));
	writer_destroy(writer);
}
END_TEST

Suite *test_suite(void)
{
	Suite *suite = suite_create("writer");
	TCase *tests = add_tcase(suite, "writer");

	tcase_add_tests(tests, frames_grow_with_repetitive_data, fitting_frames_keep_their_size,
			a_repeated_stack_takes_few_bytes, stacks_that_do_not_repeat_are_in_small_frames,
			repeated_records_take_little_more_than_their_times, rounds_are_written_completely,
			records_of_a_wrong_size_are_refused);
	return suite;
}
