/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The clock of a recording, CLOCK_MONOTONIC, and a time budget for expensive work. */
#ifndef CAPTURE_PERF_CLOCK_H
#define CAPTURE_PERF_CLOCK_H

#include <stdbool.h>
#include <stdint.h>
#include <time.h>

uint64_t clock_read_ns(clockid_t clock);

/* Reads CLOCK_MONOTONIC. */
uint64_t clock_now_ns(void);

/* Do perf events use the same CLOCK_MONOTONIC? In a time namespace the two may differ. */
bool clock_is_of_events(void);

/* Converts a time of /proc, in clock ticks since boot, to CLOCK_MONOTONIC. The result is the beginning of the tick. */
uint64_t clock_from_ticks(uint64_t ticks);

/* Returns the CPU time of the calling thread. */
uint64_t clock_thread_ns(void);

/* A budget for expensive work that may take a given share of the elapsed time, with a small reserve. Pure. */

#define TIME_BUDGET_SHARE 4

/* Zero-initialise a budget with a full reserve. */
struct time_budget {
	int64_t left_ns; /* negative: more was spent than the share allows */
	uint64_t at_ns;
};

/* May the work begin at `now_ns`? Report how long it took to time_budget_spend() afterwards. */
bool time_budget_allows(struct time_budget *budget, uint64_t now_ns);

void time_budget_spend(struct time_budget *budget, uint64_t spent_ns);

#endif
