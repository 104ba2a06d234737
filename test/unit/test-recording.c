// SPDX-License-Identifier: LGPL-2.1-or-later
/* The writer and the reader tested with each other, and the reader with truncated and false files. */
#include <check.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "support/recording-builder.h"
#include "support/suite.h"
#include "support/temporary.h"
#include "trace/read/reorder.h"
#include "trace/read/reader.h"
#include "trace/write/writer.h"

static char directory[TEMPORARY_PATH_SIZE];
static char path[TEMPORARY_PATH_SIZE + 32], old_path[TEMPORARY_PATH_SIZE + 64], link_path[TEMPORARY_PATH_SIZE + 32];

static void create(void)
{
	temporary_directory(directory);
	snprintf(path, sizeof(path), "%s/a.data", directory);
	snprintf(old_path, sizeof(old_path), "%s.old", path);
	snprintf(link_path, sizeof(link_path), "%s/link", directory);
}

static void destroy(void)
{
	unlink(path);
	unlink(old_path);
	unlink(link_path);
	ck_assert_int_eq(rmdir(directory), 0); /* nothing else is left behind */
}

static uint8_t *read_file(const char *name, size_t *size_ret)
{
	CLEANUP(fclose) FILE *file = fopen(name, "r");
	uint8_t *data = malloc(1 << 20);

	ck_assert_ptr_nonnull(file);
	ck_assert_ptr_nonnull(data);
	*size_ret = fread(data, 1, 1 << 20, file);
	return data;
}

static void write_file(const char *name, const void *data, size_t size)
{
	CLEANUP(fclose) FILE *file = fopen(name, "w");

	ck_assert_ptr_nonnull(file);
	ck_assert_uint_eq(fwrite(data, 1, size, file), size);
}

static struct reader *open_reader(void)
{
	struct reader *reader;
	struct mmt_error *error = reader_open(path, NULL, &reader);

	ck_assert_msg(!error, "%s", error ? error->message : "");
	return reader;
}

/* False at the end. */
/* Check writes a message at each assertion, which is too slow for each event of so many files. */
static bool next(struct reader *reader, struct event *event)
{
	struct mmt_error *error;
	bool end;

	error = reader_next(reader, event, &end);
	if (error)
		ck_abort_msg("%s", error->message);
	return !end;
}

static void expect(struct reader *reader, enum event_kind kind, uint64_t time_ns, struct event *event)
{
	ck_assert(next(reader, event));
	ck_assert_int_eq(event->kind, kind);
	ck_assert_uint_eq(event->time_ns, time_ns);
}

static void expect_end(struct reader *reader)
{
	struct event event;

	ck_assert(!next(reader, &event));
	ck_assert_ptr_null(reader_damage(reader));
	ck_assert_uint_eq(reader->out_of_order, 0);
	reader_close(reader);
}

static const struct event_mapping lines[] = {
    {.start = 0x400000, .length = 0x1000, .protection = PROT_READ | PROT_EXEC, .flags = MAP_PRIVATE, .path = "/bin/a"},
    {.start = 0x7000000,
     .length = 0x2000,
     .protection = PROT_READ,
     .flags = MAP_SHARED,
     .device_major = 8,
     .device_minor = 1,
     .inode = 77,
     .file_offset = 0x3000,
     .path = "/tmp/b c"},
};

/* Some of everything. */
static void build(bool finish)
{
	static const uint64_t chain[] = {0x1111, 0x2222, 0x3333};
	static const uint64_t stack[] = {0x2222, 0x99};
	struct recording_builder *builder = builder_create(path);

	builder_snapshot(builder, SNAPSHOT_START, 10, 5, lines, 2);
	builder_round(builder);
	builder_comm(builder, 20, 5, 5, "target");
	builder_mapping(builder, 30, 5, 6, &lines[1]);
	builder_call(builder, &(struct builder_call){.call = CALL_MMAP,
						     .time_ns = 40,
						     .pid = 5,
						     .tid = 6,
						     .cpu = 1,
						     .arguments = {1, 0x2000, 3, 0x22, UINT64_MAX, 7},
						     .result = 0x7f0000000000,
						     .callchain = chain,
						     .callchain_count = 3,
						     .instruction_pointer = 0x1111,
						     .stack_pointer = 0x8000,
						     .frame_pointer = 0x8010,
						     .stack = stack,
						     .stack_size = sizeof(stack)});
	builder_round(builder);
	builder_call(builder, &(struct builder_call){.call = CALL_MMAP,
						     .dump = true,
						     .time_ns = 41,
						     .pid = 5,
						     .tid = 6,
						     .arguments = {1, 0x2000, 3, 0x22, UINT64_MAX, 7}});
	builder_munmap_exit(builder, 60, 5, 5, 0x7f0000000000, 0x1000);
	builder_fork(builder, 50, 9, 9, 5, 6);
	builder_new_task(builder, 51, 5, 6, 9, 0x1200011);
	builder_round(builder);
	builder_lost(builder, 70, BUILDER_SYSCALL_ID, 3);
	builder_exit(builder, 80, 9, 9);
	builder_snapshot(builder, SNAPSHOT_STOP, 90, 5, lines, 1);
	builder_round(builder);
	if (finish)
		builder_finish(builder, 100);
	else
		builder_abandon(builder);
}

