// SPDX-License-Identifier: LGPL-2.1-or-later
#include "analysis/event-queue.h"

#include <stdlib.h>
#include <string.h>

void event_queue_deinit(struct event_queue *queue)
{
	while (queue->first)
		event_queue_remove(queue, queue->first);
	free(queue->popped);
	*queue = (struct event_queue){0};
}

static void unlink_item(struct event_queue *queue, struct queued *item)
{
	*(item->previous ? &item->previous->next : &queue->first) = item->next;
	*(item->next ? &item->next->previous : &queue->last) = item->previous;
	item->previous = item->next = NULL;
}

/* `next` NULL: at the end. */
static void link_before(struct event_queue *queue, struct queued *item, struct queued *next)
{
	item->next = next;
	item->previous = next ? next->previous : queue->last;
	*(item->previous ? &item->previous->next : &queue->first) = item;
	*(next ? &next->previous : &queue->last) = item;
}

void event_queue_remove(struct event_queue *queue, struct queued *item)
{
	unlink_item(queue, item);
	queue->bytes -= item->bytes;
	free(item);
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

struct queued *event_queue_append(struct event_queue *queue, const struct event *event)
{
	return insert(queue, event, NULL);
}

void event_queue_attach(struct queued *whole, struct queued *part)
{
	*(whole->last_attached ? &whole->last_attached->next_attached : &whole->first_attached) = part;
	whole->last_attached = part;
}

void event_queue_move_to_end(struct event_queue *queue, struct queued *item, uint64_t time_ns)
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

void event_queue_take_place(struct event_queue *queue, struct queued *place)
{
	gather_attached(queue, place);
	event_queue_remove(queue, place);
}

bool event_queue_pass(struct event_queue *queue, const struct event *event)
{
	if (queue->first)
		return event_queue_append(queue, event);
	queue->passing = *event;
	queue->is_passing = true;
	return true;
}

bool event_queue_pass_at(struct event_queue *queue, struct queued *place, const struct event *event)
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

bool event_queue_pop(struct event_queue *queue, struct event *event_ret)
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
