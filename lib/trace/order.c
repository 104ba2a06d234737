// SPDX-License-Identifier: LGPL-2.1-or-later
#include "trace/order.h"

#include <stdlib.h>
#include <string.h>

#include "base/vector.h"

struct entry {
	uint64_t time_ns;
	uint64_t sequence; /* keeps equal times in order of arrival */
	uint64_t file_offset;
	uint8_t *record; /* owned */
	size_t size;
};

struct order {
	VECTOR(struct entry) heap; /* the oldest at [0] */
	uint8_t *popped;	   /* owned: what the caller of order_pop() still looks at */
	uint64_t sequence;
	uint64_t youngest_ns;	/* pushed so far */
	uint64_t last_round_ns; /* youngest when the round before ended */
	uint64_t release_ns;	/* everything up to here may go out */
	uint64_t popped_ns;
	uint64_t violations;
	size_t bytes;
	bool may_release;
	bool ended;
};

struct mmt_error *order_create(struct order **order_ret)
{
	struct order *order = calloc(1, sizeof(*order));

	if (!order)
		return &error_no_memory;
	*order_ret = order;
	return NULL;
}

void order_destroy(struct order *order)
{
	if (!order)
		return;
	for (size_t i = 0; i < order->heap.count; i++)
		free(order->heap.items[i].record);
	vector_deinit(&order->heap);
	free(order->popped);
	free(order);
}

static bool is_before(const struct entry *left, const struct entry *right)
{
	if (left->time_ns != right->time_ns)
		return left->time_ns < right->time_ns;
	return left->sequence < right->sequence;
}

static void sift_up(struct entry *heap, size_t index)
{
	struct entry entry = heap[index];

	while (index && is_before(&entry, &heap[(index - 1) / 2])) {
		heap[index] = heap[(index - 1) / 2];
		index = (index - 1) / 2;
	}
	heap[index] = entry;
}

static void sift_down(struct entry *heap, size_t count, size_t index)
{
	struct entry entry = heap[index];

	for (size_t child = 2 * index + 1; child < count; child = 2 * index + 1) {
		if (child + 1 < count && is_before(&heap[child + 1], &heap[child]))
			child++;
		if (!is_before(&heap[child], &entry))
			break;
		heap[index] = heap[child];
		index = child;
	}
	heap[index] = entry;
}

struct mmt_error *order_push(struct order *order, uint64_t time_ns, uint64_t file_offset, const void *record,
			     size_t size)
{
	struct entry entry = {
	    .time_ns = time_ns, .sequence = order->sequence, .file_offset = file_offset, .size = size};

	entry.record = malloc(size ? size : 1);
	if (!entry.record)
		return &error_no_memory;
	memcpy(entry.record, record, size);
	if (!vector_push(&order->heap, entry)) {
		free(entry.record);
		return &error_no_memory;
	}
	sift_up(order->heap.items, order->heap.count - 1);
	order->sequence++;
	order->bytes += size;
	if (time_ns > order->youngest_ns)
		order->youngest_ns = time_ns;
	return NULL;
}

void order_end_round(struct order *order)
{
	order->release_ns = order->last_round_ns;
	order->last_round_ns = order->youngest_ns;
	order->may_release = order->release_ns > 0;
}

void order_end(struct order *order)
{
	order->ended = true;
}

bool order_pop(struct order *order, struct order_item *item_ret)
{
	struct entry *heap = order->heap.items;
	struct entry first;

	free(order->popped);
	order->popped = NULL;
	if (order->heap.count == 0)
		return false;
	if (!order->ended && (!order->may_release || heap[0].time_ns > order->release_ns))
		return false;
	first = heap[0];
	heap[0] = heap[--order->heap.count];
	if (order->heap.count)
		sift_down(heap, order->heap.count, 0);
	order->bytes -= first.size;
	order->popped = first.record;
	if (first.time_ns < order->popped_ns)
		order->violations++;
	else
		order->popped_ns = first.time_ns;
	*item_ret = (struct order_item){
	    .time_ns = first.time_ns,
	    .file_offset = first.file_offset,
	    .record = first.record,
	    .size = first.size,
	};
	return true;
}

uint64_t order_violations(const struct order *order)
{
	return order->violations;
}

size_t order_bytes(const struct order *order)
{
	return order->bytes + order->heap.capacity * sizeof(struct entry);
}
