// SPDX-License-Identifier: LGPL-2.1-or-later
#include "model/space-guards.h"

#include <string.h>

#include "base/cleanup.h"
#include "model/space-doubt.h"
#include "model/space-edit.h"

#define GUARD_NS 1000000000ULL /* contended releases were seen to wait for 23 ms */
#define GUARDS_MAXIMUM 1024

static void remove_guard(struct space *space, size_t index)
{
	vector_deinit(&space->guards.items[index].saved);
	memmove(&space->guards.items[index], &space->guards.items[index + 1],
		(space->guards.count - index - 1) * sizeof(*space->guards.items));
	space->guards.count--;
}

static void give_up(struct space *space, size_t index)
{
	struct guard *guard = &space->guards.items[index];
	struct space_call unseen = {.kind = SPACE_MUNMAP, .time_ns = guard->time_ns, .thread = -1};

	for (size_t i = 0; i < guard->saved.count; i++)
		space_edit_tell_released(space, &guard->saved.items[i], &unseen);
	space->counts.ambiguous++;
	remove_guard(space, index);
}

/* A snapshot or a witness may have shown the mapping before its call returned: then nothing was in the way. */
static bool seen_early(const struct space *space, const struct space_call *call, const struct space_interval *held,
		       uint64_t start, const struct space_attributes *attributes)
{
	struct space_attributes placed = *attributes;
	struct space_attributes found = held->attributes;
	uint64_t address = held->start > start ? held->start : start;

	if ((held->birth >= BIRTH_FIRST && !held->repaired) ||
	    (held->repaired && space->now_ns - space->repaired_ns > GUARD_NS) ||
	    (held->birth == BIRTH_BEFORE && !space_doubt_covers(space, call, address)))
		return false;
	placed = space_edit_advance(attributes, address - start);
	found = space_edit_advance(&held->attributes, address - held->start);
	return space_edit_agree(&placed, &found);
}

static bool set_aside(struct space *space, const struct space_call *call, uint64_t start, uint64_t end, pieces *saved)
{
	struct guard guard = {.range = {start, end}, .time_ns = call->time_ns, .thread = call->thread};

	guard.saved.items = saved->items;
	guard.saved.count = saved->count;
	guard.saved.capacity = saved->capacity;
	if (space->guards.count == GUARDS_MAXIMUM)
		give_up(space, 0);
	return vector_push(&space->guards, guard);
}

bool space_guards_place(struct space *space, const struct space_call *call, uint64_t start, uint64_t end,
			const struct space_attributes *attributes)
{
	pieces saved = {0};
	bool done = true;
	struct interval_node *node;

	while (done && (node = intervals_within(&space->mapped, start, end))) {
		uint64_t from = node->interval.start > start ? node->interval.start : start;
		uint64_t to = node->interval.end < end ? node->interval.end : end;

		if (!seen_early(space, call, &node->interval, start, attributes)) {
			done = space_edit_take(space, from, to, &saved);
			continue;
		}
		if (node->interval.repaired)
			space->counts.repaired_bytes -= to - from;
		done = space_edit_release(space, from, to, NULL);
	}
	if (done && saved.count)
		done = set_aside(space, call, start, end, &saved);
	if (!done || !saved.count)
		vector_deinit(&saved);
	return done;
}

bool space_guards_in_flight(const struct space *space, int32_t thread, uint64_t time_ns, const struct space_call *call)
{
	const uint64_t *last_exit = map_get(&space->last_exits, (uint32_t)call->thread);

	return call->thread != thread && (!last_exit || *last_exit <= time_ns);
}

static bool overlaps(const struct space_interval *piece, uint64_t start, uint64_t end)
{
	return piece->start < end && piece->end > start;
}

/* Move what lies in [start, end) from the guard to `taken`. */
static bool hand_over(struct guard *guard, uint64_t start, uint64_t end, pieces *taken)
{
	pieces left = {0};
	bool done = true;

	for (size_t i = 0; done && i < guard->saved.count; i++) {
		struct space_interval piece = guard->saved.items[i], part = piece;

		if (!overlaps(&piece, start, end)) {
			done = vector_push(&left, piece);
			continue;
		}
		if (piece.start < start) {
			part.end = start;
			done = vector_push(&left, part);
		}
		part = piece;
		part.start = piece.start > start ? piece.start : start;
		part.end = piece.end < end ? piece.end : end;
		part.attributes = space_edit_advance(&piece.attributes, part.start - piece.start);
		done = done && vector_push(taken, part);
		if (done && piece.end > end) {
			part = piece;
			part.start = end;
			part.attributes = space_edit_advance(&piece.attributes, end - piece.start);
			done = vector_push(&left, part);
		}
	}
	vector_deinit(&guard->saved);
	guard->saved.items = left.items;
	guard->saved.count = left.count;
	guard->saved.capacity = left.capacity;
	return done;
}

