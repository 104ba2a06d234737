// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Writes a recording with censuses of malloc heaps: heap FILE. One process keeps objects and strings, the other one
 * frees most of its blocks, between others; and a third has another allocator.
 */
#include <stdio.h>
#include <sys/mman.h>

#include "support/recording-builder.h"
#include "trace/sections/sections.h"

enum { PID = 4711, FRAGMENTED = 4712, OTHER = 4713, READINGS = 41 };

#define SECOND 1000000000ull
#define START_NS (5000ull * SECOND)
#define MEBIBYTE (1024ull * 1024)
#define HEAP 0x100000000ull

static struct recording_builder *builder;

static void add_process(int32_t pid, const char *name, uint64_t bytes_per_reading)
{
	const struct event_mapping heap = {.start = HEAP,
					   .length = 1024 * MEBIBYTE,
					   .protection = PROT_READ | PROT_WRITE,
					   .flags = MAP_PRIVATE | MAP_ANONYMOUS,
					   .path = "[heap]"};

	builder_snapshot(builder, SNAPSHOT_START, START_NS, pid, &heap, 1);
	builder_comm(builder, START_NS + 1, pid, pid, name);
	for (unsigned i = 0; i < READINGS; i++)
		builder_note(builder, START_NS + 2 + i * 10 * SECOND, pid, NOTE_RESIDENT,
			     20 * MEBIBYTE + i * bytes_per_reading, i + 1);
}

static struct mmt_heap_census census(int32_t pid, unsigned reading, uint64_t mebibytes, uint64_t in_use_mebibytes,
				     struct mmt_heap_group *groups, size_t count)
{
	static char version[] = "glibc 2.36";
	uint64_t mapped = mebibytes * MEBIBYTE, in_use = in_use_mebibytes * MEBIBYTE, top = 100 * 1024;

	return (struct mmt_heap_census){.pid = pid,
					.time_ns = START_NS + 3 + reading * 10 * SECOND,
					.when = reading == 0		  ? MMT_HEAP_AT_START
						: reading == READINGS - 1 ? MMT_HEAP_AT_STOP
									  : MMT_HEAP_AT_SNAPSHOT,
					.allocator = MMT_ALLOCATOR_GLIBC,
					.result = MMT_HEAP_COMPLETE,
					.allocator_name = version,
					.arenas = 1,
					.mapped_bytes = mapped + top,
					.walked_bytes = mapped + top,
					.in_use_low = in_use,
					.in_use_high = in_use,
					.free_bytes = mapped - in_use,
					.top_bytes = top,
					.trimmable_bytes = (mapped - in_use) / 4 * 3,
					.groups = groups,
					.group_count = count};
}

static void add_censuses(void)
{
	static char session[] = "N3app7SessionE", cache[] = "N3app5CacheIlEE", none[] = "", other[] = "jemalloc",
		    module[] = "/usr/lib/libcrypto.so.3";
	struct mmt_heap_group first[] = {{MMT_HEAP_TYPE, 928, 928, 2, 1856, 0, 0, session, 0},
					 {MMT_HEAP_TYPE, 176, 176, 6000, 1056000, 0, 0, cache, 0},
					 {MMT_HEAP_UNKNOWN, 8388624, 8388624, 1, 8388624, 0, 0, none, 0}};
	struct mmt_heap_group last[] = {{MMT_HEAP_TYPE, 928, 928, 30000, 27840000, 0, 0, session, 0},
					{MMT_HEAP_TYPE, 176, 176, 6000, 1056000, 0, 0, cache, 0},
					{MMT_HEAP_UNKNOWN, 16777232, 16777232, 1, 16777232, 0, 0, none, 0},
					{MMT_HEAP_TEXT, 64, 64, 9000, 576000, 0, 0, none, 0},
					{MMT_HEAP_TEXT, 112, 112, 5000, 560000, 0, 0, none, 0},
					{MMT_HEAP_POINTER, 96, 96, 700, 67200, 0, 0, module, 0x5e1000}};
	struct mmt_heap_group apart[] = {{MMT_HEAP_UNKNOWN, 512, 512, 4010, 2053120, 4007, 60 * MEBIBYTE, none, 0}};
	struct mmt_heap_census censuses[] = {census(PID, 0, 20, 20, first, 3),
					     census(FRAGMENTED, 0, 20, 20, NULL, 0),
					     census(OTHER, 0, 0, 0, NULL, 0),
					     census(PID, 20, 40, 40, NULL, 0),
					     census(FRAGMENTED, 20, 60, 21, NULL, 0),
					     census(PID, READINGS - 1, 60, 60, last, 6),
					     census(FRAGMENTED, READINGS - 1, 80, 20, apart, 1)};
	const struct heap_censuses heaps = {.items = {.items = censuses, .count = 7}};
	struct buffer buffer;

	censuses[2].allocator = MMT_ALLOCATOR_OTHER;
	censuses[2].result = MMT_HEAP_NOT_WALKED;
	censuses[2].allocator_name = other;
	buffer_init(&buffer, 1 << 20);
	if (!section_write(&section_heap, &heaps, &buffer))
		builder_section(builder, FEATURE_MMTRACE_HEAP, buffer.data, buffer.size);
	buffer_deinit(&buffer);
}

int main(int argc, char **argv)
{
	if (argc != 2) {
		fprintf(stderr, "usage: heap FILE\n");
		return 2;
	}
	builder = builder_create(argv[1]);
	add_process(PID, "sessions", MEBIBYTE);
	add_process(FRAGMENTED, "fragments", MEBIBYTE * 3 / 2);
	add_process(OTHER, "other", 0);
	builder_mmap_exit(builder, START_NS + 5 * SECOND, PID, PID, HEAP - MEBIBYTE, 4096, 0x1234);
	add_censuses();
	builder_finish(builder, START_NS + 405 * SECOND);
	return 0;
}