static void check_mapping(const struct event *event, const struct event_mapping *line)
{
	ck_assert_uint_eq(event->mapping.start, line->start);
	ck_assert_uint_eq(event->mapping.length, line->length);
	ck_assert_uint_eq(event->mapping.file_offset, line->file_offset);
	ck_assert_uint_eq(event->mapping.device_major, line->device_major);
	ck_assert_uint_eq(event->mapping.device_minor, line->device_minor);
	ck_assert_uint_eq(event->mapping.inode, line->inode);
	ck_assert_uint_eq(event->mapping.protection, line->protection);
	ck_assert_uint_eq(event->mapping.flags, line->flags);
	ck_assert_str_eq(event->mapping.path, line->path);
	ck_assert(!event->mapping.code_only);
}

static void check_snapshot(struct reader *reader, enum snapshot_kind kind, uint64_t time_ns, size_t count)
{
	struct event event;

	expect(reader, EVENT_SNAPSHOT_BEGIN, time_ns, &event);
	ck_assert_int_eq(event.snapshot, kind);
	ck_assert_int_eq(event.pid, 5);
	for (size_t i = 0; i < count; i++) {
		expect(reader, EVENT_SNAPSHOT_LINE, time_ns, &event);
		ck_assert_int_eq(event.snapshot, kind);
		check_mapping(&event, &lines[i]);
	}
	expect(reader, EVENT_SNAPSHOT_END, time_ns, &event);
}

static void check_deep_call(const struct event *event)
{
	static const uint64_t arguments[] = {1, 0x2000, 3, 0x22, UINT64_MAX, 7};
	const struct event_stack *stack = &event->call.stack;
	uint64_t words[2];

	ck_assert_int_eq(event->call.call, CALL_MMAP);
	ck_assert_int_eq(event->pid, 5);
	ck_assert_int_eq(event->tid, 6);
	ck_assert_int_eq(event->cpu, 1);
	ck_assert(event->call.has_arguments);
	ck_assert_mem_eq(event->call.arguments, arguments, sizeof(arguments));
	ck_assert_int_eq(event->call.result, 0x7f0000000000);
	ck_assert_uint_eq(stack->callchain_count, 3);
	ck_assert_uint_eq(stack->callchain[0], 0x1111);
	ck_assert_uint_eq(stack->callchain[2], 0x3333);
	ck_assert(!stack->callchain_full);
	ck_assert_uint_eq(stack->registers.values[architecture_x86_64.instruction_pointer], 0x1111);
	ck_assert_uint_eq(stack->registers.values[architecture_x86_64.stack_pointer], 0x8000);
	ck_assert_uint_eq(stack->registers.values[architecture_x86_64.frame_pointer], 0x8010);
	ck_assert_uint_eq(stack->byte_count, sizeof(words));
	ck_assert_uint_eq(stack->bytes_wanted, BUILDER_STACK_BYTES);
	memcpy(words, stack->bytes, sizeof(words));
	ck_assert_uint_eq(words[0], 0x2222);
	ck_assert_uint_eq(words[1], 0x99);
}

