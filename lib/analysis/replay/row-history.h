/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Pending changes of rows. The row of an allocation is known with its stack, which may arrive after other calls. A
 * change waits until all changes before it have their row, so that peaks follow the order of the calls. */
#ifndef ANALYSIS_REPLAY_ROW_HISTORY_H
#define ANALYSIS_REPLAY_ROW_HISTORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/vector.h"

/* The maximum number of pending changes. */
#define ROW_CHANGES_MAXIMUM 100000

struct row_change {
	uint64_t time_ns;
	uint64_t trend_ns;   /* time in the trend: bytes of an existing allocation count from its call */
	uint64_t step_ns;    /* time in the steps, which show each timestamp's actual state */
	uint64_t bytes;	     /* modulo 2^64: a decrease is a large number */
	uint64_t reserved;   /* change of the PROT_NONE bytes */
	uint64_t previous;   /* number of the allocation's previous pending change; 0: none */
	uint32_t allocation; /* allocation whose stack is not known yet; 0: the row is known */
	uint32_t row;
};

/* An all-zero queue is empty. */
struct row_changes {
	VECTOR(struct row_change) items; /* oldest first */
	size_t first;			 /* items before this index are applied */
	uint64_t done;			 /* number of changes removed from `items` */
};

void row_changes_deinit(struct row_changes *changes);

/* The oldest change, valid until the next one is added; NULL: none. */
const struct row_change *row_changes_first(const struct row_changes *changes);

void row_changes_remove_first(struct row_changes *changes);

/* Return the number of the new change, from 1; 0: out of memory. */
uint64_t row_changes_add(struct row_changes *changes, const struct row_change *change);

/* Set the row of an allocation; `last` is the number of its last change. */
void row_changes_resolve(struct row_changes *changes, uint64_t last, uint32_t row);

static inline size_t row_changes_count(const struct row_changes *changes)
{
	return changes->items.count - changes->first;
}

/* Fast path for a call with a known stack, which has only one change. False: it has others, or none. */
static inline bool row_changes_take_only(struct row_changes *changes, struct row_change *change_ret)
{
	if (row_changes_count(changes) != 1)
		return false;
	*change_ret = changes->items.items[changes->first];
	changes->done += changes->items.count;
	changes->items.count = changes->first = 0;
	return true;
}

/* Unfreed bytes of rows over time, in equal steps; steps without a change take no memory. */

struct row_step {
	uint32_t step;
	uint64_t change; /* modulo 2^64: a decrease is a large number */
};

struct row_steps {
	VECTOR(struct row_step) items; /* ascending, one entry per step */
};

/* By row number. An all-zero value is empty. */
struct steps_of_rows {
	VECTOR(struct row_steps) rows;
};

void steps_of_rows_deinit(struct steps_of_rows *steps);

/* False: out of memory. */
bool steps_of_rows_add(struct steps_of_rows *steps, uint32_t row, uint32_t step, uint64_t bytes);

/* The bytes at the start of steps 1, 2 ...; the last value is the final state. */
void steps_of_rows_get(const struct steps_of_rows *steps, uint32_t row, uint64_t *bytes_ret, size_t count);

#endif
