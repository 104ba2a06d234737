// SPDX-License-Identifier: LGPL-2.1-or-later
/* What mremap(2) changes in the address space, also when it fails. */
#include <errno.h>

#include "model/space/space-state.h"

struct remap {
	uint64_t source, target;
	uint64_t old_bytes, new_bytes; /* whole pages */
	bool fixed, keep_source;
	/* Pieces at their old addresses; the observer has seen `moved`, but not `fresh`. */
	pieces moved, fresh;
};

/* What a move with MREMAP_FIXED has done before it failed. Since 6.17 (see kernel-rules.h) the kernel moves several
 * mappings one after the other, up to the first that it cannot move, and unmaps each target before it detects that. */
struct failed_move {
	uint64_t moved;		/* bytes from the source's start that have arrived at the target */
	struct range cleared;	/* of the target: unmapped, but not mapped again */
	struct range shortened; /* of the source: unmapped to shorten it */
	bool certain;		/* false: the most likely of several possibilities */
};

static uint64_t source_end(const struct remap *remap)
{
	return remap->source + remap->old_bytes;
}

static bool clear_target(struct space *space, const struct space_call *call, const struct remap *remap)
{
	static const struct space_attributes unknown = {.unknown = true};
	uint64_t end = remap->target + remap->new_bytes;
	const pieces *first = remap->moved.count ? &remap->moved : &remap->fresh;

	if (!remap->fixed)
		return pending_unmaps_place(space, call, remap->target, end,
					    first->count ? &first->items[0].attributes : &unknown);
	if (remap->old_bytes != remap->new_bytes)
		return space_edit_release(space, remap->target, end, call);
	/* One call may move several mappings. What lies in the target below a gap between them stays. */
	for (size_t i = 0; i < remap->moved.count + remap->fresh.count; i++) {
		const struct space_interval *piece =
		    i < remap->moved.count ? &remap->moved.items[i] : &remap->fresh.items[i - remap->moved.count];
		uint64_t start = piece->start - remap->source + remap->target;

		if (!space_edit_release(space, start, start + (piece->end - piece->start), call))
			return false;
	}
	return true;
}

static bool put_pieces(struct space *space, const struct remap *remap, const pieces *list, bool tell)
{
	uint32_t part = SPACE_PART_NONE;

	for (size_t i = 0; i < list->count; i++) {
		struct space_interval piece = list->items[i];

		piece.start = piece.start - remap->source + remap->target;
		piece.end = piece.end - remap->source + remap->target;
		piece.attributes.heap = false;
		/* From now on the context has this address. */
		for (size_t k = 0; piece.attributes.ring && k < space->rings.count; k++)
			if (piece.attributes.inode == space->rings.items[k].inode)
				space->rings.items[k].start = piece.start;
		if (piece.attributes.shm)
			space_shm_join(space, &piece, &part);
		if (!space_edit_touch(space, piece.start, piece.end) ||
		    !(tell ? space_edit_allocate(space, &piece) : space_edit_put(space, &piece)))
			return false;
	}
	return true;
}

/* New pages at `start` continue the last old page, which ends at `old_end`. */
static struct space_attributes grown(const struct space *space, uint64_t old_end)
{
	const struct space_interval *last = space_find(space, old_end - 1);

	return last ? space_edit_advance(&last->attributes, old_end - last->start)
		    : (struct space_attributes){.unknown = true};
}

static bool resize(struct space *space, const struct space_call *call, const struct remap *remap)
{
	const struct range range = {source_end(remap), remap->source + remap->new_bytes};
	struct space_attributes attributes;

	if (range.end <= range.start)
		return range.end == range.start || pending_unmaps_release(space, call, range.end, range.start);
	attributes = grown(space, range.start);
	return space_calls_place(space, call, &range, &attributes, false);
}

/* Old length 0: a second mapping of the same shared pages. */
static bool duplicate(struct space *space, const struct space_call *call, const struct remap *remap)
{
	const struct space_interval *source = space_find(space, remap->source);
	const struct range range = {remap->target, remap->target + remap->new_bytes};
	struct space_interval view = {.start = range.start, .end = range.end, .attributes.unknown = true};
	uint32_t part = SPACE_PART_NONE;

	if (source)
		view.attributes = space_edit_advance(&source->attributes, remap->source - source->start);
	if (remap->fixed ? !space_edit_release(space, range.start, range.end, call)
			 : !pending_unmaps_place(space, call, range.start, range.end, &view.attributes))
		return false;
	if (view.attributes.shm)
		space_shm_join(space, &view, &part);
	return space_calls_allocate(space, call, &range, &view.attributes);
}

