// SPDX-License-Identifier: LGPL-2.1-or-later
#include "model/space-edit.h"

#include <string.h>
#include <sys/mman.h>

#include "model/space-doubt.h"
#include "model/space-snapshot.h"

static bool has_file(const struct space_attributes *attributes)
{
	return attributes->inode || attributes->device_major || attributes->device_minor;
}

struct space_attributes space_edit_advance(const struct space_attributes *attributes, uint64_t bytes)
{
	struct space_attributes result = *attributes;

	if (has_file(attributes))
		result.file_offset += bytes;
	return result;
}

bool space_edit_agree(const struct space_attributes *left, const struct space_attributes *right)
{
	if (left->protection != right->protection || left->shared != right->shared)
		return false;
	if (left->inode == SPACE_INODE_UNKNOWN || right->inode == SPACE_INODE_UNKNOWN)
		return true;
	return left->inode == right->inode && left->device_major == right->device_major &&
	       left->device_minor == right->device_minor &&
	       (!has_file(left) || left->zero || right->zero || left->file_offset == right->file_offset);
}

bool space_edit_same(const struct space_attributes *left, const struct space_attributes *right)
{
	return left->protection == right->protection && left->shared == right->shared &&
	       left->growsdown == right->growsdown && left->hugetlb == right->hugetlb && left->heap == right->heap &&
	       left->shm == right->shm && left->dontfork == right->dontfork && left->noreserve == right->noreserve &&
	       left->stack == right->stack && left->thread_stack == right->thread_stack &&
	       left->unknown == right->unknown && left->zero == right->zero && left->ring == right->ring &&
	       left->sealed == right->sealed && left->attachment == right->attachment && left->part == right->part &&
	       left->segment_pages == right->segment_pages && left->device_major == right->device_major &&
	       left->device_minor == right->device_minor && left->inode == right->inode &&
	       left->file_offset == right->file_offset && left->path == right->path;
}

bool space_edit_continues(const struct space_interval *left, const struct space_interval *right)
{
	struct space_attributes continued = space_edit_advance(&left->attributes, left->end - left->start);

	return left->end == right->start && space_edit_same(&continued, &right->attributes);
}

bool space_edit_mergeable(const struct space_interval *left, const struct space_interval *right)
{
	return left->birth == right->birth && left->repaired == right->repaired && left->commit == right->commit &&
	       space_edit_continues(left, right);
}

static void add_bytes(uint64_t *counter, uint64_t bytes, bool add)
{
	*counter = add ? *counter + bytes : *counter - bytes;
}

static void count_bytes(struct space *space, const struct space_interval *interval, uint64_t bytes, bool add)
{
	struct space_counts *counts = &space->counts;

	if (interval->attributes.unknown)
		add_bytes(&counts->unknown_bytes, bytes, add);
	if (interval->birth < BIRTH_FIRST) {
		add_bytes(interval->birth == BIRTH_KERNEL ? &counts->kernel_bytes : &counts->before_bytes, bytes, add);
		return;
	}
	add_bytes(&counts->mapped_bytes, bytes, add);
	add_bytes(space_edit_accessible(&interval->attributes) ? &counts->committed_bytes : &counts->reserved_bytes,
		  bytes, add);
}

/* Comes or goes: stacks unwound before may unwind differently after. */
static void note_code(struct space *space, const struct space_interval *interval)
{
	if ((interval->attributes.protection & PROT_EXEC) && has_file(&interval->attributes))
		space->code_generation++;
}

static void count_interval(struct space *space, const struct space_interval *interval, bool add)
{
	note_code(space, interval);
	count_bytes(space, interval, interval->end - interval->start, add);
}

void space_edit_merge_at(struct space *space, uint64_t address)
{
	struct interval_node *left, *right;
	uint64_t end;

	if (!intervals_meet(&space->mapped, address, &left, &right) ||
	    !space_edit_mergeable(&left->interval, &right->interval))
		return;
	end = right->interval.end;
	intervals_remove(&space->mapped, right->interval.start);
	left->interval.end = end;
}

