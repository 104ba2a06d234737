// SPDX-License-Identifier: LGPL-2.1-or-later
#include <check.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/bytes.h"
#include "support/recording-builder.h"
#include "support/suite.h"
#include "support/temporary.h"
#include "trace/read/reader.h"
#include "trace/read/recording-file.h"

#define CALLS 300
#define PIECE_BYTES 1000 /* so that sections have several */

static char path[TEMPORARY_PATH_SIZE];
static struct buffer stream;
static size_t data_start, data_size; /* in the stream */

static void require(struct mmt_error *error)
{
	ck_assert_msg(!error, "%s", error ? error->message : "");
}

static void put_header(uint32_t type, size_t size)
{
	buffer_put_u32(&stream, type);
	buffer_put_u16(&stream, 0);
	buffer_put_u16(&stream, (uint16_t)size);
}

static void put_attributes(const struct recording_file *file)
{
	for (size_t i = 0; i < file->attributes.count; i++) {
		const struct file_attribute *attribute = &file->attributes.items[i];
		struct perf_event_attr attr = attribute->attr;

		put_header(RECORD_HEADER_ATTR, 8 + attr.size + attribute->ids.count * 8);
		buffer_put(&stream, &attr, attr.size);
		buffer_put(&stream, attribute->ids.items, attribute->ids.count * 8);
	}
}

/* A record that perf knows too, or incremental metadata that it skips. */
static void put_section(const struct recording_file *file, enum format_feature feature)
{
	uint8_t *data;
	size_t size;

	require(recording_file_load(file, feature, &data, &size));
	if (feature == FEATURE_TRACING_DATA) {
		put_header(RECORD_HEADER_TRACING_DATA, 16);
		buffer_put_u32(&stream, (uint32_t)size);
		buffer_put_u32(&stream, 0);
		buffer_put(&stream, data, size);
		buffer_align(&stream, 8);
	} else if (feature < FEATURE_MMTRACE_INFO) {
		put_header(RECORD_HEADER_FEATURE, 16 + ((size + 7) & ~7ul));
		buffer_put_u64(&stream, feature);
		buffer_put(&stream, data, size);
		buffer_align(&stream, 8);
	}
	for (size_t done = 0; feature >= FEATURE_MMTRACE_INFO && done < size; done += PIECE_BYTES) {
		size_t here = size - done < PIECE_BYTES ? size - done : PIECE_BYTES;

		put_header(RECORD_HEADER_EVENT_TYPE, SECTION_PIECE_BYTES + ((here + 7) & ~7ul));
		buffer_put_u64(&stream, SECTION_PIECE_MAGIC);
		buffer_put_u32(&stream, feature);
		buffer_put_u32(&stream, 0);
		buffer_put_u64(&stream, size);
		buffer_put_u64(&stream, done);
		buffer_put_u32(&stream, (uint32_t)here);
		buffer_put_u32(&stream, 0);
		buffer_put(&stream, data + done, here);
		buffer_align(&stream, 8);
	}
	free(data);
}

/* The recording at `path` as it would have been written to a pipe. */
static void make_stream(void)
{
	struct recording_file *file;
	void *data;
	uint64_t size;

	require(recording_file_open(path, NULL, &file));
	size = file->data_end - file->data_offset;
	buffer_init(&stream, 16u << 20);
	buffer_put_u64(&stream, FORMAT_MAGIC);
	buffer_put_u64(&stream, 16);
	put_attributes(file);
	for (size_t i = 0; i < FEATURE_BITS; i++) {
		if (file->sections[i].present && i != FEATURE_MMTRACE_LOSS)
			put_section(file, (enum format_feature)i);
	}
	data_start = stream.size;
	data_size = size;
	data = buffer_extend(&stream, size);
	ck_assert_ptr_nonnull(data);
	require(recording_file_read(file, file->data_offset, data, size));
	put_section(file, FEATURE_MMTRACE_LOSS);
	ck_assert_ptr_null(stream.error);
	recording_file_close(file);
}

static void build(void)
{
	struct recording_builder *builder = builder_create(path);
	static uint8_t maps[5000];

	for (uint64_t i = 0; i < CALLS; i++)
		builder_mmap_exit(builder, 1000 + i * 10, 100, 100, 0x10000000 + i * 0x10000, 0x4000, 0x401000 + i);
	builder_round(builder);
	builder_section(builder, (enum format_feature)250, maps, sizeof(maps));
	builder_finish(builder, 9000);
}

static void begin(void)
{
	temporary_name(path);
	build();
	make_stream();
}

static void end(void)
{
	buffer_deinit(&stream);
}

