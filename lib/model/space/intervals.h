/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * An ordered map of disjoint address ranges. It neither merges nor counts bytes. Ranges stand in chunks of some dozens,
 * chunks in a directory: finding is two searches in sorted arrays, and a change moves a few cache lines. The directory
 * itself moves when a chunk is split, once in dozens of changes: 16 bytes for each chunk.
 */
#ifndef MODEL_SPACE_INTERVALS_H
#define MODEL_SPACE_INTERVALS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/vector.h"
#include "model/space/space.h"

struct interval_node {
	struct space_interval interval;
	union {
		uint64_t time_ns;		  /* the owner's: mapped intervals have none */
		struct interval_node *next_spare; /* of one that was removed */
	};
};

struct interval_chunk;
struct interval_slab;

/* Zero initialisation makes an empty one. */
struct intervals {
	size_t count;
	struct interval_chunk **chunks; /* ascending, none empty */
	uint64_t *starts;		/* of their first ranges */
	size_t chunk_count, chunk_capacity;
	struct interval_slab *slabs; /* which all nodes lie in */
	struct interval_node *spare; /* those that are not in use */
	size_t found; /* place where something was found last, or before what was removed: mostly the next is looked for
			 there too; one number, which is read at once */
};

void intervals_deinit(struct intervals *intervals);

/* The lowest range that ends after `address`; NULL: none. The node stays valid until it is removed. */
struct interval_node *intervals_next(const struct intervals *intervals, uint64_t address);

/* The lowest range that has an address of [start, end); NULL: none. */
static inline struct interval_node *intervals_within(const struct intervals *intervals, uint64_t start, uint64_t end)
{
	struct interval_node *node = intervals->count && start < end ? intervals_next(intervals, start) : NULL;

	return node && node->interval.start < end ? node : NULL;
}

/* For a search that comes: bring what it will look at into the processor's caches, first the place and, once that is
 * there, the range. */
void intervals_fetch_place(const struct intervals *intervals, uint64_t address);
void intervals_fetch(const struct intervals *intervals, uint64_t address);

/* The highest range that starts below `address`; NULL: none. */
struct interval_node *intervals_before(const struct intervals *intervals, uint64_t address);

/* Whether one range ends at `address` and another starts there. */
bool intervals_meet(const struct intervals *intervals, uint64_t address, struct interval_node **left_ret,
		    struct interval_node **right_ret);

/* Insert a copy, which must overlap no other but one that it is about to take the upper end of; NULL: out of memory. */
struct interval_node *intervals_insert(struct intervals *intervals, const struct space_interval *interval,
				       uint64_t time_ns);

/* The same; true in *met_ret: there is a range that ends where it starts, or one that starts where it ends. */
struct interval_node *intervals_insert_beside(struct intervals *intervals, const struct space_interval *interval,
					      bool *met_ret);

/* Remove the range that starts at `start`; there must be one. Its node is used again by the next that is inserted. */
void intervals_remove(struct intervals *intervals, uint64_t start);

/* Cut [start, end) out of every range; false when out of memory (a cut in the middle makes one more range). */
bool intervals_cut_some(struct intervals *intervals, uint64_t start, uint64_t end);

/* Of the maps that a space keeps most are empty, or lie above. */
static inline bool intervals_cut(struct intervals *intervals, uint64_t start, uint64_t end)
{
	return !intervals->count || end <= intervals->starts[0] || intervals_cut_some(intervals, start, end);
}

#endif