static void check_events(struct reader *reader)
{
	struct event event;

	check_snapshot(reader, SNAPSHOT_START, 10, 2);
	expect(reader, EVENT_COMM, 20, &event);
	ck_assert_str_eq(event.task.name, "target");
	expect(reader, EVENT_MAPPING, 30, &event);
	check_mapping(&event, &lines[1]);
	ck_assert_int_eq(event.tid, 6);
	expect(reader, EVENT_CALL, 40, &event);
	check_deep_call(&event);
	expect(reader, EVENT_STACK_DUMP, 41, &event);
	ck_assert_int_eq(event.call.call, CALL_MMAP);
	expect(reader, EVENT_FORK, 50, &event);
	ck_assert_int_eq(event.task.pid, 9);
	ck_assert_int_eq(event.task.tid, 9);
	ck_assert_int_eq(event.task.parent_pid, 5);
	ck_assert_int_eq(event.task.parent_tid, 6);
	expect(reader, EVENT_NEW_TASK, 51, &event);
	ck_assert_int_eq(event.task.tid, 9);
	ck_assert_uint_eq(event.task.clone_flags, 0x1200011);
	expect(reader, EVENT_CALL, 60, &event);
	ck_assert_int_eq(event.call.call, CALL_MUNMAP);
	ck_assert_int_eq(event.call.result, 0);
	ck_assert_uint_eq(event.call.arguments[1], 0x1000);
	expect(reader, EVENT_LOST, 70, &event);
	ck_assert_uint_eq(event.lost.count, 3);
	expect(reader, EVENT_EXIT, 80, &event);
	ck_assert_int_eq(event.task.tid, 9);
	check_snapshot(reader, SNAPSHOT_STOP, 90, 1);
}

START_TEST(written_events_are_read_in_order)
{
	const struct reader_metadata *metadata;
	struct reader *reader;

	build(true);
	reader = open_reader();
	metadata = &reader->metadata.values;
	ck_assert(metadata->ours);
	ck_assert(!metadata->incomplete);
	ck_assert(metadata->has_loss);
	ck_assert(metadata->compressed);
	ck_assert_uint_eq(metadata->loss.stop_ns, 100);
	ck_assert_ptr_eq(metadata->architecture, &architecture_x86_64);
	ck_assert_str_eq(metadata->attributes[0].name, "syscalls:sys_exit_mmap");
	ck_assert_int_eq(metadata->attributes[0].role, ROLE_SYSCALL);
	ck_assert_int_eq(metadata->attributes[CALL_KINDS].role, ROLE_DUMP);
	check_events(reader);
	expect_end(reader);
}
END_TEST

START_TEST(entries_are_decoded_and_locks_ignored)
{
	struct recording_builder *builder = builder_create(path);
	struct reader *reader;
	struct event event;

	builder_lock(builder, 10, 5, 6, 0xffff888012345678, true);
	builder_lock(builder, 11, 5, 6, 0xffff888012345678, false);
	for (uint64_t advice = 9; advice <= 12; advice++)
		builder_call(builder, &(struct builder_call){.call = CALL_MADVISE,
							     .time_ns = 20 + advice,
							     .pid = 5,
							     .tid = 6,
							     .arguments = {0x7f0000000000, 0x2000, advice}});
	builder_finish(builder, 100);
	reader = open_reader();
	expect(reader, EVENT_OTHER, 10, &event);
	expect(reader, EVENT_OTHER, 11, &event);
	expect(reader, EVENT_OTHER, 29, &event); /* MADV_REMOVE */
	for (uint64_t advice = MADV_DONTFORK; advice <= MADV_DOFORK; advice++) {
		expect(reader, EVENT_CALL, 20 + advice, &event);
		ck_assert_int_eq(event.call.call, CALL_MADVISE);
		ck_assert(event.call.has_arguments);
		ck_assert_uint_eq(event.call.arguments[0], 0x7f0000000000);
		ck_assert_uint_eq(event.call.arguments[1], 0x2000);
		ck_assert_uint_eq(event.call.arguments[2], advice);
		ck_assert_int_eq(event.call.result, 0);
	}
	expect(reader, EVENT_OTHER, 32, &event);
	expect_end(reader);
}
END_TEST

START_TEST(killed_recorder_leaves_a_readable_file)
{
	struct reader *reader;

	build(false);
	reader = open_reader();
	ck_assert(reader->metadata.values.ours);
	ck_assert(reader->metadata.values.incomplete);
	check_events(reader);
	expect_end(reader);
}
END_TEST

START_TEST(missing_loss_counts_mean_an_unfinished_recorder)
{
	CLEANUP(free) uint8_t *data = NULL;
	struct reader *reader;
	size_t size;

	build(true);
	data = read_file(path, &size);
	data[72 + FEATURE_MMTRACE_LOSS / 8] &= (uint8_t) ~(1u << FEATURE_MMTRACE_LOSS % 8);
	write_file(path, data, size);
	reader = open_reader();
	ck_assert(reader->metadata.values.incomplete);
	check_events(reader);
	expect_end(reader);
}
END_TEST

