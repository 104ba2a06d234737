// SPDX-License-Identifier: LGPL-2.1-or-later
/* What a failed move to a given place has changed: the kernel's checks in its order, with what the model knows. */
#include <errno.h>
#include <sys/mman.h>

#include "model/space-calls.h"
#include "model/space-mremap.h"

#ifndef MREMAP_DONTUNMAP
#define MREMAP_DONTUNMAP 4
#endif
#define FLAGS (MREMAP_MAYMOVE | MREMAP_FIXED | MREMAP_DONTUNMAP)

/* vm.max_map_count is 65,530 unless somebody changed it: with fewer mappings that limit is not what was met. */
#define MAPPINGS_NEAR_LIMIT 60000

static const struct failed_move nothing = {.certain = true};

static uint64_t source_end(const struct remap *remap)
{
	return remap->source + remap->old_bytes;
}

/* The part of the source from `position` that one mapping holds: false when there is none. */
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

/* The first part went wrong, with its target cleared or not. */
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

/* A file that chooses its own addresses may not be put where others are told to be: it is moved alone or not at all. */
static bool moves_alone(const struct space_attributes *attributes)
{
	return attributes->shm || attributes->zero;
}

/* Pieces of a ring whose context is gone, or belongs to the parent, cannot be moved. */
static bool is_dead_ring(const struct space *space, const struct space_attributes *attributes)
{
	if (!attributes->ring)
		return false;
	for (size_t i = 0; i < space->rings.count; i++) {
		if (space->rings.items[i].inode == attributes->inode)
			return false;
	}
	return true;
}

/* Whether the kernel refuses this part, and whether it has made room for it by then. */
static bool refuses(const struct space *space, const struct space_call *call, const struct remap *remap,
		    const struct space_attributes *attributes, const struct range *part, bool *clears_ret)
{
	const struct range target = target_of(remap, part);

	*clears_ret = false;
	switch (call->result) {
	case -EFAULT:
		return moves_alone(attributes);
	case -EPERM:
		return attributes->sealed || is_sealed(space, &target);
	case -EINVAL:
		if (remap->keep_source)
			return attributes->ring;
		*clears_ret = true;
		return is_dead_ring(space, attributes);
	default:
		return false;
	}
}

/* Several mappings, or one, of equal length before and after. */
static struct failed_move fail_moving(const struct space *space, const struct space_call *call,
				      const struct remap *remap)
{
	const struct space_interval *interval;
	struct failed_move failed = nothing;
	uint64_t position = remap->source;
	struct range part, first;
	bool clears;

	if (!next_part(space, remap, position, &first, &interval) || first.start > position)
		return nothing; /* nothing may be missing at the start */
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
	/* For a reason that nobody told: a seal from before the recording, a driver with addresses of its own. */
	failed.certain = first.end == source_end(remap);
	return failed;
}

/* A seal in the rest of the source stops the move after the target was unmapped; the start of the source and the target
 * are checked before. */
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

/* The tail goes after the target has been cleared. */
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
		if (!interval || !is_dead_ring(space, &interval->attributes))
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

/* Limits are looked at before there is room, the promise of memory after. */
static struct failed_move fail_growing(const struct space_call *call)
{
	return (struct failed_move){.certain = call->result != -ENOMEM};
}

/* A second view placed over its own source: the source is gone when it is looked for. */
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

/* Huge pages that are not moved by whole ones, or are to become more: refused at once. */
static bool is_wrong_for_huge_pages(const struct remap *remap, const struct space_interval *source)
{
	uint64_t mask = (1ULL << source->attributes.hugetlb) - 1;

	return source->attributes.hugetlb &&
	       (((remap->source | remap->target) & mask) || remap->new_bytes > remap->old_bytes);
}

/*
 * Before 6.17: room is made at the target, then the tail is cut off, and only then is it seen whether the source may be
 * moved; it is one mapping always.
 */
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

/* Arguments that the kernel refuses before it looks at any mapping. */
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
		return fail_growing(call);
	if (remap->old_bytes > remap->new_bytes)
		return fail_shortening(space, call, remap);
	return fail_moving(space, call, remap);
}
