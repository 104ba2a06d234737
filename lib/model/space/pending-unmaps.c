// SPDX-License-Identifier: LGPL-2.1-or-later
#include "model/space/pending-unmaps.h"

#include <stdlib.h>
#include <string.h>

#include "model/space/snapshot-races.h"
#include "model/space/space-state.h"

#define GUARD_NS 1000000000ULL /* contended releases were seen to wait for 23 ms */
#define GUARDS_MAXIMUM 1024
#define KEPT_PIECES 64 /* room for the next call's */

static void remove_guard(struct space *space, size_t index)
{
	intervals_deinit(&space->guards.items[index].saved);
	memmove(&space->guards.items[index], &space->guards.items[index + 1],
		(space->guards.count - index - 1) * sizeof(*space->guards.items));
	space->guards.count--;
}

static void give_up(struct space *space, size_t index)
{
	struct guard *guard = &space->guards.items[index];
	struct space_call unseen = {.kind = SPACE_MUNMAP, .time_ns = guard->time_ns, .thread = -1};
	struct interval_node *node;

	for (uint64_t position = 0; (node = intervals_next(&guard->saved, position)); position = node->interval.end)
		space_edit_tell_released(space, &node->interval, &unseen);
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

static bool set_aside(struct space *space, const struct space_call *call, uint64_t start, uint64_t end,
		      const pieces *saved)
{
	struct guard guard = {.range = {start, end}, .time_ns = call->time_ns, .thread = call->thread};

	if (space->guards.count == GUARDS_MAXIMUM)
		give_up(space, 0);
	for (size_t i = 0; i < saved->count; i++) {
		if (!intervals_insert(&guard.saved, &saved->items[i], 0)) {
			intervals_deinit(&guard.saved);
			return false;
		}
	}
	if (vector_push(&space->guards, guard))
		return true;
	intervals_deinit(&guard.saved);
	return false;
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
	vector_deinit(&saved);
	return done;
}

bool space_guards_in_flight(const struct space *space, int32_t thread, uint64_t time_ns, const struct space_call *call)
{
	const uint64_t *last_exit = map_get(&space->last_exits, (uint32_t)call->thread);

	return call->thread != thread && (!last_exit || *last_exit <= time_ns);
}

/* The part of `piece` in [start, end), which they share. */
static struct space_interval cut_piece(const struct space_interval *piece, uint64_t start, uint64_t end)
{
	struct space_interval part = *piece;

	part.start = piece->start > start ? piece->start : start;
	part.end = piece->end < end ? piece->end : end;
	part.attributes = space_edit_advance(&piece->attributes, part.start - piece->start);
	return part;
}

static bool keep_part(struct intervals *saved, const struct space_interval *piece, uint64_t start, uint64_t end)
{
	struct space_interval part = cut_piece(piece, start, end);

	return part.start >= part.end || intervals_insert(saved, &part, 0);
}

/* Move what lies in [start, end) from the guard to `taken`. */
static bool hand_over(struct guard *guard, uint64_t start, uint64_t end, pieces *taken)
{
	struct interval_node *node;

	while ((node = intervals_within(&guard->saved, start, end))) {
		struct space_interval piece = node->interval, part = cut_piece(&piece, start, end);

		intervals_remove(&guard->saved, piece.start);
		if (!vector_push(taken, part) || !keep_part(&guard->saved, &piece, 0, start) ||
		    !keep_part(&guard->saved, &piece, end, UINT64_MAX))
			return false;
	}
	return true;
}

static int compare_pieces(const void *left, const void *right)
{
	const struct space_interval *a = left, *b = right;

	return a->start < b->start ? -1 : a->start > b->start;
}

static void sort_pieces(pieces *taken)
{
	if (taken->count > 1)
		qsort(taken->items, taken->count, sizeof(*taken->items), compare_pieces);
}

/* The same for those parts of the range that no older guard has handed over already: `taken` so far. */
static bool hand_over_rest(struct guard *guard, const struct range *range, pieces *taken)
{
	uint64_t position = range->start;
	size_t older = taken->count;
	bool done = true;

	sort_pieces(taken);
	for (size_t i = 0; done && i < older && position < range->end; i++) {
		const struct space_interval *piece = &taken->items[i];
		uint64_t stop = piece->start < range->end ? piece->start : range->end, skip = piece->end;

		if (skip <= position)
			continue;
		if (stop > position)
			done = hand_over(guard, position, stop, taken);
		position = skip;
	}
	if (done && position < range->end)
		done = hand_over(guard, position, range->end, taken);
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

static int compare_ranges(const void *left, const void *right)
{
	const struct range *a = left, *b = right;

	return a->start < b->start ? -1 : a->start > b->start;
}

/* [start, end) but for what is spared. */
static bool take_rest(struct space *space, uint64_t start, uint64_t end, const ranges *spared, pieces *taken)
{
	uint64_t position = start;
	bool done = true;

	for (size_t i = 0; done && i <= spared->count && position < end; i++) {
		bool last = i == spared->count;
		uint64_t stop = last ? end : spared->items[i].start, skip = last ? end : spared->items[i].end;

		if (stop > position)
			done = space_edit_touch(space, position, stop) && space_edit_take(space, position, stop, taken);
		if (skip > position)
			position = skip;
	}
	return done;
}

bool space_guards_take(struct space *space, const struct space_call *call, uint64_t start, uint64_t end, pieces *taken)
{
	ranges spared = {0};
	bool done;

	if (!space->guards.count)
		return space_edit_touch(space, start, end) && space_edit_take(space, start, end, taken);
	done = match_guards(space, call, start, end, &spared, taken);
	if (spared.count > 1)
		qsort(spared.items, spared.count, sizeof(*spared.items), compare_ranges);
	done = done && take_rest(space, start, end, &spared, taken);
	vector_deinit(&spared);
	sort_pieces(taken);
	return done;
}

bool space_guards_release(struct space *space, const struct space_call *call, uint64_t start, uint64_t end)
{
	pieces *taken = &space->released;
	bool done;

	taken->count = 0;
	done = space_guards_take(space, call, start, end, taken);
	for (size_t i = 0; i < taken->count; i++)
		space_edit_tell_released(space, &taken->items[i], call);
	if (taken->capacity > KEPT_PIECES)
		vector_deinit(taken);
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