/* Newer versions of perf refuse records whose size is not aligned. */
START_TEST(every_record_is_aligned)
{
	CLEANUP(free) uint8_t *data = NULL;
	uint64_t offset, data_size;
	unsigned compressed = 0;
	size_t size;

	build(true);
	data = read_file(path, &size);
	memcpy(&offset, data + 40, sizeof(offset));
	memcpy(&data_size, data + 48, sizeof(data_size));
	for (uint64_t end = offset + data_size; offset < end;) {
		struct perf_event_header header;

		memcpy(&header, data + offset, sizeof(header));
		ck_assert_uint_eq(offset % 8, 0);
		ck_assert_uint_eq(header.size % 8, 0);
		compressed += header.type == RECORD_COMPRESSED;
		offset += header.size;
	}
	ck_assert_uint_eq(compressed, 4);
}
END_TEST

/* Reads all events, or one line describes the damage. Returns the number of events. */
static size_t drain(bool *incomplete_ret, bool *damaged_ret)
{
	struct mmt_error *error;
	struct reader *reader;
	struct event event;
	size_t count = 0;

	*incomplete_ret = *damaged_ret = false;
	error = reader_open(path, NULL, &reader);
	if (error) {
		ck_assert_ptr_nonnull(strstr(error->message, path));
		ck_assert_uint_gt(strlen(error->message), strlen(path) + 10);
		mmt_error_destroy(error);
		*damaged_ret = true;
		return 0;
	}
	while (next(reader, &event))
		count++;
	*incomplete_ret = reader->metadata.values.incomplete;
	*damaged_ret = reader_damage(reader) != NULL;
	if (*damaged_ret)
		ck_assert(strstr(reader_damage(reader), "record at offset ") ||
			  strstr(reader_damage(reader), "section") ||
			  strstr(reader_damage(reader), "the file was truncated: ") ||
			  strstr(reader_damage(reader), "the file does not match its checksum"));
	reader_close(reader);
	return count;
}

/* The file grows by a byte at a time: truncating and rewriting it so often would wait for the disk. */
START_TEST(truncated_anywhere_it_is_incomplete)
{
	CLEANUP(free) uint8_t *data = NULL;
	CLEANUP(close) int fd = -1;
	size_t size, previous = 0, whole;
	bool incomplete, damaged;

	build(true);
	whole = drain(&incomplete, &damaged);
	data = read_file(path, &size);
	fd = open(path, O_WRONLY | O_TRUNC | O_CLOEXEC);
	for (size_t cut = 0; cut < size; cut++) {
		size_t count = drain(&incomplete, &damaged);

		ck_assert_msg(incomplete || damaged, "%zu of %zu bytes taken for a whole recording", cut, size);
		ck_assert_msg(count >= previous, "%zu bytes give %zu events, fewer gave %zu", cut, count, previous);
		previous = count;
		ck_assert_int_eq(write(fd, &data[cut], 1), 1);
	}
	ck_assert_uint_eq(previous, whole);
}
END_TEST

START_TEST(any_changed_byte_is_safe)
{
	static const uint8_t masks[] = {0x01, 0x80};
	CLEANUP(free) uint8_t *data = NULL;
	CLEANUP(close) int fd = -1;
	bool incomplete, damaged;
	size_t size;

	build(true);
	data = read_file(path, &size);
	fd = open(path, O_WRONLY | O_CLOEXEC);
	for (size_t i = 0; i < size; i++) {
		uint8_t kept = data[i];

		for (size_t j = 0; j < sizeof(masks); j++) {
			data[i] = kept ^ masks[j];
			ck_assert_int_eq(pwrite(fd, &data[i], 1, (off_t)i), 1);
			(void)drain(&incomplete, &damaged);
		}
		data[i] = kept;
		ck_assert_int_eq(pwrite(fd, &kept, 1, (off_t)i), 1);
	}
	(void)drain(&incomplete, &damaged);
	ck_assert(!incomplete && !damaged);
}
END_TEST

static void expect_refusal(const void *data, size_t size, enum mmt_error_code code, const char *words)
{
	struct mmt_error *error;
	struct reader *reader;

	write_file(path, data, size);
	error = reader_open(path, NULL, &reader);
	ck_assert_ptr_nonnull(error);
	ck_assert_msg(strstr(error->message, words), "%s", error->message);
	ck_assert_int_eq(error->code, code);
	mmt_error_destroy(error);
}

