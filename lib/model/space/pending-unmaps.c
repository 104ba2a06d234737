// SPDX-License-Identifier: LGPL-2.1-or-later
/* Unmaps whose exit has not been seen yet: others may map the same addresses before it. */
#include "model/space/space-state.h"

#include "base/limits.h"

#define PENDING_UNMAP_NS 10000000000ULL /* io_destroy() has been observed to return 1.6 s after its ring was unmapped */
#define KEPT_PIECES 64			/* spare room for the next call */

static void remove_pending_unmap(struct space *space, size_t index)
{
	intervals_deinit(&space->pending_unmaps.items[index].saved);
	memmove(&space->pending_unmaps.items[index], &space->pending_unmaps.items[index + 1],
		(space->pending_unmaps.count - index - 1) * sizeof(*space->pending_unmaps.items));
	space->pending_unmaps.count--;
}

static void give_up_oldest(struct space *space)
{
	struct pending_unmap *pending_unmap = space->pending_unmaps.items;
	struct space_call unseen = {.kind = CALL_MUNMAP, .time_ns = pending_unmap->time_ns, .thread = -1};
	struct interval_node *node;

	for (uint64_t position = 0; (node = intervals_next(&pending_unmap->saved, position));
	     position = node->interval.end)
		space_edit_notify_released(space, &node->interval, &unseen);
	space->counts.ambiguous++;
	remove_pending_unmap(space, 0);
}

/* A snapshot or an MMAP2 record may have shown the mapping before its call returned: then it replaces only itself. */
static bool seen_early(const struct space *space, const struct space_call *call, const struct space_interval *held,
		       uint64_t start, const struct space_attributes *attributes)
{
	uint64_t address = larger_of(held->start, start);
	struct space_attributes placed = space_edit_advance(attributes, address - start);
	struct space_attributes found = space_edit_advance(&held->attributes, address - held->start);

	if ((held->allocation >= ALLOCATION_FIRST && !held->reconciled) ||
	    (held->reconciled && space->now_ns - space->reconciled_ns > PENDING_UNMAP_NS) ||
	    (held->allocation == ALLOCATION_BEFORE && !snapshot_race_covers(space, call, address)))
		return false;
	return space_edit_agree(&placed, &found);
}

bool pending_unmaps_place(struct space *space, const struct space_call *call, uint64_t start, uint64_t end,
			  const struct space_attributes *attributes)
{
	pieces saved = {0};
	bool done = true;
	struct interval_node *node;

	while (done && (node = intervals_within(&space->mapped, start, end))) {
		uint64_t from = larger_of(node->interval.start, start);
		uint64_t to = smaller_of(node->interval.end, end);

		if (!seen_early(space, call, &node->interval, start, attributes)) {
			done = space_edit_take(space, from, to, &saved);
			continue;
		}
		if (node->interval.reconciled)
			space->counts.reconciled_bytes -= to - from;
		done = space_edit_release(space, from, to, NULL);
	}
	if (done && saved.count) {
		struct pending_unmap pending_unmap = {
		    .range = {start, end}, .time_ns = call->time_ns, .thread = call->thread};

		if (space->pending_unmaps.count == LIMIT_PENDING_UNMAPS)
			give_up_oldest(space);
		for (size_t i = 0; done && i < saved.count; i++)
			done = intervals_insert(&pending_unmap.saved, &saved.items[i], 0);
		done = done && vector_push(&space->pending_unmaps, pending_unmap);
		if (!done)
			intervals_deinit(&pending_unmap.saved);
	}
	vector_deinit(&saved);
	return done;
}

bool pending_unmaps_in_flight(const struct space *space, int32_t thread, uint64_t time_ns,
			      const struct space_call *call)
{
	const uint64_t *last_exit = map_get(&space->last_exits, (uint32_t)call->thread);

	return call->thread != thread && (!last_exit || *last_exit <= time_ns);
}

static bool keep_part(struct intervals *saved, const struct space_interval *piece, uint64_t start, uint64_t end)
{
	struct space_interval part = space_edit_clip(piece, start, end);

	return part.start >= part.end || intervals_insert(saved, &part, 0);
}

COMPARISON(compare_pieces, struct space_interval, order_of(a->start, b->start))

