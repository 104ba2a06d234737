// SPDX-License-Identifier: LGPL-2.1-or-later
#include <sys/mman.h>

#include "model/space-calls.h"
#include "model/space-doubt.h"
#include "model/space-edit.h"
#include "model/space-guards.h"
#include "model/space-mremap.h"
#include "model/space-repair.h"

#ifndef MREMAP_DONTUNMAP
#define MREMAP_DONTUNMAP 4
#endif

static uint64_t round_up(uint64_t bytes, uint64_t unit)
{
	return bytes + unit - 1 < bytes ? 0 : (bytes + unit - 1) & ~(unit - 1);
}

static bool read_arguments(const struct space *space, const struct space_call *call, struct remap *remap)
{
	uint64_t mask = space->page_bytes - 1, unit = space->page_bytes;
	const struct space_interval *source = space_find(space, call->arguments[0]);

	if (source && source->attributes.hugetlb)
		unit = 1ULL << source->attributes.hugetlb;
	*remap = (struct remap){.source = call->arguments[0],
				.target = (uint64_t)call->result,
				.old_bytes = round_up(call->arguments[1], unit),
				.new_bytes = round_up(call->arguments[2], unit),
				.fixed = call->arguments[3] & MREMAP_FIXED,
				.keep_source = call->arguments[3] & MREMAP_DONTUNMAP};
	if (space_calls_failed(call))
		remap->target = call->arguments[4];
	return !(remap->source & mask) && !(remap->target & mask) && remap->new_bytes &&
	       remap->source + remap->old_bytes >= remap->source && remap->target + remap->new_bytes >= remap->target;
}

static struct space_interval clip(const struct space_interval *interval, uint64_t start, uint64_t end)
{
	struct space_interval part = *interval;

	if (part.start < start) {
		part.attributes = space_edit_advance(&part.attributes, start - part.start);
		part.start = start;
	}
	if (part.end > end)
		part.end = end;
	return part;
}

/* Pages of the source of which nothing was known: they are mapped, as the call succeeded. */
static bool find_unknown(struct space *space, struct remap *remap, uint32_t birth)
{
	uint64_t end = remap->source + remap->old_bytes, position = remap->source;
	struct interval_node *node;

	while ((node = intervals_within(&space->unknown, position, end))) {
		struct space_interval piece = clip(&node->interval, position, end);

		position = piece.end;
		piece.attributes.unknown = true;
		piece.birth = birth;
		if (!vector_push(&remap->fresh, piece))
			return false;
	}
	return true;
}

/* MREMAP_DONTUNMAP: the old range stays, with its birth; what is new is the target. */
static bool copy_source(struct space *space, const struct space_call *call, struct remap *remap)
{
	uint64_t end = remap->source + remap->old_bytes, position = remap->source;
	struct interval_node *node;

	while ((node = intervals_within(&space->mapped, position, end))) {
		struct space_interval piece = clip(&node->interval, position, end);

		position = piece.end;
		piece.birth = call->birth;
		piece.commit = space_edit_commit(&piece.attributes);
		if (!vector_push(&remap->fresh, piece))
			return false;
	}
	return find_unknown(space, remap, call->birth);
}

static bool clear_target(struct space *space, const struct space_call *call, const struct remap *remap)
{
	uint64_t end = remap->target + remap->new_bytes;
	const pieces *first = remap->moved.count ? &remap->moved : &remap->fresh;

	if (!remap->fixed) {
		const struct space_attributes none = {.unknown = true};

		return space_guards_place(space, call, remap->target, end,
					  first->count ? &first->items[0].attributes : &none);
	}
	/* Several mappings may be moved at once; what lies under a gap between them stays. */
	if (remap->old_bytes == remap->new_bytes) {
		for (size_t i = 0; i < remap->moved.count + remap->fresh.count; i++) {
			const struct space_interval *piece = i < remap->moved.count
								 ? &remap->moved.items[i]
								 : &remap->fresh.items[i - remap->moved.count];
			uint64_t start = piece->start - remap->source + remap->target;

			if (!space_edit_release(space, start, start + (piece->end - piece->start), call))
				return false;
		}
		return true;
	}
	return space_edit_release(space, remap->target, end, call);
}

static bool put_pieces(struct space *space, const struct remap *remap, const pieces *list, bool tell)
{
	uint32_t part = SPACE_PART_NONE;

	for (size_t i = 0; i < list->count; i++) {
		struct space_interval piece = list->items[i];

		piece.start = piece.start - remap->source + remap->target;
		piece.end = piece.end - remap->source + remap->target;
		piece.attributes.heap = false;
		if (piece.attributes.ring)
			space_rings_move(space, &piece);
		if (piece.attributes.shm)
			space_shm_join(space, &piece, &part);
		if (!space_edit_touch(space, piece.start, piece.end) ||
		    !(tell ? space_edit_bear(space, &piece) : space_edit_put(space, &piece)))
			return false;
	}
	return true;
}

