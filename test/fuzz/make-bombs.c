// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 *     make-bombs KIND COUNT FILE
 *
 * Writes a small recording of valid records that could make a report slow or large: see the kinds below.
 */
#include <errno.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "support/recording-builder.h"

#define START 5000000000ull
#define PARENT 100
#define FIRST 1000 /* PID of the first child */
#define PAGE 4096ull
#define LINES 50000u
#define MEETINGS 500

static struct recording_builder *builder;
static uint64_t now_ns = START;

static uint64_t next_ns(void)
{
	now_ns += 10;
	return now_ns;
}

static void snapshot(size_t count)
{
	struct event_mapping *lines = calloc(count, sizeof(*lines));

	if (!lines)
		abort();
	for (size_t i = 0; i < count; i++)
		lines[i] = (struct event_mapping){.start = 0x10000000 + 2 * i * PAGE,
						  .length = PAGE,
						  .protection = PROT_READ,
						  .flags = MAP_PRIVATE | MAP_ANONYMOUS,
						  .path = ""};
	builder_snapshot(builder, SNAPSHOT_START, now_ns, PARENT, lines, count);
	free(lines);
}

static void fork_child(int32_t pid, int32_t parent, uint64_t clone_flags)
{
	now_ns += 10;
	builder_fork(builder, now_ns, pid, pid, parent, parent);
	if (clone_flags)
		builder_new_task(builder, now_ns + 1, parent, parent, pid, clone_flags);
}

/* Children that live. */
static void forks(int32_t i)
{
	fork_child(FIRST + i, PARENT, 0);
}

/* Each child forks the next. */
static void chain(int32_t i)
{
	fork_child(FIRST + i, i ? FIRST + i - 1 : PARENT, 0);
}

/* Children that end at once. */
static void ends(int32_t i)
{
	fork_child(FIRST + i, PARENT, 0);
	builder_exit(builder, now_ns + 5, FIRST + i, FIRST + i);
}

/* Children that change what they inherited. */
static void copies(int32_t i)
{
	fork_child(FIRST + i, PARENT, 0);
	builder_munmap_exit(builder, now_ns + 5, FIRST + i, FIRST + i, 0x10000000 + 2 * (uint64_t)(unsigned)i * PAGE,
			    PAGE);
}

/* Children that use the space of their parent, and are read. */
static void sharers(int32_t i)
{
	fork_child(FIRST + i, PARENT, CLONE_VM);
	builder_note(builder, now_ns + 2, FIRST + i, NOTE_RESIDENT, PAGE, (uint64_t)(unsigned)i + 1);
	builder_mmap_exit(builder, now_ns + 5, FIRST + i, FIRST + i, 0x7f0000000000 + 2 * (uint64_t)(unsigned)i * PAGE,
			  PAGE, 0x401000);
	builder_pages(builder, now_ns + 6, FIRST + i,
		      &(struct builder_pages){.reading = (uint32_t)i, .resident_bytes = PAGE});
}

/* They end in the order in which they started. */
static void sharers_end(int32_t i)
{
	builder_exit(builder, next_ns(), FIRST + i, FIRST + i);
}

/* One PID that is used again and again. */
static void restarts(int32_t i)
{
	fork_child(FIRST, PARENT, 0);
	builder_note(builder, now_ns + 1, FIRST, NOTE_STARTED, now_ns, 0);
	builder_note(builder, now_ns + 2, FIRST, NOTE_RESIDENT, PAGE, (uint64_t)(unsigned)i + 1);
	builder_exit(builder, now_ns + 5, FIRST, FIRST);
}

static void threads(int32_t i)
{
	now_ns += 10;
	builder_fork(builder, now_ns, PARENT, FIRST + i, PARENT, PARENT);
}

static void names(int32_t i)
{
	char name[16];

	snprintf(name, sizeof(name), "%d", i);
	builder_comm(builder, next_ns(), PARENT, PARENT, name);
}

/* Calls that fail, each with a stack of its own. */
static void failures(int32_t i)
{
	const uint64_t callchain[] = {0x401000, 0x402000 + (uint64_t)(unsigned)i};

	builder_call(builder, &(struct builder_call){.call = CALL_MMAP,
						     .time_ns = next_ns(),
						     .pid = PARENT,
						     .tid = PARENT,
						     .arguments = {0, PAGE, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS},
						     .result = -ENOMEM,
						     .callchain = callchain,
						     .callchain_count = 2});
}

static void maps(int32_t i)
{
	builder_mmap_exit(builder, next_ns(), PARENT, PARENT, 0x7f0000000000 + 2 * (uint64_t)(unsigned)i * PAGE, PAGE,
			  0x401000 + (uint64_t)(unsigned)i);
}

