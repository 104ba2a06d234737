// SPDX-License-Identifier: LGPL-2.1-or-later
#include "analysis/replay/effect-order.h"

#include <errno.h>
#include <sched.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/replay/lost-events.h"
#include "analysis/replay/process-totals.h"
#include "base/syscall-table.h"
#include "base/map.h"
#include "trace/format/event.h"
#include "trace/format/format.h"

/* Event queue of effect-order.c. It holds copies of events; an event can take the position of an earlier one. An event
 * that passes through an empty queue is not copied. */

struct queued {
	struct queued *previous, *next;
	struct queued *first_attached, *last_attached; /* events that move with this one; they are queued behind it */
	struct queued *next_attached;
	size_t bytes;
	bool open;    /* its position is not final: the queue holds back this event and all events behind it */
	bool passing; /* placeholder for the queue's `passing` */
	struct event event;
	uint64_t payload[]; /* target of the event's pointers */
};

/* An all-zero queue is empty. */
struct event_queue {
	struct queued *first, *last;
	struct queued *popped; /* event still in use by the caller of event_queue_pop() */
	struct event passing;  /* borrowed from the caller of event_queue_pass() until it is popped */
	bool is_passing;       /* `passing` is the only event in the queue */
	size_t bytes;
};

static void unlink_item(struct event_queue *queue, struct queued *item)
{
	*(item->previous ? &item->previous->next : &queue->first) = item->next;
	*(item->next ? &item->next->previous : &queue->last) = item->previous;
	item->previous = item->next = NULL;
}

/* `next` NULL: append. */
static void link_before(struct event_queue *queue, struct queued *item, struct queued *next)
{
	item->next = next;
	item->previous = next ? next->previous : queue->last;
	*(item->previous ? &item->previous->next : &queue->first) = item;
	*(next ? &next->previous : &queue->last) = item;
}

/* Remove and free an event. Events attached to it stay where they are. */
static void event_queue_remove(struct event_queue *queue, struct queued *item)
{
	unlink_item(queue, item);
	queue->bytes -= item->bytes;
	free(item);
}

static void event_queue_deinit(struct event_queue *queue)
{
	while (queue->first)
		event_queue_remove(queue, queue->first);
	free(queue->popped);
	*queue = (struct event_queue){0};
}

static bool is_call(const struct event *event)
{
	return event->kind == EVENT_CALL || event->kind == EVENT_CALL_ENTER || event->kind == EVENT_STACK_DUMP;
}

static const char *get_text(const struct event *event)
{
	switch (event->kind) {
	case EVENT_MAPPING:
	case EVENT_SNAPSHOT_LINE:
		return event->mapping.path;
	case EVENT_COMM:
	case EVENT_SNAPSHOT_BEGIN:
	case EVENT_SNAPSHOT_END:
		return event->comm.name;
	default:
		return NULL;
	}
}

static void copy_text(struct queued *item, const char *text)
{
	memcpy(item->payload, text, strlen(text) + 1);
	if (item->event.kind == EVENT_MAPPING || item->event.kind == EVENT_SNAPSHOT_LINE)
		item->event.mapping.path = (const char *)item->payload;
	else
		item->event.comm.name = (const char *)item->payload;
}

static void copy_stack(struct queued *item, const struct event_stack *stack)
{
	struct event_stack *copy = &item->event.call.stack;
	uint8_t *bytes = (uint8_t *)(item->payload + (stack->callchain ? stack->callchain_count : 0));

	if (stack->callchain) {
		memcpy(item->payload, stack->callchain, stack->callchain_count * sizeof(*stack->callchain));
		copy->callchain = item->payload;
	}
	if (stack->bytes) {
		memcpy(bytes, stack->bytes, stack->byte_count);
		copy->bytes = bytes;
	}
}

static void copy_runs(struct queued *item, const uint8_t *runs)
{
	memcpy(item->payload, runs, item->event.pages.run_count * RESIDENT_RUN_BYTES);
	item->event.pages.runs = (const uint8_t *)item->payload;
}

/* NULL: out of memory. */
static struct queued *copy_event(const struct event *event)
{
	const char *text = get_text(event);
	const struct event_stack *stack = &event->call.stack;
	size_t bytes = sizeof(struct queued);
	struct queued *item;