START_TEST(other_files_are_refused_with_the_reason)
{
	CLEANUP(free) uint8_t *data = NULL;
	struct reader *reader;
	struct mmt_error *error;
	uint64_t value;
	size_t size;

	build(true);
	data = read_file(path, &size);
	expect_refusal("", 0, MMT_ERROR_FORMAT, "empty");
	expect_refusal("hello, world\n", 13, MMT_ERROR_FORMAT, "not a recording");
	expect_refusal("2ELIFREP", 8, MMT_ERROR_UNSUPPORTED, "other byte order");
	expect_refusal(data, 50, MMT_ERROR_FORMAT, "ends too early");
	value = 16;
	memcpy(data + 8, &value, sizeof(value));
	expect_refusal(data, size, MMT_ERROR_FORMAT, "no event attributes"); /* a pipe without any */
	value = 105;
	memcpy(data + 8, &value, sizeof(value));
	expect_refusal(data, size, MMT_ERROR_FORMAT, "size 105 instead of 104");
	value = 104;
	memcpy(data + 8, &value, sizeof(value));
	value = UINT64_MAX;
	memcpy(data + 24, &value, sizeof(value));
	expect_refusal(data, size, MMT_ERROR_FORMAT, "attributes lie beyond the end");
	unlink(path);
	error = reader_open(path, NULL, &reader);
	ck_assert_ptr_nonnull(error);
	ck_assert_ptr_nonnull(strstr(error->message, "No such file"));
	mmt_error_destroy(error);
	error = reader_open(directory, NULL, &reader);
	ck_assert_ptr_nonnull(error);
	ck_assert_ptr_nonnull(strstr(error->message, "not a regular file"));
	mmt_error_destroy(error);
}
END_TEST

START_TEST(damage_ends_the_events_and_is_described)
{
	struct recording_builder *builder = builder_create(path);
	struct reader *reader;
	struct event event;

	builder_mmap_exit(builder, 1, 5, 5, 0x10000, 0x1000, 0x1234);
	builder_mmap_exit(builder, 1 + ORDER_IN_FLIGHT_NS, 5, 5, 0x30000, 0x1000,
			  0x1234); /* the other is complete then */
	builder_round(builder);
	builder_record(builder, PERF_RECORD_SAMPLE, "\144\0\0\0\0\0\0\0", 8); /* an id and nothing else */
	builder_round(builder);
	builder_mmap_exit(builder, 3, 5, 5, 0x20000, 0x1000, 0x1234);
	builder_finish(builder, 9);
	reader = open_reader();
	expect(reader, EVENT_CALL, 1, &event);
	ck_assert(!next(reader, &event));
	ck_assert_ptr_nonnull(reader_damage(reader));
	ck_assert_ptr_nonnull(strstr(reader_damage(reader), "(SAMPLE): ends too early at byte 16"));
	reader_close(reader);
}
END_TEST

START_TEST(an_impossible_count_of_lost_events_is_damage)
{
	struct recording_builder *builder = builder_create(path);
	struct reader *reader;
	struct event event;

	builder_lost(builder, 1, BUILDER_SYSCALL_ID, LIMIT_LOST);
	builder_lost(builder, 2, BUILDER_SYSCALL_ID, LIMIT_LOST + 1);
	builder_finish(builder, 9);
	reader = open_reader();
	expect(reader, EVENT_LOST, 1, &event);
	ck_assert(!next(reader, &event));
	ck_assert_ptr_nonnull(reader_damage(reader));
	ck_assert_ptr_nonnull(strstr(reader_damage(reader), "(LOST): more lost events than possible"));
	reader_close(reader);
}
END_TEST