/* Make `address` a boundary between intervals. */
static bool split_at(struct space *space, uint64_t address)
{
	struct interval_node *node = intervals_next(&space->mapped, address);
	struct space_interval tail;

	if (!node || node->interval.start >= address)
		return true;
	tail = node->interval;
	tail.start = address;
	tail.attributes = space_edit_advance(&tail.attributes, address - node->interval.start);
	if (!intervals_insert(&space->mapped, &tail, 0))
		return false;
	node->interval.end = address;
	return true;
}

bool space_edit_put(struct space *space, const struct space_interval *interval)
{
	bool met;

	if (interval->start >= interval->end)
		return true;
	if (!intervals_insert_beside(&space->mapped, interval, &met))
		return false;
	count_interval(space, interval, true);
	if (met) {
		space_edit_merge_at(space, interval->end);
		space_edit_merge_at(space, interval->start);
	}
	return true;
}

bool space_edit_bear(struct space *space, const struct space_interval *interval)
{
	struct space_interval named;

	if (interval->start >= interval->end)
		return true;
	if (interval->repaired || interval->birth == BIRTH_UNKNOWN) {
		named = *interval;
		named.repaired = named.birth == BIRTH_UNKNOWN;
		if (named.repaired && space->observer.found)
			named.birth = space->observer.found(space->observer.context, &named);
		interval = &named;
	}
	if (!space_edit_put(space, interval))
		return false;
	if (space->observer.born)
		space->observer.born(space->observer.context, interval);
	return true;
}

void space_edit_tell_released(struct space *space, const struct space_interval *interval, const struct space_call *by)
{
	if (space->observer.released)
		space->observer.released(space->observer.context, interval, interval->end - interval->start, by);
}

bool space_edit_take(struct space *space, uint64_t start, uint64_t end, pieces *taken)
{
	struct interval_node *node;
	uint64_t position = start;

	while (position < end && (node = intervals_within(&space->mapped, position, end))) {
		const struct space_interval *piece;

		if (node->interval.start < start) {
			if (!split_at(space, start))
				return false;
			continue;
		}
		if (node->interval.end > end && !split_at(space, end))
			return false;
		if (!vector_push(taken, node->interval))
			return false;
		piece = &taken->items[taken->count - 1];
		count_interval(space, piece, false);
		intervals_remove(&space->mapped, piece->start);
		position = piece->end;
	}
	return true;
}

bool space_edit_release(struct space *space, uint64_t start, uint64_t end, const struct space_call *by)
{
	pieces taken = {0};
	bool done = space_edit_take(space, start, end, &taken);

	for (size_t i = 0; i < taken.count; i++)
		space_edit_tell_released(space, &taken.items[i], by);
	vector_deinit(&taken);
	return done;
}

bool space_edit_change(struct space *space, uint64_t start, uint64_t end,
		       void (*change)(void *context, struct space_interval *interval), void *context)
{
	uint64_t position = start;
	struct interval_node *node;

	if (start >= end)
		return true;
	if (!split_at(space, start) || !split_at(space, end))
		return false;
	while ((node = intervals_within(&space->mapped, position, end))) {
		bool accessible = space_edit_accessible(&node->interval.attributes);

		count_interval(space, &node->interval, false);
		change(context, &node->interval);
		count_interval(space, &node->interval, true);
		if (accessible != space_edit_accessible(&node->interval.attributes) && space->observer.protected)
			space->observer.protected(space->observer.context, &node->interval);
		position = node->interval.end;
		space_edit_merge_at(space, node->interval.start);
	}
	space_edit_merge_at(space, end);
	return true;
}

bool space_edit_touch_some(struct space *space, uint64_t start, uint64_t end)
{
	return intervals_cut(&space->unknown, start, end) && space_doubt_settle(space, start, end) &&
	       space_snapshot_touch(space, start, end);
}