	if (text)
		bytes += strlen(text) + 1;
	if (is_call(event) && stack->callchain)
		bytes += stack->callchain_count * sizeof(*stack->callchain);
	if (is_call(event) && stack->bytes)
		bytes += stack->byte_count;
	if (event->kind == EVENT_RESIDENT_PAGES)
		bytes += event->pages.run_count * RESIDENT_RUN_BYTES;
	item = malloc(bytes);
	if (!item)
		return NULL;
	memset(item, 0, offsetof(struct queued, event));
	item->event = *event;
	item->bytes = bytes;
	if (text)
		copy_text(item, text);
	if (is_call(event))
		copy_stack(item, stack);
	if (event->kind == EVENT_RESIDENT_PAGES)
		copy_runs(item, event->pages.runs);
	return item;
}

static struct queued *insert(struct event_queue *queue, const struct event *event, struct queued *next)
{
	struct queued *item = copy_event(event);

	if (!item)
		return NULL;
	link_before(queue, item, next);
	queue->bytes += item->bytes;
	return item;
}

/* Append a copy. NULL: out of memory. */
static struct queued *event_queue_append(struct event_queue *queue, const struct event *event)
{
	return insert(queue, event, NULL);
}

/* Make `part` move along when another event takes the position of `whole`. */
static void event_queue_attach(struct queued *whole, struct queued *part)
{
	*(whole->last_attached ? &whole->last_attached->next_attached : &whole->first_attached) = part;
	whole->last_attached = part;
}

static void event_queue_move_to_end(struct event_queue *queue, struct queued *item, uint64_t time_ns)
{
	unlink_item(queue, item);
	link_before(queue, item, NULL);
	item->event.time_ns = time_ns;
	item->open = false;
}

static void gather_attached(struct event_queue *queue, struct queued *place)
{
	for (struct queued *part = place->first_attached; part; part = part->next_attached) {
		unlink_item(queue, part);
		link_before(queue, part, place);
		part->event.time_ns = place->event.time_ns;
	}
	place->first_attached = place->last_attached = NULL;
}

/* Move the events attached to `place` to its position and timestamp, then remove `place`. */
static void event_queue_take_place(struct event_queue *queue, struct queued *place)
{
	gather_attached(queue, place);
	event_queue_remove(queue, place);
}

/* Append the event. False: out of memory. */
static bool event_queue_pass(struct event_queue *queue, const struct event *event)
{
	if (queue->first)
		return event_queue_append(queue, event);
	queue->passing = *event;
	queue->is_passing = true;
	return true;
}

/* Add the events attached to `place`, then the call `event`, at the position and timestamp of `place`. */
static bool event_queue_pass_at(struct event_queue *queue, struct queued *place, const struct event *event)
{
	struct event moved = *event;
	bool is_first = place == queue->first;

	moved.time_ns = place->event.time_ns;
	moved.call.returned_ns = event->time_ns;
	gather_attached(queue, place);
	if (is_first) {
		queue->passing = moved;
		place->passing = true;
		place->open = false;
		return true;
	}
	if (!insert(queue, &moved, place))
		return false;
	event_queue_remove(queue, place);
	return true;
}

/* Pop the first event if its position is final; its pointers are valid until the next call. */
static bool event_queue_pop(struct event_queue *queue, struct event *event_ret)
{
	struct queued *item = queue->first;

	free(queue->popped);
	queue->popped = NULL;
	if (queue->is_passing) {
		*event_ret = queue->passing;
		queue->is_passing = false;
		return true;
	}
	if (!item || item->open)
		return false;
	unlink_item(queue, item);
	queue->bytes -= item->bytes;
	queue->popped = item;
	*event_ret = item->passing ? queue->passing : item->event;
	return true;
}

#define FAILED_NS_MAX 1000000000ULL
#define LOCKS_MAX 4 /* clone locks two spaces, the old one and then the new one; more are rare */

/* Calls in flight of one thread. */
struct begun {
	struct queued *locks[LOCKS_MAX]; /* locks still open, each of a different space, latest last */
	size_t lock_count;
	struct queued *entry; /* call recorded at its entry that has not acquired its lock yet */
	bool forked;	      /* a FORK is attached to the lock; the clone flags have not arrived yet */
	bool given_up;	      /* the wait for its lock timed out: a call that returns now is too late */
};