/* Memory of many deep stacks, and calls that each change all of it. */
static void meetings(int32_t i)
{
	const int64_t first = 0x7f0000000000;
	bool maps = i < MEETINGS;
	struct builder_call call = {.call = maps ? CALL_MMAP : CALL_MPROTECT,
				    .time_ns = next_ns(),
				    .pid = PARENT,
				    .tid = PARENT,
				    .arguments = {0, PAGE, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS},
				    .result = maps ? first + 2 * i * (int64_t)PAGE : 0};
	uint64_t callchain[512];

	for (size_t j = 0; j < 512; j++)
		callchain[j] = 0x401000 + 16 * j;
	callchain[0] += 0x100000 * (uint64_t)(unsigned)i;
	if (maps) {
		call.callchain = callchain;
		call.callchain_count = 512;
	} else {
		call.arguments[0] = (uint64_t)first;
		call.arguments[1] = 2 * MEETINGS * PAGE;
		call.arguments[2] = i % 2 ? PROT_READ : PROT_NONE;
	}
	builder_call(builder, &call);
}

/* The same call again and again, from a second tracefs instance: all but one are rejected. */
static void duplicates(int32_t i)
{
	uint64_t callchain[2000];

	for (size_t j = 0; j < 2000; j++)
		callchain[j] = 0x402000 + 16 * j;
	builder_call(builder,
		     &(struct builder_call){.call = CALL_MMAP,
					    .id = i ? BUILDER_SYSCALL_ID + CALL_MMAP + BUILDER_SECOND_ROOT : 0,
					    .time_ns = next_ns(),
					    .pid = PARENT,
					    .tid = PARENT,
					    .arguments = {0, PAGE, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS},
					    .result = 0x7f0000000000,
					    .callchain = callchain,
					    .callchain_count = 2000});
}

static void readings(int32_t i)
{
	builder_note(builder, next_ns(), FIRST + i % 4096, NOTE_RESIDENT, PAGE, (uint64_t)(unsigned)i / 4096 + 1);
}

static void starts(int32_t i)
{
	builder_note(builder, next_ns(), FIRST + i, NOTE_STARTED, START, 0);
}

static void limits(int32_t i)
{
	builder_note(builder, next_ns(), FIRST + i, NOTE_LIMIT_ADDRESS_SPACE, PAGE, 0);
}

/* Records that compress to almost nothing. */
static void repeats(int32_t i)
{
	for (unsigned j = 0; j < 64; j++)
		builder_comm(builder, now_ns + (unsigned)i / 4096, PARENT, PARENT, "parent");
}

static void snapshots(int32_t i)
{
	(void)i;
	now_ns += 1000;
	snapshot(1000);
}

static const struct {
	const char *name;
	void (*put)(int32_t i);
	size_t lines;
	void (*then)(int32_t i);
} kinds[] = {
    {"forks", forks, 16, NULL},
    {"chain", chain, 16, NULL},
    {"ends", ends, 16, NULL},
    {"copies", copies, LINES, NULL},
    {"sharers", sharers, 16, sharers_end},
    {"restarts", restarts, 16, NULL},
    {"threads", threads, 16, NULL},
    {"names", names, 16, NULL},
    {"failures", failures, LINES, NULL},
    {"maps", maps, 16, NULL},
    {"meetings", meetings, 16, NULL},
    {"duplicates", duplicates, 16, NULL},
    {"readings", readings, 16, NULL},
    {"starts", starts, 16, NULL},
    {"limits", limits, 16, NULL},
    {"snapshots", snapshots, 16, NULL},
    {"wide-forks", forks, LINES, NULL},
    {"wide-ends", ends, LINES, NULL},
    {"repeats", repeats, 16, NULL},
};

int main(int argc, char **argv)
{
	int32_t count = argc == 4 ? atoi(argv[2]) : 0;

	for (size_t kind = 0; kind < sizeof(kinds) / sizeof(kinds[0]); kind++) {
		if (count <= 0 || strcmp(kinds[kind].name, argv[1]) != 0)
			continue;
		builder = builder_create(argv[3]);
		builder_comm(builder, now_ns, PARENT, PARENT, "parent");
		snapshot(kinds[kind].lines);
		for (int32_t i = 0; i < count; i++) {
			kinds[kind].put(i);
			if (i % 1024 == 1023 && kinds[kind].put != snapshots)
				builder_round(builder);
		}
		for (int32_t i = 0; kinds[kind].then && i < count; i++)
			kinds[kind].then(i);
		builder_round(builder);
		builder_finish(builder, now_ns + 1000);
		return 0;
	}
	fputs("usage: make-bombs KIND COUNT FILE; kinds:", stderr);
	for (size_t kind = 0; kind < sizeof(kinds) / sizeof(kinds[0]); kind++)
		fprintf(stderr, " %s", kinds[kind].name);
	fputc('\n', stderr);
	return 2;
}
