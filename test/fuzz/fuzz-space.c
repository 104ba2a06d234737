// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Random calls, MMAP2 records and snapshots: the address space stays valid, and every allocated byte is released once.
 * At the end the last input becomes the kernel's maps, and after reconciling, the address space must equal them.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "base/bytes.h"
#include "model/space/space.h"
#include "support/space-valid.h"

#define PAGE 4096ULL

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Modulo 2^64: reserved and mapped bytes may add up to more. */
struct balance {
	uint64_t live;
};

static void on_allocated(void *context, const struct space_interval *interval)
{
	((struct balance *)context)->live += interval->end - interval->start;
}

static uint32_t on_found(void *context, const struct space_interval *interval)
{
	(void)context;
	return interval->allocation == ALLOCATION_UNKNOWN && interval->reconciled ? UINT32_MAX : ALLOCATION_UNKNOWN;
}

static void on_released(void *context, const struct space_interval *interval, uint64_t bytes,
			const struct space_call *by)
{
	struct balance *balance = context;

	(void)by;
	if (interval->end - interval->start != bytes)
		abort();
	balance->live -= bytes;
}

/* Mostly small page numbers, so that ranges meet; sometimes any number. */
static uint64_t take_address(struct bytes *input)
{
	uint8_t page = bytes_u8(input);

	return page == 255 ? bytes_u64(input) : page * PAGE;
}

static struct space_attributes take_attributes(struct bytes *input)
{
	uint8_t bits = bytes_u8(input), file = bytes_u8(input);

	return (struct space_attributes){.protection = bits & 7,
					 .shared = bits & 8,
					 .heap = bits & 16,
					 .stack = bits & 32,
					 .shm = bits & 64,
					 .inode = file & 3,
					 .file_offset = file & 3 ? (file >> 2) * PAGE : 0};
}

static struct space_mmap2 take_mmap2(struct bytes *input)
{
	struct space_mmap2 mmap2_record = {.start = take_address(input), .end = take_address(input)};

	mmap2_record.attributes = take_attributes(input);
	return mmap2_record;
}

static struct mmt_error *apply_call(struct space *space, struct bytes *input, uint8_t kind, uint64_t *now_ns,
				    uint32_t *allocation)
{
	struct space_mmap2 mmap2_records[2];
	struct space_call call = {
	    .kind = kind, .mmap2_records = mmap2_records, .allocation = ++*allocation, .commit = *allocation};
	uint8_t shape = bytes_u8(input);

	call.thread = shape & 3;
	call.mmap2_count = shape >> 2 & 1;
	call.arguments[0] = take_address(input);
	call.arguments[1] = take_address(input);
	if (kind == CALL_MADVISE)
		call.arguments[2] = bytes_u8(input) & 1 ? MADV_DONTFORK : MADV_DOFORK;
	else if (kind == CALL_MMAP || kind == CALL_MPROTECT)
		call.arguments[2] = bytes_u8(input) & 7;
	else
		call.arguments[2] = take_address(input);
	call.arguments[3] = bytes_u8(input) | (shape & 8 ? 0x40000U : 0) | (shape & 16 ? 0x100000U : 0);
	call.arguments[4] = take_address(input);
	call.arguments[5] = take_address(input);
	call.result = shape & 32 ? -(int64_t)bytes_u8(input) : (int64_t)take_address(input);
	for (size_t i = 0; i < call.mmap2_count; i++)
		mmap2_records[i] = take_mmap2(input);
	*now_ns += shape & 64 ? 300000000 : 1000;
	call.time_ns = *now_ns;
	return space_apply(space, &call);
}

static struct mmt_error *apply_line(struct space *space, struct bytes *input, uint64_t now_ns)
{
	uint64_t start = take_address(input), end = take_address(input);
	struct space_attributes attributes = take_attributes(input);
	uint64_t before = bytes_u8(input) * 1000ULL;

	return space_snapshot_line(space, now_ns > before ? now_ns - before : 0, start, end, &attributes);
}

static void require_valid(const struct space *space)
{
	const char *why = "";

	if (space_valid(space, &why))
		return;
	fprintf(stderr, "%s\n", why);
	abort();
}

static struct mmt_error *mmap2_ring(struct space *space, struct bytes *input, uint64_t now_ns)
{
	struct space_mmap2 mmap2_record = take_mmap2(input);
	bool made;

	mmap2_record.attributes.ring = true;
	return space_mmap2_ring(space, &mmap2_record, bytes_u8(input) & 3, now_ns, &made);
}

static uint64_t losses;