START_TEST(late_sections_are_optional)
{
	static const enum format_feature features[] = {
	    FEATURE_MMTRACE_RESIDENCY, FEATURE_MMTRACE_HUGE_PAGES, FEATURE_MMTRACE_SWAPPED, FEATURE_MMTRACE_SHARED,
	    FEATURE_MMTRACE_PERF_MAPS, FEATURE_BUILD_ID,	   FEATURE_SAMPLE_TIME,	    FEATURE_MMTRACE_HEAP};

	for (size_t i = 0; i < sizeof(features) / sizeof(features[0]); i++) {
		struct recording_builder *builder = builder_create(path);
		struct reader *reader;
		struct event event;

		builder_mmap_exit(builder, 1, 5, 5, 0x10000, 0x1000, 0x1234);
		builder_round(builder);
		builder_section(builder, features[i], features[i] == FEATURE_MMTRACE_HUGE_PAGES ? "\2\0\0" : "\1\0\0",
				4);
		builder_finish(builder, 9);
		reader = open_reader();
		ck_assert_ptr_nonnull(reader_damage(reader));
		ck_assert_ptr_nonnull(strstr(reader_damage(reader), "section: "));
		ck_assert(!reader->metadata.values.has_residency);
		ck_assert(!reader->metadata.values.has_huge_pages);
		ck_assert(!reader->metadata.values.has_swapped);
		ck_assert_uint_eq(reader->metadata.values.shared.processes.count, 0);
		ck_assert(!reader->metadata.values.incomplete);
		expect(reader, EVENT_CALL, 1, &event);
		ck_assert(!next(reader, &event));
		reader_close(reader);
	}
}
END_TEST

START_TEST(copies_from_a_second_root_are_dropped)
{
	struct recording_builder *builder = builder_create(path);
	struct builder_call call = {.call = CALL_MUNMAP, .pid = 5, .tid = 5};
	static const struct {
		uint64_t time_ns, id;
		uint32_t cpu;
		int32_t tid;
	} calls[] = {
	    {10, BUILDER_SYSCALL_ID + CALL_MUNMAP, 0, 5},
	    {11, BUILDER_SYSCALL_ID + BUILDER_SECOND_ROOT + CALL_MUNMAP, 0, 5}, /* a copy */
	    {20, BUILDER_SYSCALL_ID + BUILDER_SECOND_ROOT + CALL_MUNMAP, 1, 5}, /* ids are per processor */
	    {21, BUILDER_SYSCALL_ID + CALL_MUNMAP, 1, 5},			/* a copy */
	    {30, BUILDER_SYSCALL_ID + BUILDER_SECOND_ROOT + CALL_MUNMAP, 0, 6}, /* another thread */
	    {40, BUILDER_SYSCALL_ID + CALL_MUNMAP, 0, 5},
	    {41, BUILDER_SYSCALL_ID + BUILDER_SECOND_ROOT + CALL_MUNMAP, 0, 5}, /* a copy */
	};
	static const uint64_t expected[] = {10, 20, 30, 40};
	struct reader *reader;
	struct event event;

	for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++) {
		call.time_ns = calls[i].time_ns;
		call.id = calls[i].id;
		call.cpu = calls[i].cpu;
		call.tid = calls[i].tid;
		builder_call(builder, &call);
	}
	/* A new thread has the TID now: its predecessor's order is void. */
	builder_fork(builder, 50, 5, 5, 1, 1);
	call.time_ns = 60;
	call.id = BUILDER_SYSCALL_ID + BUILDER_SECOND_ROOT + CALL_MUNMAP;
	call.cpu = 0;
	call.tid = 5;
	builder_call(builder, &call);
	builder_finish(builder, 99);
	reader = open_reader();
	for (size_t i = 0; i < 4; i++)
		expect(reader, EVENT_CALL, expected[i], &event);
	expect(reader, EVENT_FORK, 50, &event);
	expect(reader, EVENT_CALL, 60, &event);
	expect_end(reader);
}
END_TEST

/* The recorder's own record has CPU 0, whatever root the thread has there. */
START_TEST(names_at_the_start_hide_no_records)
{
	struct recording_builder *builder = builder_create(path);
	struct reader *reader;
	struct event event;

	builder_thread_name(builder, 10, 5, 6, "worker");
	builder_snapshot(builder, SNAPSHOT_START, 11, 6, NULL, 0);
	builder_mapping(builder, 20, 5, 6, &lines[0]);
	builder_comm(builder, 30, 5, 6, "renamed");
	builder_thread_name(builder, 40, 5, 6, "again");
	builder_exit(builder, 50, 5, 6);
	builder_finish(builder, 60);
	reader = open_reader();
	expect(reader, EVENT_COMM, 10, &event);
	ck_assert_str_eq(event.task.name, "worker");
	ck_assert_int_eq(event.tid, 6);
	ck_assert(!event.task.exec);
	ck_assert_int_eq(reader->metadata.values.attributes[event.attribute].role, ROLE_SNAPSHOT);
	expect(reader, EVENT_SNAPSHOT_BEGIN, 11, &event);
	expect(reader, EVENT_SNAPSHOT_END, 11, &event);
	expect(reader, EVENT_MAPPING, 20, &event);
	expect(reader, EVENT_COMM, 30, &event);
	expect(reader, EVENT_COMM, 40, &event);
	ck_assert_str_eq(event.task.name, "again");
	expect(reader, EVENT_EXIT, 50, &event);
	expect_end(reader);
}
END_TEST

