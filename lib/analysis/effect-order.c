// SPDX-License-Identifier: LGPL-2.1-or-later
#include "analysis/effect-order.h"

#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/event-queue.h"
#include "analysis/losses.h"
#include "base/map.h"
#include "trace/calls.h"

#define ERRNO_MAX 4095
#define FAILED_NS_MAX 1000000000ULL
#define LOCKS_MAX 4 /* a thread has seldom two: clone locks the old space, then the new one */

/* What one thread has begun. */
struct begun {
	struct queued *locks[LOCKS_MAX]; /* open, each of another space, the latest last */
	size_t lock_count;
	struct queued *entry; /* a call told at its entry, which has not taken its lock yet */
	bool forked;	      /* a FORK is attached to the lock, the clone flags are still to come */
	bool given_up;	      /* its lock waited too long: a call that returns now comes too late */
};

struct effect_order {
	struct event_queue queue;
	struct losses losses;
	struct map threads; /* tid -> struct begun *, owned */
	uint64_t given_up;
};

struct mmt_error *effect_order_create(struct effect_order **order_ret)
{
	struct effect_order *order = calloc(1, sizeof(*order));

	if (!order)
		return &error_no_memory;
	*order_ret = order;
	return NULL;
}

void effect_order_destroy(struct effect_order *order)
{
	uint64_t tid, begun;

	if (!order)
		return;
	for (size_t i = 0; map_next(&order->threads, &i, &tid, &begun);)
		free((void *)(uintptr_t)begun);
	map_deinit(&order->threads);
	losses_deinit(&order->losses);
	event_queue_deinit(&order->queue);
	free(order);
}

static struct begun *find_thread(const struct effect_order *order, int32_t tid)
{
	const uint64_t *begun = map_get(&order->threads, (uint32_t)tid);

	return begun ? (struct begun *)(uintptr_t)*begun : NULL;
}

/* NULL: out of memory. */
static struct begun *need_thread(struct effect_order *order, int32_t tid)
{
	struct begun *begun = find_thread(order, tid);

	if (begun)
		return begun;
	begun = calloc(1, sizeof(*begun));
	if (begun && !map_put(&order->threads, (uint32_t)tid, (uintptr_t)begun)) {
		free(begun);
		return NULL;
	}
	return begun;
}

/* It belonged to nothing that is recorded: what was attached to it stays where it is. */
static void drop_lock(struct effect_order *order, struct begun *begun, size_t index)
{
	event_queue_remove(&order->queue, begun->locks[index]);
	begun->lock_count--;
	memmove(&begun->locks[index], &begun->locks[index + 1],
		(begun->lock_count - index) * sizeof(begun->locks[index]));
}

/* The child was copied from the space as it was at the lock. */
static void settle_fork(struct effect_order *order, struct begun *begun)
{
	if (begun->forked)
		event_queue_take_place(&order->queue, begun->locks[0]);
	begun->lock_count -= begun->forked;
	begun->forked = false;
}

/* The thread is past whatever it had begun. */
static void settle(struct effect_order *order, struct begun *begun)
{
	settle_fork(order, begun);
	while (begun->lock_count)
		drop_lock(order, begun, begun->lock_count - 1);
	if (begun->entry)
		begun->entry->open = false;
	begun->entry = NULL;
	begun->given_up = false;
}

static void settle_thread(struct effect_order *order, int32_t tid)
{
	struct begun *begun = find_thread(order, tid);

	if (begun)
		settle(order, begun);
}

/* pid 0: of every process. The numbers of threads may have changed since: exec gives its thread that of the process. */
static void settle_process(struct effect_order *order, int32_t pid)
{
	uint64_t tid, value;

	for (size_t i = 0; map_next(&order->threads, &i, &tid, &value);) {
		struct begun *begun = (struct begun *)(uintptr_t)value;
		const struct queued *any = begun->lock_count ? begun->locks[0] : begun->entry;

		if (any && (!pid || any->event.pid == pid))
			settle(order, begun);
	}
}

