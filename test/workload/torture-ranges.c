// SPDX-License-Identifier: LGPL-2.1-or-later
/* What a worker owns: its arena, and ranges at addresses that the kernel chose. */
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "torture.h"

#define PACKED_PAGES 4096 /* fewer pages than this fit below a packed range's start */

uint64_t torture_random(struct torture_worker *worker, uint64_t below)
{
	uint64_t value = worker->random += 0x9e3779b97f4a7c15;

	value = (value ^ value >> 30) * 0xbf58476d1ce4e5b9;
	value = (value ^ value >> 27) * 0x94d049bb133111eb;
	return (value ^ value >> 31) % below;
}

uint64_t torture_pack(struct torture_range range)
{
	return range.start / torture_program.page_bytes * PACKED_PAGES + range.pages;
}

struct torture_range torture_unpack(uint64_t packed)
{
	return (struct torture_range){.start = packed / PACKED_PAGES * torture_program.page_bytes,
				      .pages = packed % PACKED_PAGES};
}

static uintptr_t end_of(struct torture_range range)
{
	return range.start + range.pages * torture_program.page_bytes;
}

bool torture_in_arena(const struct torture_worker *worker, struct torture_range range)
{
	return range.start >= worker->arena &&
	       range.start < worker->arena + TORTURE_ARENA_PAGES * torture_program.page_bytes;
}

void torture_give(struct torture_worker *worker, struct torture_range range)
{
	if (!range.pages || torture_in_arena(worker, range))
		return;
	if (worker->range_count == TORTURE_RANGES || range.pages >= PACKED_PAGES) {
		syscall(SYS_munmap, range.start, range.pages * torture_program.page_bytes);
		return;
	}
	worker->ranges[worker->range_count++] = range;
}

void torture_take(struct torture_worker *worker, struct torture_range range)
{
	uintptr_t end = end_of(range);
	size_t count = worker->range_count;

	for (size_t i = count; i-- > 0;) {
		struct torture_range owned = worker->ranges[i];
		uintptr_t owned_end = end_of(owned);
		struct torture_range head = {.start = owned.start}, tail = {.start = end};

		if (owned.start >= end || owned_end <= range.start)
			continue;
		worker->ranges[i] = worker->ranges[--worker->range_count];
		if (owned.start < range.start)
			head.pages = (range.start - owned.start) / torture_program.page_bytes;
		if (owned_end > end)
			tail.pages = (owned_end - end) / torture_program.page_bytes;
		torture_give(worker, head);
		torture_give(worker, tail);
	}
}

static struct torture_range pick_part(struct torture_worker *worker, struct torture_range whole, size_t most_pages)
{
	struct torture_range part = whole;

	if (most_pages > whole.pages)
		most_pages = whole.pages;
	part.pages = 1 + torture_random(worker, most_pages);
	part.start += torture_random(worker, whole.pages - part.pages + 1) * torture_program.page_bytes;
	return part;
}

struct torture_range torture_pick_arena(struct torture_worker *worker, size_t most_pages)
{
	struct torture_range arena = {.start = worker->arena, .pages = TORTURE_ARENA_PAGES};

	return pick_part(worker, arena, most_pages);
}

struct torture_range torture_pick(struct torture_worker *worker, size_t most_pages)
{
	struct torture_range range;

	if (!worker->range_count || torture_random(worker, 2))
		return torture_pick_arena(worker, most_pages);
	range = worker->ranges[torture_random(worker, worker->range_count)];
	if (range.pages <= most_pages && torture_random(worker, 3) == 0)
		return range;
	return pick_part(worker, range, most_pages);
}

/* A range goes into a slot; the slot's previous range is now this worker's. */
void torture_hand_over(struct torture_worker *worker)
{
	_Atomic uint64_t *slot = &torture_program.slots[torture_random(worker, TORTURE_SLOTS)];
	uint64_t packed = 0;

	if (worker->range_count)
		packed = torture_pack(worker->ranges[--worker->range_count]);
	torture_give(worker, torture_unpack(atomic_exchange(slot, packed)));
}
