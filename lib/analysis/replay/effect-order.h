/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Events in the order of their effects, for recordings with lock events (--exact-order): a call takes effect when its
 * thread takes the mmap_lock for the last time before it returns (for clone: when it locks the space that it copies).
 * What comes out bears that time. Calls without a lock event of their own keep the time of their exit.
 *
 * An event waits only while an earlier lock is open, that is, while it is not known which call took it; waiting is
 * bounded in time and in memory, and calls that came too late for their lock are counted.
 */
#ifndef ANALYSIS_REPLAY_EFFECT_ORDER_H
#define ANALYSIS_REPLAY_EFFECT_ORDER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/errors.h"
#include "trace/format/event.h"

/* Of the recording's clock: mmap(MAP_POPULATE) fills what it mapped after it has given the lock back, a gigabyte or two
   a second; a lock that no recorded call took holds others up for as long, which costs memory alone. */
#define EFFECT_ORDER_WAIT_NS 5000000000ULL
#define EFFECT_ORDER_WAITING_BYTES (256u << 20)

struct effect_order;

struct mmt_error *effect_order_create(struct effect_order **order_ret) MMT_MUST_CHECK;

void effect_order_destroy(struct effect_order *order);

/* The next event in time order; copied where it has to wait. Take everything with effect_order_next() before the next
 * push, and before the event's pointers become invalid. */
struct mmt_error *effect_order_push(struct effect_order *order, const struct event *event) MMT_MUST_CHECK;

/* No more events will come: nothing waits any longer. */
void effect_order_end(struct effect_order *order);

/* The next event whose place is certain; false: push more (or, after the end, there is none). Its pointers are valid
 * until the next call of any function here. Lock events themselves never come out. */
bool effect_order_next(struct effect_order *order, struct event *event_ret);

/* Calls that returned after their lock had been given up: they came out at their exit. */
uint64_t effect_order_given_up(const struct effect_order *order);

#endif
