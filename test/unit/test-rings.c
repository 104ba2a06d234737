// SPDX-License-Identifier: LGPL-2.1-or-later
#include <check.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "base/bytes.h"
#include "capture/recorder/ring-reader.h"
#include "capture/perf/attach.h"
#include "capture/perf/ring-buffers.h"
#include "support/suite.h"
#include "trace/format/sample-layout.h"

#define PAGE 4096

static void expect_division(uint64_t bytes, uint32_t dump_bytes, uint64_t syscall_event, uint64_t dump)
{
	const struct ring_needs needs = {.dump_bytes = dump_bytes, .page_bytes = PAGE};
	uint64_t sizes[RING_KINDS];

	rings_divide(bytes, &needs, LARGE_DUMPS_LEFT_OUT, sizes);
	ck_assert_uint_eq(sizes[RING_SYSCALL], syscall_event);
	ck_assert_uint_eq(sizes[RING_DUMP], dump);
	ck_assert_uint_eq(sizes[RING_LARGE_DUMP], 0);
}

START_TEST(memory_is_divided_among_rings)
{
	expect_division(8 << 20, 0, 8 << 20, 0);
	expect_division(8 << 20, 8192, 4 << 20, 4 << 20);
	expect_division(12 << 20, 8192, 8 << 20, 4 << 20);
	expect_division(15 << 20, 8192, 8 << 20, 4 << 20);
	/* A size that is too small: the smallest that works, with room for a dump. */
	expect_division(0, 0, 16 << 10, 0);
	expect_division(0, 8192, 16 << 10, 16 << 10);
	expect_division(4096, 65280, 16 << 10, 128 << 10);
}
END_TEST

static void expect_room(uint64_t bytes, enum large_dump_room room, uint64_t syscall_event, uint64_t dump,
			uint64_t large)
{
	const struct ring_needs needs = {.dump_bytes = 8192, .large_dump_bytes = 65280, .page_bytes = PAGE};
	uint64_t sizes[RING_KINDS];

	rings_divide(bytes, &needs, room, sizes);
	ck_assert_uint_eq(sizes[RING_SYSCALL], syscall_event);
	ck_assert_uint_eq(sizes[RING_DUMP], dump);
	ck_assert_uint_eq(sizes[RING_LARGE_DUMP], large);
}

/* Events that are open in every scope, such as that of OOM kills, leave fewer descriptors. */
START_TEST(kept_tracepoints_take_descriptors)
{
	struct rings rings = {0};
	struct event_set set = {0};
	struct attachment attachment = {.set = &set, .rings = &rings};
	size_t before;

	ck_assert(vector_push(&rings.cpus, 0));
	before = attach_threads_max(&attachment, true);
	for (int i = 0; i < 5; i++)
		ck_assert(vector_push(&attachment.kept_tracepoints, -1));
	ck_assert_uint_eq(attach_threads_max(&attachment, true), before - 5);
	vector_deinit(&attachment.kept_tracepoints);
	vector_deinit(&rings.cpus);
}
END_TEST

/* Calls never get less memory because of them; small dumps do if memory is short. */
START_TEST(room_for_large_dumps)
{
	expect_room(32 << 20, LARGE_DUMPS_BESIDES, 16 << 20, 16 << 20, 8 << 20);
	expect_room(256 << 20, LARGE_DUMPS_BESIDES, 128 << 20, 128 << 20, 8 << 20);
	expect_room(4 << 20, LARGE_DUMPS_BESIDES, 2 << 20, 2 << 20, 1 << 20);
	expect_room(512 << 10, LARGE_DUMPS_BESIDES, 256 << 10, 256 << 10, 128 << 10);
	expect_room(512 << 10, LARGE_DUMPS_TAKE_ROOM, 256 << 10, 128 << 10, 128 << 10);
	expect_room(512 << 10, LARGE_DUMPS_LEFT_OUT, 256 << 10, 256 << 10, 0);
	/* A ring has room for one at least. */
	expect_room(8 << 10, LARGE_DUMPS_BESIDES, 16 << 10, 16 << 10, 128 << 10);
	expect_room(8 << 10, LARGE_DUMPS_TAKE_ROOM, 16 << 10, 16 << 10, 128 << 10);
}
END_TEST