static bool move_pieces(struct space *space, const struct space_call *call, struct remap *remap)
{
	uint64_t kept = smaller_of(remap->old_bytes, remap->new_bytes);
	const struct range target = {remap->target, remap->target + remap->new_bytes};
	const struct range rest = {target.start + kept, target.end};
	uint64_t position = remap->source;
	struct space_attributes attributes;
	struct space_interval unknown;
	struct interval_node *node;

	if (remap->old_bytes > kept && !pending_unmaps_release(space, call, remap->source + kept, source_end(remap)))
		return false;
	remap->old_bytes = kept;
	/* MREMAP_DONTUNMAP: the old range stays, with its allocation; the target is new. */
	while (remap->keep_source && (node = intervals_within(&space->mapped, position, source_end(remap)))) {
		struct space_interval piece = space_edit_clip(&node->interval, position, source_end(remap));

		position = piece.end;
		piece.allocation = call->allocation;
		piece.commit = space_edit_commit(&piece.attributes);
		if (!vector_push(&remap->fresh, piece))
			return false;
	}
	/* Unknown pages in the source are mapped, since the call succeeded. */
	position = remap->source;
	while (intervals_next_part(&space->unknown, &position, source_end(remap), &unknown)) {
		unknown.attributes.unknown = true;
		unknown.allocation = remap->keep_source ? call->allocation : (uint32_t)ALLOCATION_BEFORE;
		if (!vector_push(&remap->fresh, unknown))
			return false;
	}
	if (!remap->keep_source && !pending_unmaps_take(space, call, remap->source, source_end(remap), &remap->moved))
		return false;
	if (!remap->moved.count && !remap->fresh.count) {
		/* The model has no mapping at the source: a snapshot has already shown the target, or the call that
		 * mapped the source was lost. The kernel has replaced the target; only its maps can show by what. */
		return !remap->fixed || !space_is_lossy(space) || !space_is_described(space) ||
		       space_calls_failed(call) || space_calls_release(space, call, target.start, target.end);
	}
	if (!clear_target(space, call, remap) || !put_pieces(space, remap, &remap->moved, false) ||
	    !put_pieces(space, remap, &remap->fresh, true))
		return false;
	attributes = grown(space, rest.start);
	return rest.start >= rest.end || space_calls_allocate(space, call, &rest, &attributes);
}

/* The maps may have been read after the source was moved. With MREMAP_DONTUNMAP it looks the same before and after. */
static bool undo_read_of_source(struct space *space, const struct space_call *call, const struct remap *remap)
{
	uint64_t end = source_end(remap);

	return (remap->keep_source && space_calls_gap(space, remap->source, end) == end) ||
	       snapshot_race_undo(space, call, remap->source, end);
}

/* What a failed move with MREMAP_FIXED has changed: the kernel's checks in the kernel's order, as far as the model can
 * evaluate them. */

#define FLAGS (MREMAP_MAYMOVE | MREMAP_FIXED | MREMAP_DONTUNMAP)

/* Near the default vm.max_map_count of 65,530. With fewer mappings the call did not fail because of that limit. */
#define MAPPINGS_NEAR_LIMIT 60000

static const struct failed_move nothing = {.certain = true};

/* The first part failed; `clears`: after its target was unmapped. */
static struct failed_move fail_at(const struct remap *remap, const struct space_interval *part, bool clears)
{
	struct failed_move failed = {.moved = part->start - remap->source, .certain = true};

	if (clears)
		failed.cleared =
		    (struct range){remap->target + failed.moved, remap->target + part->end - remap->source};
	return failed;
}

/* A ring cannot be moved, not even in pieces, if its context is gone or belongs to the parent. `bytes`: of the part to
 * be moved. */
static bool is_stuck_ring(const struct space *space, const struct space_attributes *attributes, uint64_t bytes)
{
	const struct aio_ring *ring =
	    array_find(item, space->rings.items, space->rings.count, item->inode == attributes->inode);

	return attributes->ring && (!ring || (space->rules.protects_rings && bytes != ring->bytes));
}