/* What a reader finds on standard input if it is a pipe with this content. */
static struct mmt_error *open_stream(const void *data, size_t size, struct reader **reader_ret)
{
	int ends[2], kept = dup(STDIN_FILENO), status;
	struct mmt_error *error;
	pid_t child;

	ck_assert_int_eq(pipe(ends), 0);
	child = fork();
	if (child == 0) {
		const uint8_t *rest = data;

		close(ends[0]);
		while (size) {
			ssize_t written = write(ends[1], rest, size < 777 ? size : 777);

			if (written <= 0)
				_exit(1);
			rest += written;
			size -= (size_t)written;
		}
		_exit(0);
	}
	close(ends[1]);
	ck_assert_int_eq(dup2(ends[0], STDIN_FILENO), STDIN_FILENO);
	close(ends[0]);
	error = reader_open(RECORDING_STANDARD_INPUT, NULL, reader_ret);
	close(STDIN_FILENO);
	if (kept >= 0) {
		dup2(kept, STDIN_FILENO);
		close(kept);
	}
	waitpid(child, &status, 0);
	return error;
}

static void expect_calls(struct reader *reader, size_t expected)
{
	struct event event;
	bool at_end = false;
	size_t calls = 0;

	while (!at_end) {
		require(reader_next(reader, &event, &at_end));
		if (at_end || event.kind != EVENT_CALL)
			continue;
		ck_assert_uint_eq(event.time_ns, 1000 + calls * 10);
		ck_assert_int_eq(event.pid, 100);
		ck_assert_uint_eq((uint64_t)event.call.result, 0x10000000 + calls * 0x10000);
		calls++;
	}
	ck_assert_uint_eq(calls, expected);
}

START_TEST(a_stream_reads_like_its_file)
{
	struct reader *reader, *again;

	require(open_stream(stream.data, stream.size, &reader));
	ck_assert(reader->metadata.values.ours);
	ck_assert(reader->metadata.values.has_loss);
	ck_assert(!reader->metadata.values.incomplete);
	ck_assert_ptr_null(reader_damage(reader));
	expect_calls(reader, CALLS);
	require(reader_open_again(reader, &again)); /* the pipe is empty by now */
	expect_calls(again, CALLS);
	reader_close(again);
	reader_close(reader);
}
END_TEST

static void write_path(const void *data, size_t size)
{
	FILE *output = fopen(path, "w");

	ck_assert_ptr_nonnull(output);
	ck_assert_uint_eq(fwrite(data, 1, size, output), size);
	fclose(output);
}

START_TEST(a_stream_may_be_stored_in_a_file)
{
	struct recording_file *file;
	struct reader *reader;
	uint8_t *data;
	size_t size;

	write_path(stream.data, stream.size);
	require(reader_open(path, NULL, &reader));
	ck_assert(!reader->metadata.values.incomplete);
	expect_calls(reader, CALLS);
	reader_close(reader);
	/* A section in pieces is complete. */
	require(recording_file_open(path, NULL, &file));
	require(recording_file_load(file, (enum format_feature)250, &data, &size));
	ck_assert_uint_eq(size, 5000);
	free(data);
	recording_file_close(file);
}
END_TEST

START_TEST(a_file_may_come_through_a_pipe)
{
	static uint8_t data[1u << 20];
	FILE *input = fopen(path, "r");
	struct reader *reader;
	size_t size;

	ck_assert_ptr_nonnull(input);
	size = fread(data, 1, sizeof(data), input);
	fclose(input);
	require(open_stream(data, size, &reader));
	ck_assert(!reader->metadata.values.incomplete);
	expect_calls(reader, CALLS);
	reader_close(reader);
}
END_TEST

START_TEST(a_stream_that_ends_early_is_incomplete)
{
	size_t readable = 0;

	for (size_t size = 0; size < stream.size; size += size < 64 ? 1 : size < data_start ? 61 : 13) {
		struct reader *reader = NULL;
		struct mmt_error *error;
		bool at_end = false;

		write_path(stream.data, size);
		error = reader_open(path, NULL, &reader);
		if (error) {
			mmt_error_destroy(error);
			continue;
		}
		readable++;
		ck_assert(reader->metadata.values.incomplete || !reader->metadata.values.ours);
		while (!at_end) {
			struct event event;

			require(reader_next(reader, &event, &at_end));
		}
		reader_close(reader);
	}
	ck_assert_uint_gt(readable, 100);
}
END_TEST

START_TEST(damaged_streams_are_safe)
{
	unsigned state = 1;

	for (size_t i = 0; i < 1500; i++) {
		size_t place = 16 + (size_t)rand_r(&state) % (stream.size - 16);
		uint8_t before = stream.data[place];
		struct reader *reader = NULL;
		struct mmt_error *error;
		bool at_end = false;

		stream.data[place] = (uint8_t)rand_r(&state);
		write_path(stream.data, stream.size);
		error = reader_open(path, NULL, &reader);
		while (!error && !at_end) {
			struct event event;

			error = reader_next(reader, &event, &at_end);
		}
		mmt_error_destroy(error);
		reader_close(reader);
		stream.data[place] = before;
	}
}
END_TEST

