// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Writes a recording with errors and losses: troubled FILE. Calls fail, and others were lost: at the end the kernel has
 * a mapping without an event, and one is missing. Its stacks are those of leak-static.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#include "support/recording-builder.h"

enum { PID = 4711, MILLISECOND = 1000000 };

#define START_NS (5000ull * MILLISECOND)
#define KIBIBYTE 1024ull
#define PROGRAM "/tmp/mmtrace-golden/leak-static"
#define LEAKED 0x7f0000000000ull
#define GONE 0x7f0000100000ull
#define FOUND 0x7f0000200000ull
#define MAPPED_LATER 0x7f0000300000ull

/* Return addresses in leak-static. */
#define IN_SYSTEM_CALL 0x40102b
#define IN_MMAP_BLOCK 0x40104c
#define IN_LEAK 0x401073
#define IN_RESERVE 0x4010c0
#define IN_RESERVE_PROTECT 0x4010da
#define IN_PROGRAM_LEAK 0x401145
#define IN_PROGRAM_RESERVE 0x401158
#define IN_START 0x40100e

static const uint64_t leak_stack[] = {IN_SYSTEM_CALL, IN_MMAP_BLOCK, IN_LEAK, IN_PROGRAM_LEAK, IN_START};
static const uint64_t reserve_stack[] = {IN_SYSTEM_CALL, IN_MMAP_BLOCK, IN_RESERVE, IN_PROGRAM_RESERVE, IN_START};
static const uint64_t protect_stack[] = {IN_SYSTEM_CALL, IN_RESERVE_PROTECT, IN_PROGRAM_RESERVE, IN_START};

static struct recording_builder *builder;
static uint64_t now_ns = START_NS;

static void call(struct builder_call call)
{
	call.time_ns = now_ns += MILLISECOND;
	call.pid = call.tid = PID;
	call.instruction_pointer = IN_SYSTEM_CALL;
	builder_call(builder, &call);
}

static void map(int64_t result, uint64_t length, const uint64_t *stack, size_t depth)
{
	call((struct builder_call){
	    .call = CALL_MMAP,
	    .arguments = {0, length, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, (uint64_t)-1, 0},
	    .result = result,
	    .callchain = stack,
	    .callchain_count = depth});
}

static struct event_mapping anonymous(uint64_t start, uint64_t length)
{
	return (struct event_mapping){.start = start,
				      .length = length,
				      .protection = PROT_READ | PROT_WRITE,
				      .flags = MAP_PRIVATE | MAP_ANONYMOUS,
				      .path = ""};
}

static void snapshot(enum snapshot_kind kind, const struct event_mapping *more, size_t more_count)
{
	struct event_mapping lines[8] = {{.start = 0x401000,
					  .length = 4096,
					  .file_offset = 4096,
					  .device_major = 8,
					  .device_minor = 1,
					  .inode = 77,
					  .protection = PROT_READ | PROT_EXEC,
					  .flags = MAP_PRIVATE,
					  .path = PROGRAM}};

	for (size_t i = 0; i < more_count; i++)
		lines[1 + i] = more[i];
	builder_snapshot(builder, kind, now_ns += MILLISECOND, PID, lines, 1 + more_count);
}

static void fail(void)
{
	for (int i = 0; i < 3; i++)
		map(-ENOMEM, KIBIBYTE * KIBIBYTE * KIBIBYTE, reserve_stack, 5);
	for (int i = 0; i < 2; i++)
		call((struct builder_call){.call = CALL_MPROTECT,
					   .arguments = {LEAKED, 8 * KIBIBYTE, PROT_READ | PROT_EXEC},
					   .result = -EACCES,
					   .callchain = protect_stack,
					   .callchain_count = 4});
	map(-EAGAIN, 64 * KIBIBYTE, leak_stack, 5);
	map(-EINVAL, 0, leak_stack, 5);
}

/* The build ID of leak-static: reports symbolize only the recorded file. */
static void add_build_id(void)
{
	static const uint8_t build_id[20] = {0x00, 0x3a, 0x93, 0x3b, 0x76, 0x28, 0x25, 0xaf, 0xf8, 0x9f,
					     0xe4, 0x99, 0xd1, 0x04, 0x6d, 0x0e, 0x4d, 0x1b, 0x8f, 0x48};
	struct build_id_entry entry = {.path = PROGRAM, .size = sizeof(build_id)};
	struct build_ids ids = {.entries = {.items = &entry, .count = 1}};
	struct buffer buffer;

	memcpy(entry.bytes, build_id, sizeof(build_id));
	buffer_init(&buffer, 4096);
	build_ids_encode(&ids, &buffer);
	builder_section(builder, FEATURE_BUILD_ID, buffer.data, buffer.size);
	buffer_deinit(&buffer);
}

int main(int argc, char **argv)
{
	if (argc != 2) {
		fprintf(stderr, "usage: troubled FILE\n");
		return 2;
	}
	builder = builder_create(argv[1]);
	builder_comm(builder, START_NS, PID, PID, "troubled");
	snapshot(SNAPSHOT_START, NULL, 0);
	map((int64_t)LEAKED, 64 * KIBIBYTE, leak_stack, 5);
	map((int64_t)GONE, 16 * KIBIBYTE, leak_stack, 5);
	fail();
	builder_lost(builder, now_ns += MILLISECOND, BUILDER_SYSCALL_ID + CALL_MMAP, 2);
	map((int64_t)MAPPED_LATER, 4 * KIBIBYTE, reserve_stack, 5);
	snapshot(SNAPSHOT_STOP,
		 (struct event_mapping[]){anonymous(LEAKED, 64 * KIBIBYTE), anonymous(FOUND, 32 * KIBIBYTE),
					  anonymous(MAPPED_LATER, 4 * KIBIBYTE)},
		 3);
	builder_comm(builder, now_ns, PID, PID, "troubled");
	builder_round(builder);
	add_build_id();
	builder_lose(builder, 2);
	builder_finish(builder, now_ns + 2000ull * MILLISECOND);
	return 0;
}