static struct mmt_error *step(struct space *space, struct bytes *input, uint64_t *now_ns, uint32_t *allocation)
{
	static const enum call common_calls[] = {CALL_MMAP,  CALL_MUNMAP,	    CALL_MREMAP,
						 CALL_BRK,   CALL_MPROTECT,	    CALL_SHMAT,
						 CALL_SHMDT, CALL_REMAP_FILE_PAGES, CALL_IO_DESTROY};
	static const enum call other_calls[] = {CALL_MADVISE, CALL_MSEAL, CALL_IO_SETUP};
	uint8_t kind = bytes_u8(input) % 18, choice;
	struct space_mmap2 mmap2_record;
	struct space *copy = NULL;
	struct mmt_error *error;

	if (kind < sizeof(common_calls) / sizeof(common_calls[0]))
		return apply_call(space, input, common_calls[kind], now_ns, allocation);
	switch (kind) {
	case 9:
		mmap2_record = take_mmap2(input);
		return space_mmap2(space, &mmap2_record);
	case 10:
		return space_snapshot_begin(space, SPACE_SNAPSHOT_DEFINE, bytes_u8(input) % ALLOCATION_UNKNOWN,
					    *now_ns);
	case 11:
		return space_snapshot_begin(space, SPACE_SNAPSHOT_CHECK, 0, *now_ns);
	case 12:
		if (bytes_u8(input) & 1)
			losses++;
		return space_snapshot_end(space, *now_ns);
	case 13:
		choice = bytes_u8(input) % 5;
		if (choice < 3)
			return apply_call(space, input, other_calls[choice], now_ns, allocation);
		if (choice == 3)
			return mmap2_ring(space, input, *now_ns);
		space_exec(space);
		return NULL;
	case 14:
		error = space_fork(space, &copy);
		if (copy)
			require_valid(copy);
		space_destroy(copy);
		return error;
	default:
		return apply_line(space, input, *now_ns);
	}
}

static void require_line(const struct space *space, uint64_t start, uint64_t end, const struct space_attributes *line)
{
	const struct space_interval *interval;

	for (uint64_t position = start; position < end; position = interval->end) {
		const struct space_attributes *held;

		interval = space_find(space, position);
		if (!interval)
			abort();
		held = &interval->attributes;
		if (held->unknown || held->protection != line->protection || held->shared != line->shared ||
		    held->inode != line->inode)
			abort();
		if (line->inode &&
		    held->file_offset + (position - interval->start) != line->file_offset + (position - start))
			abort();
	}
}

/* A CHECK record made from the same input, then reconcile: the address space equals its lines. */
static void check_against_anything(struct space *space, uint64_t now_ns, const uint8_t *data, size_t size)
{
	struct bytes input = bytes_over(data, size);
	uint64_t position = 0, mapped = 0, starts[64], ends[64];
	struct space_attributes lines[64];
	struct space_counts counts;
	size_t count = 0;

	mmt_error_destroy(space_snapshot_begin(space, SPACE_SNAPSHOT_CHECK, 0, now_ns + 1));
	for (; count < 64 && bytes_left(&input); count++) {
		starts[count] = position + (bytes_u8(&input) & 7) * PAGE;
		ends[count] = position = starts[count] + (1 + (bytes_u8(&input) & 15)) * PAGE;
		lines[count] = take_attributes(&input);
		mapped += ends[count] - starts[count];
		mmt_error_destroy(
		    space_snapshot_line(space, now_ns + 2 + count, starts[count], ends[count], &lines[count]));
	}
	mmt_error_destroy(space_snapshot_end(space, now_ns + 100));
	space_finish(space);
	require_valid(space);
	for (size_t i = 0; i < count; i++)
		require_line(space, starts[i], ends[i], &lines[i]);
	counts = space_counts(space);
	if (counts.mapped_bytes + counts.kernel_bytes + counts.before_bytes != mapped)
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct bytes input = bytes_over(data, size);
	struct balance balance = {0};
	const struct space_observer observer = {.found = size & 1 ? on_found : NULL,
						.allocated = on_allocated,
						.released = on_released,
						.context = &balance};
	static const char *const releases[] = {"6.18", "6.12", "6.6", "6.1"};
	const struct kernel_rules rules = kernel_rules_of(releases[size >> 1 & 3]);
	const struct space_options options = {
	    .observer = &observer, .page_bytes = PAGE, .rules = &rules, .losses = &losses};
	struct space *space;
	uint64_t now_ns = 1000000;
	uint32_t allocation = ALLOCATION_FIRST;

	mmt_error_destroy(space_create(&options, &space));
	while (bytes_left(&input)) {
		mmt_error_destroy(step(space, &input, &now_ns, &allocation));
		require_valid(space);
	}
	check_against_anything(space, now_ns, data, size);
	space_destroy(space);
	if (balance.live)
		abort();
	return 0;
}