struct effect_order {
	struct event_queue queue;
	struct lost_events losses;
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
	struct begun *begun;

	if (!order)
		return;
	for (size_t i = 0; (begun = map_next_pointer(&order->threads, &i)) != NULL;)
		free(begun);
	map_deinit(&order->threads);
	lost_events_deinit(&order->losses);
	event_queue_deinit(&order->queue);
	free(order);
}

static struct begun *find_thread(const struct effect_order *order, int32_t tid)
{
	return map_get_pointer(&order->threads, (uint32_t)tid);
}

/* NULL: out of memory. */
static struct begun *need_thread(struct effect_order *order, int32_t tid)
{
	struct begun *begun = find_thread(order, tid);

	if (begun)
		return begun;
	begun = calloc(1, sizeof(*begun));
	if (begun && !map_put_pointer(&order->threads, (uint32_t)tid, begun)) {
		free(begun);
		return NULL;
	}
	return begun;
}

/* No recorded call acquired this lock. Events attached to it stay where they are. */
static void drop_lock(struct effect_order *order, struct begun *begun, size_t index)
{
	event_queue_remove(&order->queue, begun->locks[index]);
	begun->lock_count--;
	memmove(&begun->locks[index], &begun->locks[index + 1],
		(begun->lock_count - index) * sizeof(begun->locks[index]));
}

/* A fork takes effect at its lock: the child gets a copy of the parent's address space as it was then. */
static void resolve_fork(struct effect_order *order, struct begun *begun)
{
	if (begun->forked)
		event_queue_take_place(&order->queue, begun->locks[0]);
	begun->lock_count -= begun->forked;
	begun->forked = false;
}

/* The thread has completed all its calls in flight. */
static void finish_calls(struct effect_order *order, struct begun *begun)
{
	resolve_fork(order, begun);
	while (begun->lock_count)
		drop_lock(order, begun, begun->lock_count - 1);
	if (begun->entry)
		begun->entry->open = false;
	begun->entry = NULL;
	begun->given_up = false;
}

static void resolve_thread(struct effect_order *order, int32_t tid)
{
	struct begun *begun = find_thread(order, tid);

	if (begun)
		finish_calls(order, begun);
}

