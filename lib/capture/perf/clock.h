/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The clock of a recording, CLOCK_MONOTONIC, and a time budget for work that must stay rare. */
#ifndef CAPTURE_PERF_CLOCK_H
#define CAPTURE_PERF_CLOCK_H

#include <stdbool.h>
#include <stdint.h>

/* CLOCK_MONOTONIC, the clock of the recording. */
uint64_t clock_now_ns(void);

/* Whether that is the clock of the kernel's events too; in a time namespace it may be another one. */
bool clock_is_of_events(void);

/* The same of a time in /proc, in clock ticks since boot: the tick's beginning. */
uint64_t clock_from_ticks(uint64_t ticks);

/* How long this thread has run. */
uint64_t clock_thread_ns(void);

/* Work that may take one part of so many of the time, with a little saved up. Pure. */

#define TIME_BUDGET_SHARE 4
#define TIME_BUDGET_SAVED_NS_MAX 200000000LL

/* Zero initialisation makes one with everything saved. */
struct time_budget {
	int64_t left_ns; /* negative: spent in advance */
	uint64_t at_ns;
};

/* Whether the work may be done at `now_ns`, however long it takes: time_budget_spend() tells that afterwards. */
bool time_budget_allows(struct time_budget *budget, uint64_t now_ns);

void time_budget_spend(struct time_budget *budget, uint64_t spent_ns);

#endif