START_TEST(large_and_incompressible_records_are_kept)
{
	struct recording_builder *builder = builder_create(path);
	static uint8_t body[UINT16_MAX - 15];
	struct reader *reader;
	struct event event;
	uint64_t state = 1;

	for (size_t round = 0; round < 40; round++) {
		for (size_t i = 0; i < sizeof(body); i++) {
			state = state * 6364136223846793005ULL + 1442695040888963407ULL;
			body[i] = (uint8_t)(state >> 56);
		}
		/* A record type that is not read, with a complete trailer. */
		memset(body + sizeof(body) - 40, 0, 40);
		builder_record(builder, PERF_RECORD_TEXT_POKE, body, sizeof(body) & ~7u);
	}
	builder_finish(builder, 9);
	reader = open_reader();
	for (size_t round = 0; round < 40; round++) {
		expect(reader, EVENT_OTHER, 0, &event);
		ck_assert_uint_eq(event.record_type, PERF_RECORD_TEXT_POKE);
		ck_assert_uint_eq(event.record_size, 8 + (sizeof(body) & ~7u));
	}
	expect_end(reader);
}
END_TEST

/* Incompressible records until the first error, which is returned. */
static struct mmt_error *write_until_full(struct writer *writer, size_t *written_ret)
{
	uint64_t body[512], state = 1;
	struct mmt_error *error = NULL;

	*written_ret = 0;
	while (!error) {
		struct perf_event_header header = {.type = PERF_RECORD_TEXT_POKE, .size = sizeof(body)};

		for (size_t i = 0; i < sizeof(body) / sizeof(body[0]); i++)
			body[i] = state = state * 6364136223846793005ULL + 1442695040888963407ULL;
		memset(body + 505, 0, 7 * sizeof(body[0]));
		memcpy(body, &header, sizeof(header));
		error = writer_append(writer, body, sizeof(body));
		if (!error)
			error = writer_flush(writer);
		*written_ret += error ? 0 : 1;
	}
	return error;
}

START_TEST(full_disk_keeps_what_was_written)
{
	const struct rlimit limit = {.rlim_cur = 100000, .rlim_max = RLIM_INFINITY};
	const struct perf_event_attr attr = {.type = PERF_TYPE_SOFTWARE, .config = PERF_COUNT_SW_DUMMY};
	const uint64_t id = 1;
	struct mmt_error *error;
	struct writer *writer;
	struct reader *reader;
	struct event event;
	size_t written, count = 0;

	signal(SIGXFSZ, SIG_IGN);
	ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &limit), 0);
	ck_assert_ptr_null(writer_create(path, &writer));
	ck_assert_ptr_null(writer_add_attribute(writer, &attr, "dummy", &id, 1));
	ck_assert_ptr_null(writer_add_section(writer, FEATURE_HOSTNAME, "\4\0\0\0abc", 8));
	ck_assert_ptr_null(writer_start(writer));
	error = write_until_full(writer, &written);
	ck_assert_ptr_nonnull(strstr(error->message, "File too large"));
	mmt_error_destroy(error);
	ck_assert_uint_gt(written, 20);
	error = writer_finish(writer);
	ck_assert_int_eq(error ? error->code : MMT_ERROR_SYSTEM, MMT_ERROR_SYSTEM);
	mmt_error_destroy(error);
	writer_destroy(writer);

	reader = open_reader();
	ck_assert_str_eq(reader->metadata.values.host, "abc");
	ck_assert(!reader->metadata.values.incomplete);
	while (next(reader, &event))
		count++;
	ck_assert_ptr_null(reader_damage(reader));
	/* At most the last write reserved room for the end of the file. */
	ck_assert_uint_ge(count + 1, written);
	reader_close(reader);
}
END_TEST

