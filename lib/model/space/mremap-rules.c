// SPDX-License-Identifier: LGPL-2.1-or-later
/* What mremap(2) changes in the address space, also when it fails. */
#include <errno.h>
#include <sys/mman.h>

#include "model/space/pending-unmaps.h"
#include "model/space/snapshot-check.h"
#include "model/space/space-state.h"
#include "model/space/syscall-rules.h"

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

/* Find unknown pages in the source: since the call succeeded, they are mapped. */
static bool find_unknown(struct space *space, struct remap *remap, uint32_t allocation)
{
	uint64_t end = remap->source + remap->old_bytes, position = remap->source;
	struct interval_node *node;

	while ((node = intervals_within(&space->unknown, position, end))) {
		struct space_interval piece = space_edit_clip(&node->interval, position, end);

		position = piece.end;
		piece.attributes.unknown = true;
		piece.allocation = allocation;
		if (!vector_push(&remap->fresh, piece))
			return false;
	}
	return true;
}

/* MREMAP_DONTUNMAP: the old range stays, with its allocation; the target is new. */
static bool copy_source(struct space *space, const struct space_call *call, struct remap *remap)
{
	uint64_t end = remap->source + remap->old_bytes, position = remap->source;
	struct interval_node *node;

	while ((node = intervals_within(&space->mapped, position, end))) {
		struct space_interval piece = space_edit_clip(&node->interval, position, end);

		position = piece.end;
		piece.allocation = call->allocation;
		piece.commit = space_edit_commit(&piece.attributes);
		if (!vector_push(&remap->fresh, piece))
			return false;
	}
	return find_unknown(space, remap, call->allocation);
}

static bool clear_target(struct space *space, const struct space_call *call, const struct remap *remap)
{
	uint64_t end = remap->target + remap->new_bytes;
	const pieces *first = remap->moved.count ? &remap->moved : &remap->fresh;

	if (!remap->fixed) {
		const struct space_attributes none = {.unknown = true};

		return pending_unmaps_place(space, call, remap->target, end,
					    first->count ? &first->items[0].attributes : &none);
	}
	/* One call may move several mappings. What lies in the target below a gap between them stays. */
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
		    !(tell ? space_edit_allocate(space, &piece) : space_edit_put(space, &piece)))
			return false;
	}
	return true;
}

/* New pages continue the last old page, which ends at `start`. */
static bool grow(struct space *space, const struct space_call *call, uint64_t start, uint64_t end)
{
	const struct space_interval *last = space_find(space, start - 1);
	struct space_attributes attributes = {.unknown = true};
	const struct range range = {start, end};

	if (last)
		attributes = space_edit_advance(&last->attributes, start - last->start);
	return space_calls_allocate(space, call, &range, &attributes);
}

