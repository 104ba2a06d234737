/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The few ways in which the intervals of a space change. Each keeps the counts, merges equal neighbours and leaves a
 * valid space. */
#ifndef MODEL_SPACE_EDIT_H
#define MODEL_SPACE_EDIT_H

#include "model/space-state.h"

/* Attributes of the same mapping `bytes` further up. */
struct space_attributes space_edit_advance(const struct space_attributes *attributes, uint64_t bytes);

/* Whether two descriptions of one page agree in what the kernel compares. */
bool space_edit_agree(const struct space_attributes *left, const struct space_attributes *right);

/* Whether two mappings are of one kind, with the same page of the same file. */
bool space_edit_same(const struct space_attributes *left, const struct space_attributes *right);

/* Whether the kernel has the two as one mapping: they may still differ in who made them. */
bool space_edit_continues(const struct space_interval *left, const struct space_interval *right);

/* Whether two intervals should be one. */
bool space_edit_mergeable(const struct space_interval *left, const struct space_interval *right);

static inline bool space_edit_accessible(const struct space_attributes *attributes)
{
	return attributes->protection != 0;
}

/* The commit of a mapping that is what it is from its birth on. */
static inline uint32_t space_edit_commit(const struct space_attributes *attributes)
{
	return space_edit_accessible(attributes) ? COMMIT_WITH_BIRTH : COMMIT_NONE;
}

/* Merge the neighbours that meet at `address`, if they are equal. */
void space_edit_merge_at(struct space *space, uint64_t address);

/* Put `interval`, whose range must be free. Nobody is told. False: out of memory. */
bool space_edit_put(struct space *space, const struct space_interval *interval);

/* The same, told as born. */
bool space_edit_bear(struct space *space, const struct space_interval *interval);

/* Take [start, end) out and append the pieces to `taken`. Nobody is told. */
bool space_edit_take(struct space *space, uint64_t start, uint64_t end, pieces *taken);

/* Take [start, end) out and tell it as released by `by`. */
bool space_edit_release(struct space *space, uint64_t start, uint64_t end, const struct space_call *by);

void space_edit_tell_released(struct space *space, const struct space_interval *interval, const struct space_call *by);

/* Change every interval of [start, end); `change` gets pieces that lie within it. */
bool space_edit_change(struct space *space, uint64_t start, uint64_t end,
		       void (*change)(void *context, struct space_interval *interval), void *context);

/* A call has settled these pages: they are known from here, and snapshots read before do not count. */
bool space_edit_touch_some(struct space *space, uint64_t start, uint64_t end);
static inline bool space_edit_touch(struct space *space, uint64_t start, uint64_t end)
{
	/* Fast path: long after a snapshot nothing is left to resolve. Changes by a call in flight must be noted for
	   the next snapshot. */
	return !(space->returned_ns | space->unknown.count | space->doubts.count | space->found.differing.count |
		 space->found.unsaid.count | space->finding.differing.count | space->finding.unsaid.count) ||
	       space_edit_touch_some(space, start, end);
}

#endif
