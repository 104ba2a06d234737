/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Events in the order of their effects, for recordings with lock events (--exact-order): a call takes effect when its
 * thread takes the mmap_lock for the last time before it returns (for clone: the first time in the call, which copies the space). What
 * comes out bears that time. Calls without a lock event of their own keep the time of their exit.
 *
 * An event waits only while an earlier lock is open, that is, while it is not known which call took it; waiting is bounded in time
 * and in memory, and given up locks are counted.
 */
#ifndef ANALYSIS_EFFECT_ORDER_H
#define ANALYSIS_EFFECT_ORDER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "trace/event.h"

struct effect_order;

struct mmt_error *effect_order_create(struct effect_order **order_ret) MMT_MUST_CHECK;
void effect_order_destroy(struct effect_order *order);

/* The next event in time order; copied where it has to wait. Take everything with effect_order_next() before the next push. */
struct mmt_error *effect_order_push(struct effect_order *order, const struct event *event) MMT_MUST_CHECK;

/* No more events will come: nothing waits any longer. */
void effect_order_end(struct effect_order *order);

/* The next event whose place is certain; false: push more (or, after the end, there is none). Its pointers are valid until the
 * next call of any function here. Lock events themselves never come out. */
bool effect_order_next(struct effect_order *order, struct event *event_ret);

/* Locks that no call claimed in time, while others waited for them. */
uint64_t effect_order_given_up(const struct effect_order *order);

#endif