static struct perf_event_attr describe_sample(void)
{
	return (struct perf_event_attr){
	    .sample_type = EVENTS_SAMPLE_TYPE | PERF_SAMPLE_CALLCHAIN | PERF_SAMPLE_RAW | PERF_SAMPLE_REGS_USER |
			   PERF_SAMPLE_STACK_USER,
	    .sample_regs_user = 7,
	};
}

/* A sample with 2 callchain entries, 4 + 20 bytes of RAW, 3 registers and 16 stack bytes, of which `copied` are
 * used. */
static void put_sample(struct buffer *buffer, uint64_t registers_abi, uint64_t copied)
{
	buffer_init(buffer, 65536);
	memset(buffer_extend(buffer, 48), 0, 48);
	buffer_put_u64(buffer, 2);
	buffer_put_u64(buffer, 0xfffffffffffffe00);
	buffer_put_u64(buffer, 0x1234);
	buffer_put_u32(buffer, 20);
	memset(buffer_extend(buffer, 20), 0, 20);
	buffer_put_u64(buffer, registers_abi);
	for (unsigned i = 0; registers_abi && i < 3; i++)
		buffer_put_u64(buffer, i);
	buffer_put_u64(buffer, 16);
	buffer_put_u64(buffer, 0x1111);
	buffer_put_u64(buffer, 0x2222);
	buffer_put_u64(buffer, copied);
	buffer_patch(buffer, offsetof(struct perf_event_header, size), buffer->size, sizeof(uint16_t));
}

START_TEST(sample_layout)
{
	const struct perf_event_attr attribute = describe_sample();
	struct sample_parts sample;
	struct buffer buffer;

	put_sample(&buffer, PERF_SAMPLE_REGS_ABI_64, 8);
	ck_assert(ring_reader_parse_sample(&attribute, buffer.data, buffer.size, &sample));
	ck_assert_uint_eq(sample.callchain_count, 2);
	ck_assert_uint_eq(sample.registers[8], 1);
	ck_assert_uint_eq(sample.stack_bytes, 16);
	ck_assert_uint_eq(sample.copied_bytes, 8);
	ck_assert_uint_eq(sample.stack[0], 0x11);
	buffer_deinit(&buffer);
	put_sample(&buffer, PERF_SAMPLE_REGS_ABI_NONE, 16);
	ck_assert(ring_reader_parse_sample(&attribute, buffer.data, buffer.size, &sample));
	ck_assert_ptr_null(sample.registers);
	ck_assert_uint_eq(sample.copied_bytes, 16);
	ck_assert_uint_eq(sample.stack[0], 0x11);
	buffer_deinit(&buffer);
}
END_TEST

START_TEST(sample_cut_short)
{
	const struct perf_event_attr attribute = describe_sample();
	struct sample_parts sample;
	struct buffer buffer;

	put_sample(&buffer, PERF_SAMPLE_REGS_ABI_64, 16);
	for (size_t size = 0; size < buffer.size; size++)
		ck_assert(!ring_reader_parse_sample(&attribute, buffer.data, size, &sample));
	buffer_deinit(&buffer);
	put_sample(&buffer, PERF_SAMPLE_REGS_ABI_64, 17);
	ck_assert(!ring_reader_parse_sample(&attribute, buffer.data, buffer.size, &sample));
	buffer_deinit(&buffer);
}
END_TEST