static struct mmt_error *push_plain(struct effect_order *order, const struct event *event)
{
	return event_queue_pass(&order->queue, event) ? NULL : &error_no_memory;
}

static bool is_on(const struct queued *item, int32_t cpu)
{
	return cpu < 0 || item->event.cpu < 0 || item->event.cpu == cpu;
}

/*
 * No lock of that CPU can be told any more from one whose call is lost. A thread that has been moved to another CPU
 * since it took its lock may have lost its call there: see may_own().
 */
static struct mmt_error *push_loss(struct effect_order *order, const struct event *event)
{
	uint64_t tid, value;

	if (!losses_note(&order->losses, event->cpu, event->sequence))
		return &error_no_memory;
	for (size_t i = 0; map_next(&order->threads, &i, &tid, &value);) {
		struct begun *begun = (struct begun *)(uintptr_t)value;
		bool lost = begun->entry && is_on(begun->entry, event->cpu);

		for (size_t j = 0; j < begun->lock_count; j++)
			lost |= is_on(begun->locks[j], event->cpu);
		if (lost)
			settle(order, begun);
	}
	return push_plain(order, event);
}

static void forget_thread(struct effect_order *order, int32_t tid)
{
	struct begun *begun = find_thread(order, tid);

	if (!begun)
		return;
	settle(order, begun);
	(void)map_remove(&order->threads, (uint32_t)tid);
	free(begun);
}

/* Only what stands first holds others up. */
static void give_up_late(struct effect_order *order, uint64_t now_ns)
{
	const struct queued *first = order->queue.first;
	struct begun *begun;

	while (first && first->open &&
	       (order->queue.bytes > EFFECT_ORDER_WAITING_BYTES ||
		(now_ns > first->event.time_ns && now_ns - first->event.time_ns > EFFECT_ORDER_WAIT_NS))) {
		begun = find_thread(order, first->event.tid);
		settle(order, begun);
		begun->given_up = true;
		first = order->queue.first;
	}
}

static bool has_failed(const struct event *event)
{
	return event->call.result < 0 && event->call.result >= -ERRNO_MAX;
}

/*
 * Is the thread's last lock this call's? Every call that succeeds takes it. One that failed may have done so before it
 * could take any, and the lock be that of an earlier call that is not recorded. That is mostly harmless, since such a
 * call changes nothing wherever it stands; but what waits for seconds before it fails does not exist. Where this call
 * ended others may have been lost since.
 */
static bool may_own(const struct effect_order *order, const struct event *event, const struct queued *lock)
{
	if (losses_since(&order->losses, event->cpu, lock->event.sequence))
		return false;
	if (!has_failed(event))
		return true;
	return event->call.result != -EBADF && event->time_ns - lock->event.time_ns <= FAILED_NS_MAX;
}

static struct mmt_error *push_lock(struct effect_order *order, const struct event *event)
{
	struct begun *begun = need_thread(order, event->tid);
	struct queued *lock;

	if (!begun)
		return &error_no_memory;
	settle_fork(order, begun);
	begun->given_up = false;
	if (begun->entry)
		event_queue_move_to_end(&order->queue, begun->entry, event->time_ns);
	begun->entry = NULL;
	for (size_t i = 0; i < begun->lock_count; i++) {
		if (begun->locks[i]->event.lock.space == event->lock.space || begun->lock_count == LOCKS_MAX) {
			drop_lock(order, begun, i);
			break;
		}
	}
	lock = event_queue_append(&order->queue, event);
	if (!lock)
		return &error_no_memory;
	lock->open = true;
	begun->locks[begun->lock_count++] = lock;
	return NULL;
}

static struct mmt_error *push_call(struct effect_order *order, const struct event *event)
{
	struct begun *begun = find_thread(order, event->tid);
	struct queued *lock;

	if (!begun)
		return push_plain(order, event);
	settle_fork(order, begun);
	if (!begun->lock_count || !may_own(order, event, begun->locks[begun->lock_count - 1])) {
		order->given_up += begun->given_up && !has_failed(event);
		settle(order, begun);
		return push_plain(order, event);
	}
	lock = begun->locks[--begun->lock_count];
	settle(order, begun);
	return event_queue_pass_at(&order->queue, lock, event) ? NULL : &error_no_memory;
}