static bool resize(struct space *space, const struct space_call *call, const struct remap *remap)
{
	uint64_t old_end = remap->source + remap->old_bytes, new_end = remap->source + remap->new_bytes;
	const struct space_interval *last = space_find(space, old_end - 1);
	struct space_attributes attributes = {.unknown = true};

	if (new_end < old_end)
		return pending_unmaps_release(space, call, new_end, old_end);
	if (new_end == old_end)
		return true;
	if (last)
		attributes = space_edit_advance(&last->attributes, old_end - last->start);
	return pending_unmaps_place(space, call, old_end, new_end, &attributes) && grow(space, call, old_end, new_end);
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

/* The model has no mapping at the source: a snapshot has already shown the target, or the call that mapped the source
 * was lost. The kernel has replaced the target; only its maps can show by what. */
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
	    !pending_unmaps_release(space, call, remap->source + kept, remap->source + remap->old_bytes))
		return false;
	remap->old_bytes = kept;
	if (remap->keep_source) {
		if (!copy_source(space, call, remap))
			return false;
	} else if (!find_unknown(space, remap, ALLOCATION_BEFORE) ||
		   !pending_unmaps_take(space, call, remap->source, remap->source + kept, &remap->moved)) {
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

static bool is_mapped(const struct space *space, uint64_t start, uint64_t end)
{
	const struct space_interval *interval;

	while (start < end && (interval = space_find(space, start)))
		start = interval->end;
	return start >= end;
}

/* The maps may have been read after the source was moved. With MREMAP_DONTUNMAP it looks the same before and after. */
static bool undo_read_of_source(struct space *space, const struct space_call *call, const struct remap *remap)
{
	uint64_t end = remap->source + remap->old_bytes;

	if (remap->keep_source && is_mapped(space, remap->source, end))
		return true;
	return snapshot_race_undo(space, call, remap->source, end);
}

static bool apply_failed(struct space *space, const struct space_call *call, struct remap *remap)
{
	struct failed_move failed;

	if (!space_mremap_may_change(call, remap))
		return true;
	if (!undo_read_of_source(space, call, remap))
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
	if (space_calls_failed(call))
		return apply_failed(space, call, remap);
	if (remap->old_bytes && remap->target == remap->source && !remap->fixed && !remap->keep_source)
		return resize(space, call, remap);
	if (!remap->old_bytes)
		return duplicate(space, call, remap);
	return undo_read_of_source(space, call, remap) && move_pieces(space, call, remap);
}

bool space_mremap_apply(struct space *space, const struct space_call *call)
{
	struct remap remap;
	bool done;

	if (!read_arguments(space, call, &remap))
		return true;
	done = reconcile_presumed(space, remap.source, remap.source + remap.old_bytes) && apply(space, call, &remap);
	vector_deinit(&remap.moved);
	vector_deinit(&remap.fresh);
	return done;
}

/* What a failed move with MREMAP_FIXED has changed: the kernel's checks in the kernel's order, as far as the model can
 * evaluate them. */

#define FLAGS (MREMAP_MAYMOVE | MREMAP_FIXED | MREMAP_DONTUNMAP)

/* Near the default vm.max_map_count of 65,530. With fewer mappings the call did not fail because of that limit. */
#define MAPPINGS_NEAR_LIMIT 60000

static const struct failed_move nothing = {.certain = true};

static uint64_t source_end(const struct remap *remap)
{
	return remap->source + remap->old_bytes;
}

/* The part of the source from `position` on that lies in one mapping; false: none. */
static bool next_part(const struct space *space, const struct remap *remap, uint64_t position, struct range *part,
		      const struct space_interval **interval_ret)
{
	const struct space_interval *interval = space_next(space, position);

	if (!interval || position >= source_end(remap) || interval->start >= source_end(remap))
		return false;
	part->start = interval->start > position ? interval->start : position;
	part->end = interval->end < source_end(remap) ? interval->end : source_end(remap);
	*interval_ret = interval;
	return true;
}

static struct range target_of(const struct remap *remap, const struct range *part)
{
	return (struct range){part->start - remap->source + remap->target, part->end - remap->source + remap->target};
}

/* The first part failed; `clears`: after its target was unmapped. */
static struct failed_move fail_at(const struct remap *remap, const struct range *part, bool clears)
{
	struct failed_move failed = {.moved = part->start - remap->source, .certain = true};

	if (clears)
		failed.cleared = target_of(remap, part);
	return failed;
}

static bool is_sealed(const struct space *space, const struct range *range)
{
	const struct space_interval *interval;

	for (uint64_t position = range->start; (interval = space_next(space, position)) && interval->start < range->end;
	     position = interval->end) {
		if (interval->attributes.sealed)
			return true;
	}
	return false;
}

/* A ring cannot be moved, not even in pieces, if its context is gone or belongs to the parent. `bytes`: of the part to
 * be moved. */
static bool is_stuck_ring(const struct space *space, const struct space_attributes *attributes, uint64_t bytes)
{
	if (!attributes->ring)
		return false;
	for (size_t i = 0; i < space->rings.count; i++) {
		if (space->rings.items[i].inode == attributes->inode)
			return space->rules.mremap_moves_whole_rings && bytes != space->rings.items[i].bytes;
	}
	return true;
}

/* Whether the kernel refuses to move this part, and whether it has unmapped the target by then. */
static bool refuses(const struct space *space, const struct space_call *call, const struct remap *remap,
		    const struct space_attributes *attributes, const struct range *part, bool *clears_ret)
{
	const struct range target = target_of(remap, part);

	*clears_ret = false;
	switch (call->result) {
	case -EFAULT:
		/* The kernel moves such files to a given address only alone: they have their own
		 * get_unmapped_area(). */
		return attributes->shm || attributes->zero;
	case -EPERM:
		return attributes->sealed || is_sealed(space, &target);
	case -EINVAL:
		if (remap->keep_source)
			return attributes->ring;
		*clears_ret = true;
		return is_stuck_ring(space, attributes, part->end - part->start);
	default:
		return false;
	}
}

/* One or several mappings whose length does not change. */
static struct failed_move fail_moving(const struct space *space, const struct space_call *call,
				      const struct remap *remap)
{
	const struct space_interval *interval;
	struct failed_move failed = nothing;
	uint64_t position = remap->source;
	struct range part, first;
	bool clears;

	if (!next_part(space, remap, position, &first, &interval) || first.start > position)
		return nothing; /* the start of the source must be mapped */
	if (call->result == -ENOMEM) {
		failed = fail_at(remap, &first, space->mapped.count < MAPPINGS_NEAR_LIMIT);
		failed.certain = first.end == source_end(remap) && space->mapped.count < MAPPINGS_NEAR_LIMIT;
		return failed;
	}
	while (next_part(space, remap, position, &part, &interval)) {
		position = part.end;
		if (refuses(space, call, remap, &interval->attributes, &part, &clears))
			return fail_at(remap, &part, clears);
	}
	/* The reason is unknown: a seal from before the recording, or a driver with its own get_unmapped_area(). */
	failed.certain = first.end == source_end(remap);
	return failed;
}

/* A seal in the rest of the source stops the move after the target was unmapped; the kernel checks the start of the
 * source and the target before that. */
static struct failed_move fail_at_sealed_tail(const struct space *space, const struct remap *remap)
{
	const struct range target = {remap->target, remap->target + remap->new_bytes};
	const struct range tail = {remap->source + remap->new_bytes, source_end(remap)};
	const struct space_interval *interval = space_find(space, remap->source);

	if (tail.start >= tail.end || (interval && interval->attributes.sealed) || is_sealed(space, &target) ||
	    !is_sealed(space, &tail))
		return nothing;
	return (struct failed_move){.cleared = target, .certain = true};
}

/* The kernel unmaps the target first, then the tail of the source. */
static struct failed_move fail_shortening(const struct space *space, const struct space_call *call,
					  const struct remap *remap)
{
	const struct range kept = {remap->source, remap->source + remap->new_bytes};
	const struct range tail = {kept.end, source_end(remap)};
	struct failed_move failed = {.cleared = target_of(remap, &kept), .certain = true};
	const struct space_interval *interval = space_find(space, remap->source);

	switch (call->result) {
	case -EPERM:
		return fail_at_sealed_tail(space, remap);
	case -EINVAL:
		if (!interval || !is_stuck_ring(space, &interval->attributes, remap->new_bytes))
			return nothing;
		failed.shortened = tail;
		return failed;
	case -ENOMEM:
		failed.shortened = tail;
		failed.certain = space->mapped.count < MAPPINGS_NEAR_LIMIT;
		return failed.certain ? failed : (struct failed_move){0};
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

/* Huge pages cannot grow or move by a part of a page: the kernel refuses at once. */
static bool is_wrong_for_huge_pages(const struct remap *remap, const struct space_interval *source)
{
	uint64_t mask = (1ULL << source->attributes.hugetlb) - 1;

	return source->attributes.hugetlb &&
	       (((remap->source | remap->target) & mask) || remap->new_bytes > remap->old_bytes);
}

/* Before 6.17 the kernel unmaps the target, then cuts off the tail, and only then checks whether the source may be
 * moved. The source is always one mapping. */
static struct failed_move fail_in_old_order(const struct space *space, const struct space_call *call,
					    const struct remap *remap)
{
	struct failed_move failed = {.cleared = {remap->target, remap->target + remap->new_bytes}, .certain = true};
	const struct space_interval *source = space_find(space, remap->source);

	if (call->result == -ENOMEM && space->mapped.count >= MAPPINGS_NEAR_LIMIT)
		return (struct failed_move){0};
	if (call->result == -EFAULT && !source && space->rules.mremap_finds_source_first)
		return nothing;
	if (call->result == -EINVAL && source && is_wrong_for_huge_pages(remap, source))
		return nothing;
	if (call->result == -EPERM)
		return space->rules.mremap_sees_sealed_tail_late ? fail_at_sealed_tail(space, remap) : nothing;
	if (remap->old_bytes > remap->new_bytes)
		failed.shortened = (struct range){remap->source + remap->new_bytes, source_end(remap)};
	return failed;
}

/* Arguments that the kernel rejects before it searches for mappings. */
static bool invalid(const struct space_call *call, const struct remap *remap)
{
	uint64_t flags = call->arguments[3];

	return (flags & ~(uint64_t)FLAGS) || !(flags & MREMAP_MAYMOVE) ||
	       (remap->keep_source && remap->old_bytes != remap->new_bytes) ||
	       (remap->source < remap->target + remap->new_bytes && remap->target < source_end(remap));
}

bool space_mremap_may_change(const struct space_call *call, const struct remap *remap)
{
	return remap->fixed && !invalid(call, remap);
}

struct failed_move space_mremap_failed(const struct space *space, const struct space_call *call,
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