/* The part of a dump that is stored, and that its stack ends there, as decoders read it. */
START_TEST(unused_part_of_a_dump_is_removed)
{
	const struct perf_event_attr attribute = describe_sample();
	struct sample_parts sample, cut;
	struct buffer buffer;
	uint8_t copy[256];

	put_sample(&buffer, PERF_SAMPLE_REGS_ABI_64, 16);
	ck_assert(ring_reader_parse_sample(&attribute, buffer.data, buffer.size, &sample));
	for (size_t kept = 0; kept < 8; kept++) {
		struct perf_event_header header;
		size_t size;

		memcpy(copy, buffer.data, buffer.size);
		ck_assert(ring_reader_parse_sample(&attribute, copy, buffer.size, &cut));
		size = ring_reader_cut_dump(copy, &cut, kept);
		memcpy(&header, copy, sizeof(header));
		ck_assert_uint_eq(size, buffer.size - 8);
		ck_assert_uint_eq(header.size, size);
		ck_assert(ring_reader_parse_sample(&attribute, copy, size, &cut));
		ck_assert_uint_eq(cut.callchain_count, 2);
		ck_assert_int_eq(cut.stack - copy, sample.stack - buffer.data);
		ck_assert_uint_eq(cut.stack_bytes, 8);
		ck_assert_uint_eq(cut.copied_bytes, kept);
		for (size_t i = 0; i < 8; i++)
			ck_assert_uint_eq(cut.stack[i], i < kept ? sample.stack[i] : 0);
		ck_assert_mem_eq(copy + sizeof(header), buffer.data + sizeof(header),
				 (size_t)(sample.stack - buffer.data) - 8 - sizeof(header));
	}
	buffer_deinit(&buffer);
}
END_TEST

/* A ring in ordinary memory: control page, then two pages of data. */
struct fake_ring {
	_Alignas(8) uint8_t mapping[3 * PAGE];
	uint8_t wrapped[RINGS_RECORD_BYTES_MAX];
};

struct seen {
	unsigned count;
	uint8_t first_bytes[8], last_bytes[8];
};

static struct mmt_error *note_record(void *context, const void *record, size_t size)
{
	struct seen *seen = context;

	ck_assert_uint_lt(seen->count, 8);
	seen->first_bytes[seen->count] = ((const uint8_t *)record)[8];
	seen->last_bytes[seen->count++] = ((const uint8_t *)record)[size - 1];
	return NULL;
}

static void put_record(struct fake_ring *fake, uint64_t *head, uint16_t size, uint8_t mark)
{
	struct perf_event_header header = {.type = PERF_RECORD_SAMPLE, .size = size};

	for (size_t i = 0; i < size; i++) {
		uint8_t byte = i < sizeof(header) ? ((const uint8_t *)&header)[i] : mark;

		fake->mapping[PAGE + (*head + i) % (2 * PAGE)] = byte;
	}
	*head += size;
}

START_TEST(rings_of_many_cpus_take_less_than_a_quarter_gigabyte)
{
	const struct ring_needs needs = {8192, 65280, 4096};
	uint64_t sizes[RING_KINDS];

	ck_assert_uint_eq(rings_default_bytes(1), 32u << 20);
	ck_assert_uint_eq(rings_default_bytes(4), 32u << 20);
	ck_assert_uint_eq(rings_default_bytes(64), 2u << 20);
	for (size_t cpus = 1; cpus <= 256; cpus++) {
		rings_divide(rings_default_bytes(cpus), &needs, LARGE_DUMPS_BESIDES, sizes);
		ck_assert_uint_le(cpus * (sizes[RING_SYSCALL] + sizes[RING_DUMP] + sizes[RING_LARGE_DUMP]), 240u << 20);
	}
}
END_TEST

START_TEST(wrapped_record)
{
	struct fake_ring *fake = calloc(1, sizeof(*fake));
	struct perf_event_mmap_page *control = (void *)fake->mapping;
	struct ring ring = {.mapping = fake->mapping, .data_bytes = 2 * PAGE, .wrapped = fake->wrapped};
	uint64_t head = 10 * PAGE + 6 * 1024; /* 2 KiB before the ring's end */
	struct seen seen = {0};

	control->data_offset = PAGE;
	control->data_tail = head;
	put_record(fake, &head, 1024, 1);
	put_record(fake, &head, 4096, 2);
	put_record(fake, &head, 64, 3);
	control->data_head = head;
	ring.head = control->data_head;
	ck_assert_ptr_null(rings_read(&ring, note_record, &seen));
	ck_assert_uint_eq(seen.count, 3);
	ck_assert_mem_eq(seen.first_bytes, "\1\2\3", 3);
	ck_assert_mem_eq(seen.last_bytes, "\1\2\3", 3);
	ck_assert_uint_eq(control->data_tail, head);
	free(fake);
}
END_TEST

