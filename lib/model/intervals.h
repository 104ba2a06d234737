/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* An ordered map of disjoint address ranges, a treap: every operation costs O(log n). It neither merges nor counts
 * bytes. */
#ifndef MODEL_INTERVALS_H
#define MODEL_INTERVALS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/vector.h"
#include "model/space.h"

struct interval_node {
	struct space_interval interval;
	uint64_t time_ns; /* the owner's: mapped intervals have none */
	struct interval_node *left, *right;
	uint32_t priority;
};

/* Zero initialisation makes an empty one. */
struct intervals {
	struct interval_node *root;
	size_t count;
	uint32_t random;
};

void intervals_deinit(struct intervals *intervals);

/* The lowest range that ends after `address`; NULL: none. The node stays valid until it is removed. */
struct interval_node *intervals_next(const struct intervals *intervals, uint64_t address);

/* The lowest range that has an address of [start, end); NULL: none. */
struct interval_node *intervals_within(const struct intervals *intervals, uint64_t start, uint64_t end);

/* The highest range that starts below `address`; NULL: none. */
struct interval_node *intervals_before(const struct intervals *intervals, uint64_t address);

/* Insert a copy, which must overlap no other; NULL: out of memory. */
struct interval_node *intervals_insert(struct intervals *intervals, const struct space_interval *interval,
				       uint64_t time_ns);

/* Remove the range that starts at `start`; there must be one. */
void intervals_remove(struct intervals *intervals, uint64_t start);

/* Cut [start, end) out of every range; false when out of memory (a cut in the middle makes one more range). */
bool intervals_cut(struct intervals *intervals, uint64_t start, uint64_t end);

#endif
