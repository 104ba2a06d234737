/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The clock of a recording, CLOCK_MONOTONIC, and a time budget for expensive work. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <time.h>

uint64_t clock_read_ns(clockid_t clock);
uint64_t clock_now_ns(void);	/* CLOCK_MONOTONIC */
uint64_t clock_thread_ns(void); /* CPU time of the calling thread */

/* Do perf events use the same CLOCK_MONOTONIC? In a time namespace the two may differ. */
bool clock_is_of_events(void);

/* Convert a time of /proc, in clock ticks since boot, to CLOCK_MONOTONIC. The result is the beginning of the tick. */
uint64_t clock_from_ticks(uint64_t ticks);

/* Of an interval between two readings: the least one, a share of the elapsed time, and a multiple of their cost. */
uint64_t longest_ns(uint64_t least_ns, uint64_t age_ns, uint64_t cost_ns);

/* A budget for expensive work that may take a given share of the elapsed time. Zero-initialise one with a full reserve.
 * Subtract from it what the work has taken. Pure. */
struct time_budget {
	int64_t left_ns; /* negative: more was spent than the share allows */
	uint64_t at_ns;
};

/* May the work begin at `now_ns`, if it may take 1/`share` of the time, and save up `saved_ns` of it? */
bool time_budget_allows(struct time_budget *budget, uint64_t now_ns, unsigned share, int64_t saved_ns);