/* Its effect comes with the lock that it will take. */
static struct mmt_error *push_entry(struct effect_order *order, const struct event *event)
{
	struct begun *begun = need_thread(order, event->tid);

	if (!begun)
		return &error_no_memory;
	settle(order, begun);
	begun->entry = event_queue_append(&order->queue, event);
	if (!begun->entry)
		return &error_no_memory;
	begun->entry->open = true;
	return NULL;
}

/* Of a call: a mapping that the kernel announces, the deep stack. */
static struct mmt_error *push_part(struct effect_order *order, const struct event *event)
{
	struct begun *begun = find_thread(order, event->tid);
	struct queued *part;

	if (begun && (begun->forked || begun->entry))
		settle(order, begun);
	if (!begun || !begun->lock_count)
		return push_plain(order, event);
	part = event_queue_append(&order->queue, event);
	if (!part)
		return &error_no_memory;
	event_queue_attach(begun->locks[begun->lock_count - 1], part);
	return NULL;
}

/* The last but one lock is that of the space that was copied, the last one that of the copy. */
static struct mmt_error *push_fork(struct effect_order *order, const struct event *event)
{
	struct begun *begun = find_thread(order, event->tid);
	struct queued *part;

	if (!begun)
		return push_plain(order, event);
	settle_fork(order, begun);
	if (event->task.pid == event->task.parent_pid || !begun->lock_count) {
		settle(order, begun); /* a new thread: nothing was copied */
		return push_plain(order, event);
	}
	if (begun->lock_count > 1)
		drop_lock(order, begun, begun->lock_count - 1);
	while (begun->lock_count > 1)
		drop_lock(order, begun, 0);
	part = event_queue_append(&order->queue, event);
	if (!part)
		return &error_no_memory;
	event_queue_attach(begun->locks[0], part);
	begun->forked = true;
	return NULL;
}

/* Tells whether the clone copied a space, and so whether the lock was its own. */
static struct mmt_error *push_new_task(struct effect_order *order, const struct event *event)
{
	struct begun *begun = find_thread(order, event->tid);
	struct queued *part;

	if (!begun || !begun->forked)
		return push_plain(order, event);
	if (event->new_task.clone_flags & CLONE_VM) {
		begun->forked = false;
		settle(order, begun);
		return push_plain(order, event);
	}
	part = event_queue_append(&order->queue, event);
	if (!part)
		return &error_no_memory;
	event_queue_attach(begun->locks[0], part);
	settle(order, begun);
	return NULL;
}

struct mmt_error *effect_order_push(struct effect_order *order, const struct event *event)
{
	give_up_late(order, event->time_ns);
	switch (event->kind) {
	case EVENT_LOCK:
		return push_lock(order, event);
	case EVENT_CALL:
		return call_describe(event->call.call)->at_entry ? push_entry(order, event) : push_call(order, event);
	case EVENT_MAPPING:
	case EVENT_STACK_DUMP:
		return push_part(order, event);
	case EVENT_FORK:
		return push_fork(order, event);
	case EVENT_NEW_TASK:
		return push_new_task(order, event);
	case EVENT_CALL_ENTER:
		settle_thread(order, event->tid);
		break;
	case EVENT_COMM:
		if (event->comm.exec)
			settle_process(order, event->pid);
		break;
	case EVENT_EXIT:
		forget_thread(order, event->task.tid);
		break;
	case EVENT_LOST:
		return push_loss(order, event);
	default:
		break;
	}
	return push_plain(order, event);
}

void effect_order_end(struct effect_order *order)
{
	settle_process(order, 0);
}

bool effect_order_next(struct effect_order *order, struct event *event_ret)
{
	return event_queue_pop(&order->queue, event_ret);
}

uint64_t effect_order_given_up(const struct effect_order *order)
{
	return order->given_up;
}
