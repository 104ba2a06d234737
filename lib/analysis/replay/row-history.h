/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Changes of rows on their way: the row of an allocation is known once its stack is told, which may be after other
 * calls. So that peaks are those of the calls' order, a change waits until all before it have their row.
 */
#ifndef ANALYSIS_REPLAY_ROW_HISTORY_H
#define ANALYSIS_REPLAY_ROW_HISTORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/vector.h"

/* So many changes wait for a stack at most. */
#define ROW_CHANGES_MAXIMUM 100000

struct row_change {
	uint64_t time_ns;
	uint64_t trend_ns;   /* when it counts in the trend: an existing allocation's bytes came with its call */
	uint64_t step_ns;    /* and in steps, which show each moment as it was then */
	uint64_t bytes;	     /* modulo 2^64: a decrease is a large number */
	uint64_t reserved;   /* the same of those that are PROT_NONE */
	uint64_t previous;   /* number of the change before it that waits for the same allocation; 0: none */
	uint32_t allocation; /* whose stack is not told; 0: the row is known */
	uint32_t row;
};

/* Zero initialisation makes an empty one. */
struct row_changes {
	VECTOR(struct row_change) items; /* from old to new */
	size_t first;			 /* those before it are done */
	uint64_t done;			 /* how many were removed from `items` */
};

void row_changes_deinit(struct row_changes *changes);

/* The oldest, valid until the next one is added; NULL: none. */
const struct row_change *row_changes_first(const struct row_changes *changes);

void row_changes_remove_first(struct row_changes *changes);

/* The number of the new one, from 1; 0: out of memory. */
uint64_t row_changes_add(struct row_changes *changes, const struct row_change *change);

/* An allocation's row is known: `last` is the number of its last change. */
void row_changes_resolve(struct row_changes *changes, uint64_t last, uint32_t row);

static inline size_t row_changes_count(const struct row_changes *changes)
{
	return changes->items.count - changes->first;
}

/* Of a call whose stack is known at once there is no other change. False: there are others, or none. */
static inline bool row_changes_take_only(struct row_changes *changes, struct row_change *change_ret)
{
	if (row_changes_count(changes) != 1)
		return false;
	*change_ret = changes->items.items[changes->first];
	changes->done += changes->items.count;
	changes->items.count = changes->first = 0;
	return true;
}

/* How the unfreed bytes of rows develop in equal steps of time: only where something changed. */

struct row_step {
	uint32_t step;
	uint64_t change; /* modulo 2^64: a decrease is a large number */
};

struct row_steps {
	VECTOR(struct row_step) items; /* ascending, one of each step */
};

/* By row number. Zero initialisation makes an empty one. */
struct steps_of_rows {
	VECTOR(struct row_steps) rows;
};

void steps_of_rows_deinit(struct steps_of_rows *steps);

/* False: out of memory. */
bool steps_of_rows_add(struct steps_of_rows *steps, uint32_t row, uint32_t step, uint64_t bytes);

/* The bytes before each of the moments step 1, 2 ...; the last of them after everything. */
void steps_of_rows_get(const struct steps_of_rows *steps, uint32_t row, uint64_t *bytes_ret, size_t count);

#endif
