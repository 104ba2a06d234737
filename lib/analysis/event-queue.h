/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Events that wait for their turn, for effect-order.c: a queue of copies in which an event can take the place of an
 * earlier one. The event that is just passing through is not copied when nothing stands before it.
 */
#ifndef ANALYSIS_EVENT_QUEUE_H
#define ANALYSIS_EVENT_QUEUE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "trace/event.h"

struct queued {
	struct queued *previous, *next;
	struct queued *first_attached, *last_attached; /* events that belong to this one, which stand behind it */
	struct queued *next_attached;
	size_t bytes;
	bool open;    /* its place is not certain: neither it nor what stands behind it may go out */
	bool passing; /* stands for the queue's `passing` */
	struct event event;
	uint64_t payload[]; /* what the event's pointers point to */
};

/* Zero initialisation makes an empty one. */
struct event_queue {
	struct queued *first, *last;
	struct queued *popped; /* what the caller of event_queue_pop() still looks at */
	struct event passing;  /* borrowed by whoever passed it, until it was popped */
	bool is_passing;       /* with nothing else in the queue */
	size_t bytes;
};

void event_queue_deinit(struct event_queue *queue);

/* A copy at the end; NULL: out of memory. */
struct queued *event_queue_append(struct event_queue *queue, const struct event *event);

/* `part` shall move along when something takes the place of `whole`. */
void event_queue_attach(struct queued *whole, struct queued *part);

/* Out and freed; what was attached to it stays where it is. */
void event_queue_remove(struct event_queue *queue, struct queued *item);

void event_queue_move_to_end(struct event_queue *queue, struct queued *item, uint64_t time_ns);

/* What is attached moves to the place, and the time, of `place`, which is removed. */
void event_queue_take_place(struct event_queue *queue, struct queued *place);

/* The event at the end. False: out of memory. */
bool event_queue_pass(struct event_queue *queue, const struct event *event);
/* Adds what is attached to `place`, then the call `event`, at the position and time of `place`. */
bool event_queue_pass_at(struct event_queue *queue, struct queued *place, const struct event *event);

/* The first, if it may go out; its pointers are valid until the next call. */
bool event_queue_pop(struct event_queue *queue, struct event *event_ret);

#endif
