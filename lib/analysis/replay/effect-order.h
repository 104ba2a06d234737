/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Orders events by their effects, for recordings with lock events (--exact-order). A call takes effect when its thread
 * acquires the mmap_lock for the last time before the call returns (for clone: when it locks the space that it copies).
 * The reordered event carries that timestamp. Calls without a lock event of their own keep the timestamp of their exit.
 *
 * An event waits only while an earlier lock is open, that is, while its call is unknown. Time and memory limit the
 * wait; calls that return after the wait are counted.
 */
#ifndef ANALYSIS_REPLAY_EFFECT_ORDER_H
#define ANALYSIS_REPLAY_EFFECT_ORDER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/errors.h"
#include "trace/format/event.h"

/* On the recording's clock. mmap(MAP_POPULATE) faults in its pages after it releases the lock, at one or two GB/s. A
 * lock that no recorded call acquired holds up other events for this long, which costs only memory. */
#define EFFECT_ORDER_WAIT_NS 5000000000ULL
#define EFFECT_ORDER_WAITING_BYTES (256u << 20)

struct effect_order;

struct mmt_error *effect_order_create(struct effect_order **order_ret) MMT_MUST_CHECK;

void effect_order_destroy(struct effect_order *order);

/* Push the next event in time order; the queue copies it if it has to wait. Call effect_order_next() until it returns
 * false before the next push, and before the event's pointers become invalid. */
struct mmt_error *effect_order_push(struct effect_order *order, const struct event *event) MMT_MUST_CHECK;

/* Call this after the last event: no event waits any longer. */
void effect_order_end(struct effect_order *order);

/* Get the next event whose position is final. False: push more events (after the end: there are none). Its pointers are
 * valid until the next call of any function here. Lock events are not returned. */
bool effect_order_next(struct effect_order *order, struct event *event_ret);

/* The number of calls that returned after the queue stopped waiting for them; they are ordered by their exit. */
uint64_t effect_order_given_up(const struct effect_order *order);

#endif