START_TEST(impossible_record)
{
	struct fake_ring *fake = calloc(1, sizeof(*fake));
	struct perf_event_mmap_page *control = (void *)fake->mapping;
	struct ring ring = {.mapping = fake->mapping, .data_bytes = 2 * PAGE, .wrapped = fake->wrapped};
	struct seen seen = {0};
	struct mmt_error *error;
	uint64_t head = 0;

	control->data_offset = PAGE;
	put_record(fake, &head, 64, 1);
	control->data_head = 32;
	ring.head = control->data_head;
	error = rings_read(&ring, note_record, &seen);
	ck_assert_ptr_nonnull(error);
	ck_assert_uint_eq(seen.count, 0);
	mmt_error_destroy(error);
	free(fake);
}
END_TEST

/* If there are too few descriptors for the rings of large dumps, recording works without these rings only. */
START_TEST(few_descriptors)
{
	struct rlimit limit;
	struct rings rings;
	bool enough = false;
	struct mmt_error *error = rings_create(64 << 10, 8192, 65280, &rings);

	rings_deinit(&rings);
	if (error) {
		mmt_error_destroy(error);
		SKIP_TEST("perf events are not permitted here");
	}
	ck_assert_int_eq(getrlimit(RLIMIT_NOFILE, &limit), 0);
	for (limit.rlim_cur = 4; !enough; limit.rlim_cur++) {
		ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &limit), 0);
		error = rings_create(64 << 10, 8192, 65280, &rings);
		enough = !error;
		if (enough) {
			ck_assert(!rings.has_large_dumps);
			ck_assert(!rings.shrunk);
		} else {
			ck_assert_uint_lt(limit.rlim_cur, 1024);
			mmt_error_destroy(error);
		}
		rings_deinit(&rings);
	}
}
END_TEST

/* Linux before 6.9 gives only the PID of the victim. */
START_TEST(victim_of_the_oom_killer)
{
	char name[16] = "not changed";
	struct buffer buffer;
	pid_t pid = 0;

	buffer_init(&buffer, UINT16_MAX);
	for (int i = 0; i < 6; i++)
		buffer_put_u64(&buffer, 0);
	buffer_put_u32(&buffer, _i ? 76 : 12);
	buffer_put_u64(&buffer, 0);
	buffer_put_u32(&buffer, 4711);
	if (_i) {
		buffer_put_u32(&buffer, 7 << 16 | 64);
		for (int i = 0; i < 6; i++)
			buffer_put_u64(&buffer, 0xffffffffffffffff);
		buffer_put(&buffer, "worker\0\0\0\0\0", 12);
	}
	ck_assert(ring_reader_parse_victim(buffer.data, buffer.size, &pid, name));
	ck_assert_int_eq(pid, 4711);
	ck_assert_str_eq(name, _i ? "worker" : "");
	for (size_t size = 0; size < buffer.size; size++)
		ck_assert(!ring_reader_parse_victim(buffer.data, size, &pid, name));
	buffer_deinit(&buffer);
}
END_TEST

Suite *test_suite(void)
{
	Suite *suite = suite_create("rings");
	TCase *rings = add_tcase(suite, "rings");

	tcase_add_tests(rings, memory_is_divided_among_rings, room_for_large_dumps, few_descriptors,
			kept_tracepoints_take_descriptors, sample_layout, unused_part_of_a_dump_is_removed,
			sample_cut_short, wrapped_record, rings_of_many_cpus_take_less_than_a_quarter_gigabyte,
			impossible_record);
	tcase_add_loop_test(rings, victim_of_the_oom_killer, 0, 2);
	return suite;
}
