/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The clock of a recording, CLOCK_MONOTONIC, and a time budget for expensive work. */
#ifndef CAPTURE_PERF_CLOCK_H
#define CAPTURE_PERF_CLOCK_H

#include <stdbool.h>
#include <stdint.h>

/* CLOCK_MONOTONIC, the clock of the recording. */
uint64_t clock_now_ns(void);

/* Whether CLOCK_MONOTONIC is also the clock of perf events; in a time namespace it may differ. */
bool clock_is_of_events(void);

/* Convert a time in /proc, in clock ticks since boot, to this clock: the beginning of the tick. */
uint64_t clock_from_ticks(uint64_t ticks);

/* CPU time of this thread. */
uint64_t clock_thread_ns(void);

/* A budget for work that may take a given share of the time, with a small reserve. Pure. */

#define TIME_BUDGET_SHARE 4
#define TIME_BUDGET_SAVED_NS_MAX 200000000LL

/* Zero-initialise a budget with a full reserve. */
struct time_budget {
	int64_t left_ns; /* negative: spent in advance */
	uint64_t at_ns;
};

/* Whether the work may be done at `now_ns`, however long it takes. Report its duration to time_budget_spend()
 * afterwards. */
bool time_budget_allows(struct time_budget *budget, uint64_t now_ns);

void time_budget_spend(struct time_budget *budget, uint64_t spent_ns);

#endif