START_TEST(names_and_modes_of_the_file)
{
	struct stat status;
	struct reader *reader;
	struct event event;

	write_file(path, "earlier", 7);
	builder_abandon(builder_create(path));
	ck_assert_int_eq(stat(path, &status), 0);
	ck_assert_uint_eq(status.st_mode & 07777, 0600);
	ck_assert_int_eq(stat(old_path, &status), 0);
	ck_assert_int_eq(status.st_size, 7);
	builder_finish(builder_create(path), 0);
	reader = open_reader();
	ck_assert(!reader->metadata.values.incomplete);
	ck_assert(!next(reader, &event));
	reader_close(reader);
}
END_TEST

START_TEST(nothing_is_touched_before_the_start)
{
	struct writer *writer;
	struct stat status;

	write_file(path, "earlier", 7);
	ck_assert_ptr_null(writer_create(path, &writer));
	writer_destroy(writer);
	ck_assert_int_eq(stat(path, &status), 0);
	ck_assert_int_eq(status.st_size, 7);
	ck_assert_int_lt(stat(old_path, &status), 0);
}
END_TEST

START_TEST(links_and_directories_are_no_targets)
{
	struct mmt_error *error;
	struct writer *writer;

	ck_assert_int_eq(symlink("a.data", link_path), 0);
	error = writer_create(link_path, &writer);
	ck_assert_ptr_nonnull(error);
	ck_assert_ptr_nonnull(strstr(error->message, "symbolic link"));
	mmt_error_destroy(error);
	error = writer_create(directory, &writer);
	ck_assert_ptr_nonnull(error);
	ck_assert_ptr_nonnull(strstr(error->message, "directory"));
	mmt_error_destroy(error);
	error = writer_create("/tmp/no/such/place", &writer);
	ck_assert_ptr_nonnull(error);
	ck_assert_ptr_nonnull(strstr(error->message, "No such file or directory"));
	mmt_error_destroy(error);
}
END_TEST

/* Collapses runs of spaces, so that columns do not matter. */
static void squeeze(char *text)
{
	char *end = text;

	for (; *text; text++) {
		if (*text != ' ' || end[-1] != ' ')
			*end++ = *text;
	}
	*end = '\0';
}

START_TEST(perf_reads_it)
{
	CLEANUP(free) uint8_t *output = NULL;
	char command[1024];
	char *text, *warning;
	size_t size;

	if (system("perf version >/dev/null 2>&1") != 0)
		SKIP_TEST("perf is not installed");
	build(true);
	snprintf(command, sizeof(command), "perf script --ns -i %s >%s 2>&1", path, old_path);
	ck_assert_int_eq(system(command), 0);
	output = read_file(old_path, &size);
	output[size] = '\0';
	text = (char *)output;
	squeeze(text + 1);
	ck_assert_ptr_nonnull(strstr(text, " 6 [001] 0.000000040: syscalls:sys_exit_mmap: 0x7f0000000000"));
	ck_assert_ptr_nonnull(strstr(text, " 0.000000041: syscalls:sys_exit_mmap: "));
	ck_assert_ptr_nonnull(strstr(text, " 0.000000051: task:task_newtask: pid=9"));
	ck_assert_ptr_nonnull(strstr(text, "target 5 [000] 0.000000060: syscalls:sys_exit_munmap: 0x0"));
	/* It warns of the loss in the file, and of nothing else. */
	warning = strstr(text, "arning:");
	ck_assert_ptr_nonnull(strstr(text, "lost 1 chunks!"));
	ck_assert_ptr_nonnull(warning);
	ck_assert_msg(!strstr(warning + 1, "arning:") && !strstr(text, "Error"), "%s", text);
}
END_TEST

Suite *test_suite(void)
{
	Suite *suite = suite_create("recording");
	TCase *cases = add_tcase(suite, "files");

	tcase_set_timeout(cases, 600);
	tcase_add_checked_fixture(cases, create, destroy);
	tcase_add_tests(cases, written_events_are_read_in_order, entries_are_decoded_and_locks_ignored,
			killed_recorder_leaves_a_readable_file, missing_loss_counts_mean_an_unfinished_recorder,
			every_record_is_aligned, truncated_anywhere_it_is_incomplete, any_changed_byte_is_safe,
			other_files_are_refused_with_the_reason, an_impossible_count_of_lost_events_is_damage,
			damage_ends_the_events_and_is_described, late_sections_are_optional,
			copies_from_a_second_root_are_dropped, names_at_the_start_hide_no_records,
			large_and_incompressible_records_are_kept, full_disk_keeps_what_was_written,
			names_and_modes_of_the_file, nothing_is_touched_before_the_start,
			links_and_directories_are_no_targets, perf_reads_it);
	return suite;
}
