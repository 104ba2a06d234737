/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Work that may take one part of so many of the time, with a little saved up. Pure. */
#ifndef CAPTURE_TIME_BUDGET_H
#define CAPTURE_TIME_BUDGET_H

#include <stdbool.h>
#include <stdint.h>

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