/* Collect in `spared` the ranges mapped after `call` took effect, in `taken` the pieces that it unmapped: in each
 * range, those of the oldest pending unmap. `given`: what was taken so far. */
static bool match_pending_unmaps(struct space *space, const struct space_call *call, uint64_t start, uint64_t end,
				 struct intervals *spared, struct intervals *given, pieces *taken)
{
	for (size_t i = 0; i < space->pending_unmaps.count;) {
		struct pending_unmap *pending_unmap = &space->pending_unmaps.items[i];
		const struct range *held = &pending_unmap->range;
		const struct space_interval range = {.start = held->start > start ? held->start : start,
						     .end = held->end < end ? held->end : end};
		size_t before = taken->count;

		if (range.start >= range.end ||
		    !pending_unmaps_in_flight(space, pending_unmap->thread, pending_unmap->time_ns, call)) {
			i++;
			continue;
		}
		for (uint64_t position = range.start, stop; position < range.end; position = stop) {
			struct interval_node *node;

			if (intervals_at(given, position, range.end, &stop))
				continue;
			while ((node = intervals_within(&pending_unmap->saved, position, stop))) {
				struct space_interval piece = node->interval;
				struct space_interval part = space_edit_clip(&piece, position, stop);

				intervals_remove(&pending_unmap->saved, piece.start);
				if (!vector_push(taken, part) || !intervals_insert(given, &part, 0) ||
				    !keep_part(&pending_unmap->saved, &piece, 0, position) ||
				    !keep_part(&pending_unmap->saved, &piece, stop, UINT64_MAX))
					return false;
			}
		}
		if (taken->count > before &&
		    (!intervals_cut(spared, range.start, range.end) || !intervals_insert(spared, &range, 0)))
			return false;
		if (pending_unmap->saved.count)
			i++;
		else
			remove_pending_unmap(space, i);
	}
	return true;
}

bool pending_unmaps_take(struct space *space, const struct space_call *call, uint64_t start, uint64_t end,
			 pieces *taken)
{
	struct intervals spared = {0}, given = {0};
	bool done;

	if (!space->pending_unmaps.count)
		return space_edit_touch(space, start, end) && space_edit_take(space, start, end, taken);
	done = match_pending_unmaps(space, call, start, end, &spared, &given, taken);
	for (uint64_t position = start, stop; done && position < end; position = stop) {
		if (!intervals_at(&spared, position, end, &stop))
			done = space_edit_touch(space, position, stop) && space_edit_take(space, position, stop, taken);
	}
	intervals_deinit(&spared);
	intervals_deinit(&given);
	vector_sort(taken, compare_pieces);
	return done;
}

bool pending_unmaps_release(struct space *space, const struct space_call *call, uint64_t start, uint64_t end)
{
	pieces *taken = &space->released;
	bool done;

	taken->count = 0;
	done = pending_unmaps_take(space, call, start, end, taken);
	for (size_t i = 0; i < taken->count; i++)
		space_edit_notify_released(space, &taken->items[i], call);
	if (taken->capacity > KEPT_PIECES)
		vector_deinit(taken);
	return done;
}

bool pending_unmaps_wait_for(const struct space *space, uint64_t start, uint64_t end)
{
	return array_find(pending, space->pending_unmaps.items, space->pending_unmaps.count,
			  pending->range.start < end && pending->range.end > start);
}

void pending_unmaps_expire(struct space *space, uint64_t now_ns)
{
	while (space->pending_unmaps.count && now_ns > space->pending_unmaps.items[0].time_ns &&
	       now_ns - space->pending_unmaps.items[0].time_ns > PENDING_UNMAP_NS)
		give_up_oldest(space);
}

bool pending_unmaps_note(struct space *space, const struct space_call *call)
{
	if (space->pending_unmaps.count || space->snapshot.open || space->snapshot_races.count)
		return map_put(&space->last_exits, (uint32_t)call->thread, call->time_ns);
	if (space->last_exits.count)
		map_deinit(&space->last_exits);
	return true;
}

void pending_unmaps_give_up(struct space *space)
{
	while (space->pending_unmaps.count)
		give_up_oldest(space);
}