/* New pages continue the last old one, which ends at `start`. */
static bool grow(struct space *space, const struct space_call *call, uint64_t start, uint64_t end)
{
	const struct space_interval *last = space_find(space, start - 1);
	struct space_attributes attributes = {.unknown = true};
	const struct range range = {start, end};

	if (last)
		attributes = space_edit_advance(&last->attributes, start - last->start);
	return space_calls_bear(space, call, &range, &attributes);
}

static bool resize(struct space *space, const struct space_call *call, const struct remap *remap)
{
	uint64_t old_end = remap->source + remap->old_bytes, new_end = remap->source + remap->new_bytes;
	const struct space_interval *last = space_find(space, old_end - 1);
	struct space_attributes attributes = {.unknown = true};

	if (new_end < old_end)
		return space_guards_release(space, call, new_end, old_end);
	if (new_end == old_end)
		return true;
	if (last)
		attributes = space_edit_advance(&last->attributes, old_end - last->start);
	return space_guards_place(space, call, old_end, new_end, &attributes) && grow(space, call, old_end, new_end);
}

/* Old length 0: a second view of a shared mapping. */
static bool duplicate(struct space *space, const struct space_call *call, const struct remap *remap)
{
	const struct space_interval *source = space_find(space, remap->source);
	const struct range range = {remap->target, remap->target + remap->new_bytes};
	struct space_interval view = {.start = range.start, .end = range.end, .attributes.unknown = true};
	uint32_t part = SPACE_PART_NONE;

	if (source)
		view.attributes = space_edit_advance(&source->attributes, remap->source - source->start);
	if (remap->fixed ? !space_edit_release(space, range.start, range.end, call)
			 : !space_guards_place(space, call, range.start, range.end, &view.attributes))
		return false;
	if (view.attributes.shm)
		space_shm_join(space, &view, &part);
	return space_calls_bear(space, call, &range, &view.attributes);
}

/*
 * Nothing was there: a snapshot has seen the target already, or the call that mapped the source is lost. Then the
 * kernel has put something into the target that is none of what was there; what it is only its maps will tell.
 */
static bool moved_unseen(struct space *space, const struct space_call *call, const struct remap *remap)
{
	uint64_t end = remap->target + remap->new_bytes;

	if (!remap->fixed || !space_is_lossy(space) || !space_is_described(space) || space_calls_failed(call))
		return true;
	return space_edit_touch(space, remap->target, end) && space_edit_release(space, remap->target, end, call);
}

static bool move_pieces(struct space *space, const struct space_call *call, struct remap *remap)
{
	uint64_t kept = remap->old_bytes < remap->new_bytes ? remap->old_bytes : remap->new_bytes;

	if (remap->old_bytes > kept &&
	    !space_guards_release(space, call, remap->source + kept, remap->source + remap->old_bytes))
		return false;
	remap->old_bytes = kept;
	if (remap->keep_source) {
		if (!copy_source(space, call, remap))
			return false;
	} else if (!find_unknown(space, remap, BIRTH_BEFORE) ||
		   !space_guards_take(space, call, remap->source, remap->source + kept, &remap->moved)) {
		return false;
	}
	if (!remap->moved.count && !remap->fresh.count)
		return moved_unseen(space, call, remap);
	if (!clear_target(space, call, remap) || !put_pieces(space, remap, &remap->moved, false) ||
	    !put_pieces(space, remap, &remap->fresh, true))
		return false;
	return remap->new_bytes <= kept || grow(space, call, remap->target + kept, remap->target + remap->new_bytes);
}

static bool release_range(struct space *space, const struct space_call *call, const struct range *range)
{
	return space_edit_touch(space, range->start, range->end) &&
	       space_edit_release(space, range->start, range->end, call);
}

static bool apply_failed(struct space *space, const struct space_call *call, struct remap *remap)
{
	struct failed_move failed;

	if (!space_mremap_may_change(call, remap))
		return true;
	if (!space_doubt_undo(space, call, remap->source, remap->source + remap->old_bytes))
		return false;
	failed = space_mremap_failed(space, call, remap);
	space->counts.ambiguous += !failed.certain;
	if (!release_range(space, call, &failed.cleared) || !release_range(space, call, &failed.shortened))
		return false;
	remap->old_bytes = remap->new_bytes = failed.moved;
	return !failed.moved || move_pieces(space, call, remap);
}

static bool apply(struct space *space, const struct space_call *call, struct remap *remap)
{
	uint64_t told = remap->old_bytes ? remap->old_bytes : space->page_bytes;

	if (space_calls_failed(call))
		return apply_failed(space, call, remap);
	if (remap->old_bytes && remap->target == remap->source && !remap->fixed && !remap->keep_source)
		return resize(space, call, remap);
	if (!space_doubt_undo(space, call, remap->source, remap->source + told))
		return false;
	if (!remap->old_bytes)
		return duplicate(space, call, remap);
	return move_pieces(space, call, remap);
}

bool space_mremap_apply(struct space *space, const struct space_call *call)
{
	struct remap remap;
	bool done;

	if (!read_arguments(space, call, &remap))
		return true;
	done = space_repair_presumed(space, remap.source, remap.source + remap.old_bytes) && apply(space, call, &remap);
	vector_deinit(&remap.moved);
	vector_deinit(&remap.fresh);
	return done;
}