/* Whether the kernel refuses to move this part, and whether it has unmapped the target by then. */
static bool refuses(const struct space *space, const struct space_call *call, const struct remap *remap,
		    const struct space_interval *part, bool *clears_ret)
{
	const struct space_attributes *attributes = &part->attributes;
	uint64_t target = part->start - remap->source + remap->target, bytes = part->end - part->start;

	*clears_ret = false;
	switch (call->result) {
	case -EFAULT:
		/* The kernel moves such files to a given address only alone: they have their own
		 * get_unmapped_area(). */
		return attributes->shm || attributes->zero;
	case -EPERM:
		return attributes->sealed || space_calls_sealed(space, target, target + bytes);
	case -EINVAL:
		if (remap->keep_source)
			return attributes->ring;
		*clears_ret = true;
		return is_stuck_ring(space, attributes, bytes);
	default:
		return false;
	}
}

/* One or several mappings whose length does not change. */
static struct failed_move fail_moving(const struct space *space, const struct space_call *call,
				      const struct remap *remap)
{
	bool near_limit = space->mapped.count >= MAPPINGS_NEAR_LIMIT, clears;
	uint64_t position = remap->source, end = source_end(remap);
	struct space_interval first, part;
	struct failed_move failed;

	if (!intervals_next_part(&space->mapped, &position, end, &first) || first.start > remap->source)
		return nothing; /* the start of the source must be mapped */
	if (call->result == -ENOMEM) {
		failed = fail_at(remap, &first, !near_limit);
		failed.certain = first.end == end && !near_limit;
		return failed;
	}
	for (position = remap->source; intervals_next_part(&space->mapped, &position, end, &part);) {
		if (refuses(space, call, remap, &part, &clears))
			return fail_at(remap, &part, clears);
	}
	/* The reason is unknown: a seal from before the recording, or a driver with its own get_unmapped_area(). */
	return (struct failed_move){.certain = first.end == end};
}

/* A seal in the rest of the source stops the move after the target was unmapped; the kernel checks the start of the
 * source and the target before that. */
static struct failed_move fail_at_sealed_tail(const struct space *space, const struct remap *remap)
{
	const struct range target = {remap->target, remap->target + remap->new_bytes};
	const struct space_interval *interval = space_find(space, remap->source);

	if ((interval && interval->attributes.sealed) || space_calls_sealed(space, target.start, target.end) ||
	    !space_calls_sealed(space, remap->source + remap->new_bytes, source_end(remap)))
		return nothing;
	return (struct failed_move){.cleared = target, .certain = true};
}

/* The kernel unmaps the target first, then the tail of the source. */
static struct failed_move fail_shortening(const struct space *space, const struct space_call *call,
					  const struct remap *remap)
{
	const struct failed_move failed = {.cleared = {remap->target, remap->target + remap->new_bytes},
					   .shortened = {remap->source + remap->new_bytes, source_end(remap)},
					   .certain = true};
	const struct space_interval *interval = space_find(space, remap->source);

	switch (call->result) {
	case -EPERM:
		return fail_at_sealed_tail(space, remap);
	case -EINVAL:
		return interval && is_stuck_ring(space, &interval->attributes, remap->new_bytes) ? failed : nothing;
	case -ENOMEM:
		return space->mapped.count < MAPPINGS_NEAR_LIMIT ? failed : (struct failed_move){0};
	default:
		return nothing;
	}
}

/* A second mapping placed over its own source: the source is already unmapped when the kernel looks for it. */
static struct failed_move fail_duplicating(const struct space *space, const struct space_call *call,
					   const struct remap *remap)
{
	const struct space_interval *source = space_find(space, remap->source);
	struct failed_move failed = {.cleared = {remap->target, remap->target + remap->new_bytes}, .certain = true};

	if (call->result != -EFAULT || !source || !source->attributes.shared || source->attributes.ring ||
	    remap->source < failed.cleared.start || remap->source >= failed.cleared.end)
		return nothing;
	return failed;
}

/* Before 6.17 the kernel unmaps the target, then cuts off the tail, and only then checks whether the source may be
 * moved. The source is always one mapping. */