/* The same for those parts of the range that no older guard has handed over already. */
static bool hand_over_rest(struct guard *guard, const struct range *range, pieces *taken)
{
	size_t older = taken->count;
	bool done = true;

	for (uint64_t position = range->start; done && position < range->end;) {
		uint64_t stop = range->end, skip = range->end;

		for (size_t i = 0; i < older; i++) {
			const struct space_interval *piece = &taken->items[i];

			if (piece->end > position && piece->start < stop) {
				stop = piece->start > position ? piece->start : position;
				skip = piece->end;
			}
		}
		if (stop > position)
			done = hand_over(guard, position, stop, taken);
		position = skip;
	}
	return done;
}

/* Collect in `spared` what `call` came too early for, in `taken` what it took before. */
static bool match_guards(struct space *space, const struct space_call *call, uint64_t start, uint64_t end,
			 ranges *spared, pieces *taken)
{
	for (size_t i = 0; i < space->guards.count;) {
		struct guard *guard = &space->guards.items[i];
		struct range range = {guard->range.start > start ? guard->range.start : start,
				      guard->range.end < end ? guard->range.end : end};
		size_t before = taken->count;

		if (range.start >= range.end || !space_guards_in_flight(space, guard->thread, guard->time_ns, call)) {
			i++;
			continue;
		}
		if (!hand_over_rest(guard, &range, taken))
			return false;
		if (taken->count > before && !vector_push(spared, range))
			return false;
		if (guard->saved.count)
			i++;
		else
			remove_guard(space, i);
	}
	return true;
}

/* The first spared range that ends after `position`, by start. */
static const struct range *next_spared(const ranges *spared, uint64_t position)
{
	const struct range *next = NULL;

	for (size_t i = 0; i < spared->count; i++) {
		const struct range *range = &spared->items[i];

		if (range->end > position && (!next || range->start < next->start))
			next = range;
	}
	return next;
}

static int compare_pieces(const void *left, const void *right)
{
	const struct space_interval *a = left, *b = right;

	return a->start < b->start ? -1 : a->start > b->start;
}

bool space_guards_take(struct space *space, const struct space_call *call, uint64_t start, uint64_t end, pieces *taken)
{
	CLEANUP(free) struct range *spared_items = NULL;
	ranges spared = {0};
	bool done;

	if (!space->guards.count)
		return space_edit_touch(space, start, end) && space_edit_take(space, start, end, taken);
	done = match_guards(space, call, start, end, &spared, taken);
	spared_items = spared.items;
	for (uint64_t position = start; done && position < end;) {
		const struct range *range = next_spared(&spared, position);
		uint64_t stop = range && range->start < end ? range->start : end;

		if (stop > position)
			done = space_edit_touch(space, position, stop) && space_edit_take(space, position, stop, taken);
		position = stop < end ? range->end : end;
	}
	if (taken->count > 1)
		qsort(taken->items, taken->count, sizeof(*taken->items), compare_pieces);
	return done;
}

bool space_guards_release(struct space *space, const struct space_call *call, uint64_t start, uint64_t end)
{
	pieces taken = {0};
	bool done = space_guards_take(space, call, start, end, &taken);

	for (size_t i = 0; i < taken.count; i++)
		space_edit_tell_released(space, &taken.items[i], call);
	vector_deinit(&taken);
	return done;
}

bool space_guards_wait_for(const struct space *space, uint64_t start, uint64_t end)
{
	for (size_t i = 0; i < space->guards.count; i++) {
		const struct range *range = &space->guards.items[i].range;

		if (range->start < end && range->end > start)
			return true;
	}
	return false;
}

void space_guards_expire(struct space *space, uint64_t now_ns)
{
	while (space->guards.count && now_ns > space->guards.items[0].time_ns &&
	       now_ns - space->guards.items[0].time_ns > GUARD_NS)
		give_up(space, 0);
}

bool space_guards_note(struct space *space, const struct space_call *call)
{
	if (space->guards.count || space->snapshot.open || space->doubts.count)
		return map_put(&space->last_exits, (uint32_t)call->thread, call->time_ns);
	if (space->last_exits.count)
		map_deinit(&space->last_exits);
	return true;
}

void space_guards_give_up(struct space *space)
{
	while (space->guards.count)
		give_up(space, 0);
}

void space_guards_deinit(struct space *space)
{
	space_guards_give_up(space);
	vector_deinit(&space->guards);
}
