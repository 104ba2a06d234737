// SPDX-License-Identifier: LGPL-2.1-or-later
/* How much the writer puts into a frame. */
#include <check.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "support/run-suite.h"
#include "trace/compress.h"
#include "trace/writer-state.h"

#define BYTES (24u << 20)
#define STACK_BYTES 8192

/* Frames of what repeats, until they are as large as they may be; frames of what does not stay small. */
START_TEST(frames_grow_with_what_repeats)
{
	size_t bytes = FRAME_BYTES_LEAST;

	for (unsigned i = 0; i < 10; i++)
		bytes = writer_choose_frame_bytes(bytes, bytes, bytes / 100);
	ck_assert_uint_eq(bytes, FRAME_BYTES);
	for (unsigned i = 0; i < 10; i++)
		bytes = writer_choose_frame_bytes(bytes, bytes, bytes / 2);
	ck_assert_uint_eq(bytes, FRAME_BYTES_LEAST);
}
END_TEST

START_TEST(frames_that_fit_stay_as_they_are)
{
	size_t bytes = 4 * FRAME_BYTES_LEAST;

	/* One of twice the size might not fit into a record. */
	ck_assert_uint_eq(writer_choose_frame_bytes(bytes, bytes, FRAME_RECORD_BYTES / 2), bytes);
	ck_assert_uint_eq(writer_choose_frame_bytes(bytes, bytes, FRAME_RECORD_BYTES), bytes);
	ck_assert_uint_eq(writer_choose_frame_bytes(bytes, bytes, FRAME_RECORD_BYTES + 1), bytes / 2);
	/* A frame that a round ended early says nothing of full ones. */
	ck_assert_uint_eq(writer_choose_frame_bytes(bytes, bytes / 2, 100), bytes);
}
END_TEST

struct frames {
	size_t count;
	size_t content; /* of all */
	size_t largest;
};

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
	struct decompressor *decompressor;
	struct frames frames = {0};
	uint8_t *data;

	ck_assert_int_eq(pread(fd, &header, sizeof(header), 0), sizeof(header));
	data = malloc(header.data_bytes);
	ck_assert_ptr_nonnull(data);
	ck_assert_int_eq(pread(fd, data, header.data_bytes, (off_t)header.data_offset), (ssize_t)header.data_bytes);
	ck_assert_ptr_null(decompressor_create(&decompressor));
	for (size_t offset = 0; offset < header.data_bytes;) {
		struct perf_event_header record;

		memcpy(&record, data + offset, sizeof(record));
		if (record.type == RECORD_COMPRESSED)
			add_frame(&frames, decompressor, data + offset + sizeof(record), record.size - sizeof(record));
		offset += record.size;
	}
	decompressor_destroy(decompressor);
	free(data);
	return frames;
}

/* So many different stacks in turn. */
static struct frames write_stacks(unsigned stacks)
{
	const struct perf_event_attr attr = {.type = PERF_TYPE_SOFTWARE, .config = PERF_COUNT_SW_DUMMY};
	const struct perf_event_header header = {.type = PERF_RECORD_SAMPLE, .size = STACK_BYTES};
	char path[] = "/tmp/mmtrace-writer-XXXXXX";
	uint64_t body[STACK_BYTES / 8];
	int fd = mkstemp(path);
	const uint64_t id = 1;
	struct writer *writer;
	struct frames frames;

	ck_assert_int_ge(fd, 0);
	close(fd);
	ck_assert_ptr_null(writer_create(path, &writer));
	writer_replace(writer);
	ck_assert_ptr_null(writer_add_attribute(writer, &attr, "dummy", &id, 1));
	ck_assert_ptr_null(writer_start(writer));
	for (unsigned i = 0; i < BYTES / STACK_BYTES; i++) {
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
	unlink(path);
	return frames;
}

START_TEST(a_stack_that_repeats_is_written_seldom)
{
	struct frames frames = write_stacks(1);

	ck_assert_uint_eq(frames.content, BYTES);
	ck_assert_uint_eq(frames.largest, FRAME_BYTES);
	ck_assert_uint_le(frames.count, BYTES / FRAME_BYTES + 4);
}
END_TEST

START_TEST(stacks_that_do_not_repeat_are_in_small_frames)
{
	struct frames frames = write_stacks(BYTES / STACK_BYTES);

	ck_assert_uint_eq(frames.content, BYTES);
	ck_assert_uint_le(frames.largest, FRAME_BYTES_LEAST);
}
END_TEST

int main(void)
{
	TCase *tests = tcase_create("writer");
	Suite *suite = suite_create("writer");

	tcase_add_test(tests, frames_grow_with_what_repeats);
	tcase_add_test(tests, frames_that_fit_stay_as_they_are);
	tcase_add_test(tests, a_stack_that_repeats_is_written_seldom);
	tcase_add_test(tests, stacks_that_do_not_repeat_are_in_small_frames);
	suite_add_tcase(suite, tests);
	return run_suite(suite);
}