static struct failed_move fail_in_old_order(const struct space *space, const struct space_call *call,
					    const struct remap *remap)
{
	struct failed_move failed = {.cleared = {remap->target, remap->target + remap->new_bytes}, .certain = true};
	const struct space_interval *source = space_find(space, remap->source);
	uint64_t mask = source ? (1ULL << source->attributes.hugetlb) - 1 : 0;

	if (call->result == -ENOMEM && space->mapped.count >= MAPPINGS_NEAR_LIMIT)
		return (struct failed_move){0};
	if (call->result == -EFAULT && !source && space->rules.mremap_finds_source_first)
		return nothing;
	/* Huge pages cannot grow or move by a part of a page: the kernel refuses at once. */
	if (call->result == -EINVAL && mask &&
	    (((remap->source | remap->target) & mask) || remap->new_bytes > remap->old_bytes))
		return nothing;
	if (call->result == -EPERM)
		return space->rules.mremap_sees_sealed_tail_late ? fail_at_sealed_tail(space, remap) : nothing;
	if (remap->old_bytes > remap->new_bytes)
		failed.shortened = (struct range){remap->source + remap->new_bytes, source_end(remap)};
	return failed;
}

static struct failed_move find_failure(const struct space *space, const struct space_call *call,
				       const struct remap *remap)
{
	if (!space->rules.mremap_moves_several)
		return fail_in_old_order(space, call, remap);
	if (!remap->old_bytes)
		return fail_duplicating(space, call, remap);
	if (remap->old_bytes < remap->new_bytes)
		/* The kernel checks limits before it unmaps the target, and memory accounting after that. */
		return (struct failed_move){.certain = call->result != -ENOMEM};
	if (remap->old_bytes > remap->new_bytes)
		return fail_shortening(space, call, remap);
	return fail_moving(space, call, remap);
}

static bool apply_failed(struct space *space, const struct space_call *call, struct remap *remap)
{
	uint64_t flags = call->arguments[3];
	struct failed_move failed;

	/* The kernel rejects other arguments before it searches for mappings. */
	if (!remap->fixed || (flags & ~(uint64_t)FLAGS) || !(flags & MREMAP_MAYMOVE) ||
	    (remap->keep_source && remap->old_bytes != remap->new_bytes) ||
	    (remap->source < remap->target + remap->new_bytes && remap->target < source_end(remap)))
		return true;
	if (!undo_read_of_source(space, call, remap))
		return false;
	failed = find_failure(space, call, remap);
	space->counts.ambiguous += !failed.certain;
	if (!space_calls_release(space, call, failed.cleared.start, failed.cleared.end) ||
	    !space_calls_release(space, call, failed.shortened.start, failed.shortened.end))
		return false;
	remap->old_bytes = remap->new_bytes = failed.moved;
	return !failed.moved || move_pieces(space, call, remap);
}

bool space_mremap_apply(struct space *space, const struct space_call *call)
{
	uint64_t mask = space->page_bytes - 1, unit = space->page_bytes;
	const struct space_interval *source = space_find(space, call->arguments[0]);
	struct remap remap;
	bool done;

	if (source && source->attributes.hugetlb)
		unit = 1ULL << source->attributes.hugetlb;
	remap = (struct remap){.source = call->arguments[0],
			       .target = (uint64_t)call->result,
			       .old_bytes = space_calls_round_up(call->arguments[1], unit),
			       .new_bytes = space_calls_round_up(call->arguments[2], unit),
			       .fixed = call->arguments[3] & MREMAP_FIXED,
			       .keep_source = call->arguments[3] & MREMAP_DONTUNMAP};
	if (space_calls_failed(call))
		remap.target = call->arguments[4];
	if ((remap.source & mask) || (remap.target & mask) || !remap.new_bytes || source_end(&remap) < remap.source ||
	    remap.target + remap.new_bytes < remap.target)
		return true;
	done = reconcile_presumed(space, remap.source, source_end(&remap));
	if (done && space_calls_failed(call))
		done = apply_failed(space, call, &remap);
	else if (done && !remap.old_bytes)
		done = duplicate(space, call, &remap);
	else if (done && remap.target == remap.source && !remap.fixed && !remap.keep_source)
		done = resize(space, call, &remap);
	else if (done)
		done = undo_read_of_source(space, call, &remap) && move_pieces(space, call, &remap);
	vector_deinit(&remap.moved);
	vector_deinit(&remap.fresh);
	return done;
}
