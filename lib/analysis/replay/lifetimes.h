/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * When memory was mapped and when it was unmapped again, added up: for each account and thread a sparse matrix, step of
 * the allocation by step of the release. Steps begin short; whenever the recording has become longer than all of them,
 * or the matrices too large, their length doubles. So memory does not follow the length of the recording, and sums are
 * exact while times are as exact as that allows.
 */
#ifndef ANALYSIS_REPLAY_LIFETIMES_H
#define ANALYSIS_REPLAY_LIFETIMES_H

#include <stdbool.h>
#include <stdint.h>

#include "base/map.h"
#include "base/vector.h"

#define LIFETIME_STEPS_MAX (UINT16_MAX - 1)
#define LIFETIME_STEPS_MIN 16	      /* fewer are not made of them, however large the matrices */
#define LIFETIME_CELLS_MAX (1u << 18) /* of all matrices together, while there are more steps than that */
#define LIFETIME_RECENT_CELLS 4096
#define LIFETIME_NEVER_NS UINT64_MAX	 /* in place of the time of a release: still mapped */
#define LIFETIME_STILL_MAPPED UINT16_MAX /* in place of the step of a release */

struct lifetime_cell {
	uint32_t part; /* place in `parts` */
	uint16_t allocated_step, released_step;
	uint64_t bytes;
	uint64_t count; /* mappings whose last bytes these are */
};

/* What one thread mapped of one account. The sums at the end of the window are added by add_unfreed_sums() in groups.c.
 */
struct lifetime_part {
	uint32_t account, thread;
	uint64_t committed_bytes, committed_before_bytes, reserved_bytes;
	uint64_t resident_bytes, resident_before_bytes;
	bool resident_known; /* both */
};

/* Zero initialisation makes one that keeps nothing. */
struct lifetimes {
	uint32_t steps_max; /* 0: nothing is kept */
	uint64_t from_ns, step_ns;
	uint64_t latest_ns; /* of all times so far */
	VECTOR(struct lifetime_part) parts;
	VECTOR(struct lifetime_cell) cells;
	struct map part_numbers;      /* account << 32 | thread -> place in `parts` */
	struct id_table cells_by_key; /* ids: places in `cells`, by part, allocated_step and released_step */
	uint32_t recent_cells[LIFETIME_RECENT_CELLS]; /* places in `cells`, by hash; any other number: none */
};

/* `steps_max`: from LIFETIME_STEPS_MIN to LIFETIME_STEPS_MAX, or 0. */
void lifetimes_init(struct lifetimes *lifetimes, uint32_t steps_max, uint64_t from_ns);

void lifetimes_deinit(struct lifetimes *lifetimes);

/* NULL: out of memory. Valid until the next is asked for. */
struct lifetime_part *lifetimes_part(struct lifetimes *lifetimes, uint32_t account, uint32_t thread);

/* `bytes` of a mapping, and with them the last of `count` mappings. False: out of memory. */
bool lifetimes_add(struct lifetimes *lifetimes, uint32_t account, uint32_t thread, uint64_t allocated_ns,
		   uint64_t released_ns, uint64_t bytes, uint64_t count);

/* Extend the steps to this time. Call it before the first lifetimes_add() if the end is known. False: out of memory. */
bool lifetimes_reach(struct lifetimes *lifetimes, uint64_t time_ns);

/* How many there are. */
uint32_t lifetimes_steps(const struct lifetimes *lifetimes);

#endif