/* pid 0: all processes. Compare the PIDs of events, not TIDs: exec gives the calling thread the TID of the process. */
static void resolve_process(struct effect_order *order, int32_t pid)
{
	struct begun *begun;

	for (size_t i = 0; (begun = map_next_pointer(&order->threads, &i)) != NULL;) {
		const struct queued *any = begun->lock_count ? begun->locks[0] : begun->entry;

		if (any && (!pid || any->event.pid == pid))
			finish_calls(order, begun);
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

/* A lost call may own any open lock of that CPU. A thread that migrated to another CPU after it acquired its lock may
 * have lost its call there: see may_own(). */
static struct mmt_error *push_loss(struct effect_order *order, const struct event *event)
{
	struct begun *begun;

	if (!lost_events_note(&order->losses, event->cpu, event->sequence))
		return &error_no_memory;
	for (size_t i = 0; (begun = map_next_pointer(&order->threads, &i)) != NULL;) {
		bool lost = begun->entry && is_on(begun->entry, event->cpu);

		for (size_t j = 0; j < begun->lock_count; j++)
			lost |= is_on(begun->locks[j], event->cpu);
		if (lost)
			finish_calls(order, begun);
	}
	return push_plain(order, event);
}

static void forget_thread(struct effect_order *order, int32_t tid)
{
	struct begun *begun = find_thread(order, tid);

	if (!begun)
		return;
	finish_calls(order, begun);
	(void)map_remove(&order->threads, (uint32_t)tid);
	free(begun);
}

/* End the wait of the first queued event when it is too old or the queue too large: it alone holds up the others. */
static void give_up_late(struct effect_order *order, uint64_t now_ns)
{
	const struct queued *first = order->queue.first;
	struct begun *begun;

	while (first && first->open &&
	       (order->queue.bytes > EFFECT_ORDER_WAITING_BYTES ||
		(now_ns > first->event.time_ns && now_ns - first->event.time_ns > EFFECT_ORDER_WAIT_NS))) {
		begun = find_thread(order, first->event.tid);
		finish_calls(order, begun);
		begun->given_up = true;
		first = order->queue.first;
	}
}

static bool has_failed(const struct event *event)
{
	return call_is_error(event->call.result);
}

/*
 * Whether the thread's last lock belongs to this call. Every call that succeeds acquires the lock. A failed call may
 * return before it acquires any; then the lock belongs to an earlier call that was not recorded. Most failed calls
 * change nothing, so it does little harm to place one too early; but no call waits for seconds before it fails. Calls
 * may also have been lost on the CPU where this call returned.
 */
static bool may_own(const struct effect_order *order, const struct event *event, const struct queued *lock)
{
	if (lost_events_since(&order->losses, event->cpu, lock->event.sequence))
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
	resolve_fork(order, begun);
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
	resolve_fork(order, begun);
	if (!begun->lock_count || !may_own(order, event, begun->locks[begun->lock_count - 1])) {
		order->given_up += begun->given_up && !has_failed(event);
		finish_calls(order, begun);
		return push_plain(order, event);
	}
	lock = begun->locks[--begun->lock_count];
	finish_calls(order, begun);
	return event_queue_pass_at(&order->queue, lock, event) ? NULL : &error_no_memory;
}

/* The call takes effect when the thread acquires its next lock. */
static struct mmt_error *push_entry(struct effect_order *order, const struct event *event)
{
	struct begun *begun = need_thread(order, event->tid);

	if (!begun)
		return &error_no_memory;
	finish_calls(order, begun);
	begun->entry = event_queue_append(&order->queue, event);
	if (!begun->entry)
		return &error_no_memory;
	begun->entry->open = true;
	return NULL;
}

/* Events that belong to a call: the MMAP2 record and the large stack dump. */
static struct mmt_error *push_part(struct effect_order *order, const struct event *event)
{
	struct begun *begun = find_thread(order, event->tid);
	struct queued *part;

	if (begun && (begun->forked || begun->entry))
		finish_calls(order, begun);
	if (!begun || !begun->lock_count)
		return push_plain(order, event);
	part = event_queue_append(&order->queue, event);
	if (!part)
		return &error_no_memory;
	event_queue_attach(begun->locks[begun->lock_count - 1], part);
	return NULL;
}

/* The last lock but one is that of the copied space, the last one that of the copy. */
static struct mmt_error *push_fork(struct effect_order *order, const struct event *event)
{
	struct begun *begun = find_thread(order, event->tid);
	struct queued *part;

	if (!begun)
		return push_plain(order, event);
	resolve_fork(order, begun);
	if (event->task.pid == event->task.parent_pid || !begun->lock_count) {
		finish_calls(order, begun); /* a new thread: no space was copied */
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

/* Return whether the clone copied a space, and therefore whether the lock is its own. */
static struct mmt_error *push_new_task(struct effect_order *order, const struct event *event)
{
	struct begun *begun = find_thread(order, event->tid);
	struct queued *part;

	if (!begun || !begun->forked)
		return push_plain(order, event);
	if (event->new_task.clone_flags & CLONE_VM) {
		begun->forked = false;
		finish_calls(order, begun);
		return push_plain(order, event);
	}
	part = event_queue_append(&order->queue, event);
	if (!part)
		return &error_no_memory;
	event_queue_attach(begun->locks[0], part);
	finish_calls(order, begun);
	return NULL;
}

struct mmt_error *effect_order_push(struct effect_order *order, const struct event *event)
{
	give_up_late(order, event->time_ns);
	switch (event->kind) {
	case EVENT_LOCK:
		return push_lock(order, event);
	case EVENT_CALL:
		return event->call.at_entry ? push_entry(order, event) : push_call(order, event);
	case EVENT_MAPPING:
	case EVENT_STACK_DUMP:
		return push_part(order, event);
	case EVENT_FORK:
		return push_fork(order, event);
	case EVENT_NEW_TASK:
		return push_new_task(order, event);
	case EVENT_CALL_ENTER:
		resolve_thread(order, event->tid);
		break;
	case EVENT_COMM:
		if (event->comm.exec)
			resolve_process(order, event->pid);
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
	resolve_process(order, 0);
}

bool effect_order_next(struct effect_order *order, struct event *event_ret)
{
	return event_queue_pop(&order->queue, event_ret);
}

uint64_t effect_order_given_up(const struct effect_order *order)
{
	return order->given_up;
}
