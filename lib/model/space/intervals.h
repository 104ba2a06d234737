/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* An ordered map of disjoint address ranges. It neither merges ranges nor counts bytes. Chunks hold some dozens of
 * ranges each, and a sorted array holds the chunks, so that a change moves a few cache lines. */
#pragma once

#include "base/vector.h"
#include "model/space/space.h"

struct interval_node {
	struct space_interval interval;
	union {
		uint64_t time_ns; /* for the owner of the map; unused in a space's `mapped` */
		struct interval_node *next_spare;
	};
};

/* A range, or a chunk of them. */
struct interval_slot {
	uint64_t start;
	union {
		struct interval_node *node;
		struct interval_chunk *chunk;
	};
};

/* An all-zero map is empty. */
struct intervals {
	size_t count;
	VECTOR(struct interval_slot) chunks; /* ascending, none empty */
	VECTOR(struct interval_node *) blocks; /* of nodes, freed together: a fork copies thousands */
	struct interval_node *spare;
	/* Place of the last lookup or insertion, or just before the last removed range: the next lookup is usually
	 * nearby. */
	size_t found;
};

void intervals_deinit(struct intervals *intervals);

/* The lowest range that ends after `address`; NULL: none. The node stays valid until it is removed. */
struct interval_node *intervals_next(const struct intervals *intervals, uint64_t address);

/* Iterate over a map that does not change: `for (size_t place = 0; (node = intervals_walk(intervals, &place));)`. */
struct interval_node *intervals_walk(const struct intervals *intervals, size_t *place);

/* The lowest range that overlaps [start, end); NULL: none. */
static inline struct interval_node *intervals_within(const struct intervals *intervals, uint64_t start, uint64_t end)
{
	struct interval_node *node = intervals->count && start < end ? intervals_next(intervals, start) : NULL;

	return node && node->interval.start < end ? node : NULL;
}

/* Iterate over what lies in [start, end), part by part: `for (uint64_t position = start; (node =
 * intervals_next_part(intervals, &position, end, &part));)`. `part` is a copy of the node's range cut to [start, end),
 * with the attributes of the complete range. The loop may change the map up to the end of the part. */
static inline struct interval_node *intervals_next_part(const struct intervals *intervals, uint64_t *position,
							uint64_t end, struct space_interval *part_ret)
{
	struct interval_node *node = intervals_within(intervals, *position, end);

	if (!node)
		return NULL;
	*part_ret = node->interval;
	part_ret->start = larger_of(part_ret->start, *position);
	part_ret->end = smaller_of(part_ret->end, end);
	*position = part_ret->end;
	return node;
}

/* The range at `position`; NULL: a gap. *stop_ret: where that range or gap ends, at most `end`. */
static inline struct interval_node *intervals_at(const struct intervals *intervals, uint64_t position, uint64_t end,
						 uint64_t *stop_ret)
{
	struct interval_node *node = intervals_within(intervals, position, end);

	*stop_ret = end;
	if (node && node->interval.start > position) {
		*stop_ret = node->interval.start;
		return NULL;
	}
	if (node && node->interval.end < end)
		*stop_ret = node->interval.end;
	return node;
}

/* The highest range that starts below `address`; NULL: none. */
struct interval_node *intervals_before(const struct intervals *intervals, uint64_t address);

/* Whether one range ends at `address` and another one starts there. */
bool intervals_meet(const struct intervals *intervals, uint64_t address, struct interval_node **left_ret,
		    struct interval_node **right_ret);

/* Insert a copy; NULL: out of memory. It may overlap only a range whose upper end the caller is about to cut off. */
struct interval_node *intervals_insert(struct intervals *intervals, const struct space_interval *interval,
				       uint64_t time_ns);

/* Remove the range that starts at `start`, which must exist. */
void intervals_remove(struct intervals *intervals, uint64_t start);

/* Cut [start, end) out of all ranges. False: out of memory, because a cut in the middle of a range adds one. */
bool intervals_cut_some(struct intervals *intervals, uint64_t start, uint64_t end);

/* Fast path: most of a space's maps are empty, or lie above the range. */
static inline bool intervals_cut(struct intervals *intervals, uint64_t start, uint64_t end)
{
	return !intervals->count || end <= intervals->chunks.items[0].start ||
	       intervals_cut_some(intervals, start, end);
}