/* Replace `size` bytes in the first piece of a section, `offset` after its magic number. */
static void expect_bad_piece(size_t offset, uint64_t value)
{
	const uint64_t magic = SECTION_PIECE_MAGIC;
	uint8_t *piece = memmem(stream.data, stream.size, &magic, sizeof(magic));
	struct mmt_error *error;
	struct reader *reader;
	uint64_t before;

	ck_assert_ptr_nonnull(piece);
	memcpy(&before, piece + offset, sizeof(before));
	memcpy(piece + offset, &value, sizeof(value));
	write_path(stream.data, stream.size);
	error = reader_open(path, NULL, &reader);
	ck_assert_ptr_nonnull(error);
	ck_assert_msg(strstr(error->message, "piece of a section"), "%s", error->message);
	mmt_error_destroy(error);
	memcpy(piece + offset, &before, sizeof(before));
}

START_TEST(pieces_that_do_not_fit_are_refused)
{
	expect_bad_piece(8, FEATURE_BITS); /* feature */
	expect_bad_piece(16, UINT64_MAX);  /* size of the section */
	expect_bad_piece(24, 8);	   /* not the first */
	expect_bad_piece(32, 60000);	   /* more than the record has */
}
END_TEST

/* Inside each record before the data. */
START_TEST(a_stream_without_data_says_why)
{
	size_t offset = 16, refused = 0;

	while (offset < data_start) {
		struct perf_event_header header;
		struct reader *reader;
		struct mmt_error *error;
		uint32_t behind = 0;

		memcpy(&header, stream.data + offset, sizeof(header));
		if (header.type == RECORD_HEADER_TRACING_DATA)
			memcpy(&behind, stream.data + offset + sizeof(header), sizeof(behind));
		offset += header.size + ((behind + 7) & ~7u);
		write_path(stream.data, offset - 4);
		error = reader_open(path, NULL, &reader);
		ck_assert_ptr_nonnull(error);
		ck_assert_msg(strstr(error->message, "truncated"), "%s", error->message);
		mmt_error_destroy(error);
		refused++;
	}
	ck_assert_uint_gt(refused, 5);
	ck_assert_uint_eq(offset, data_start);
}
END_TEST

/* A recorder that saw no events still writes its sections. */
START_TEST(a_stream_without_events_is_complete)
{
	struct reader *reader;

	memmove(stream.data + data_start, stream.data + data_start + data_size, stream.size - data_start - data_size);
	stream.size -= data_size;
	write_path(stream.data, stream.size);
	require(reader_open(path, NULL, &reader));
	ck_assert(reader->metadata.values.ours);
	ck_assert(!reader->metadata.values.incomplete);
	expect_calls(reader, 0);
	reader_close(reader);
}
END_TEST

/* One of them would be skipped silently. */
START_TEST(a_section_comes_once)
{
	struct mmt_error *error;
	struct reader *reader;
	size_t before = stream.size;

	put_header(RECORD_HEADER_TRACING_DATA, 16);
	buffer_put_u64(&stream, 8);
	buffer_put_u64(&stream, 0);
	write_path(stream.data, stream.size);
	error = reader_open(path, NULL, &reader);
	ck_assert_ptr_nonnull(error);
	ck_assert_msg(strstr(error->message, "formats of the tracepoints"), "%s", error->message);
	mmt_error_destroy(error);

	stream.size = before;
	for (int i = 0; i < 2; i++) {
		put_header(RECORD_HEADER_FEATURE, 24);
		buffer_put_u64(&stream, 200);
		buffer_put_u64(&stream, 0);
	}
	write_path(stream.data, stream.size);
	error = reader_open(path, NULL, &reader);
	ck_assert_ptr_nonnull(error);
	ck_assert_msg(strstr(error->message, "feature section"), "%s", error->message);
	mmt_error_destroy(error);
}
END_TEST

Suite *test_suite(void)
{
	Suite *suite = suite_create("pipe-input");
	TCase *cases = add_tcase(suite, "streams");

	tcase_add_checked_fixture(cases, begin, end);
	tcase_add_tests(cases, a_stream_reads_like_its_file, a_stream_may_be_stored_in_a_file,
			a_file_may_come_through_a_pipe, a_stream_that_ends_early_is_incomplete,
			damaged_streams_are_safe, pieces_that_do_not_fit_are_refused, a_stream_without_data_says_why,
			a_stream_without_events_is_complete, a_section_comes_once);
	return suite;
}
