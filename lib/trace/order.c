// SPDX-License-Identifier: LGPL-2.1-or-later
#include "trace/order.h"

#include <stdlib.h>
#include <string.h>

#include "base/vector.h"

struct order {
	/* From `first` on: may go out up to `releasable`, then the rest of what was sorted, then what came since. */
	VECTOR(struct order_item) items;
	VECTOR(struct order_item) merged; /* where the next merge goes */
	VECTOR(size_t) runs;		  /* where they begin; at last, where they end */
	size_t first, releasable;
	size_t round_start;	/* the first that was pushed in this round */
	uint64_t youngest_ns;	/* pushed in this round */
	uint64_t last_round_ns; /* the youngest of the rounds before */
	uint64_t taken_ns;
	uint64_t violations;
	size_t bytes;
	bool has_rounds;
};

struct mmt_error *order_create(struct order **order_ret)
{
	struct order *order = calloc(1, sizeof(*order));

	if (!order)
		return &error_no_memory;
	*order_ret = order;
	return NULL;
}

/* One record of the block is no longer held. */
static void let_go(struct record_block *block, struct record_block **done)
{
	if (--block->pending || !block->left)
		return;
	block->next = *done;
	*done = block;
}

void order_destroy(struct order *order, struct record_blocks *blocks)
{
	struct record_block *done = NULL;

	if (!order)
		return;
	for (size_t i = order->first; i < order->items.count; i++)
		let_go(order->items.items[i].block, &done);
	if (done)
		record_blocks_give_back(blocks, done);
	vector_deinit(&order->items);
	vector_deinit(&order->merged);
	vector_deinit(&order->runs);
	free(order);
}

/* Ascending runs of what is held before place `count`. */
static bool find_runs(struct order *order, size_t count)
{
	const struct order_item *items = order->items.items;

	order->runs.count = 0;
	if (!vector_push(&order->runs, order->first))
		return false;
	for (size_t i = order->first + 1; i < count; i++) {
		if (items[i].time_ns < items[i - 1].time_ns && !vector_push(&order->runs, i))
			return false;
	}
	return vector_push(&order->runs, count);
}

/* [start, middle) and [middle, end) of `from` into the same places of `to`; of equal times the left comes first. */
static void merge_runs(const struct order_item *from, struct order_item *to, size_t start, size_t middle, size_t end)
{
	size_t left = start, right = middle;

	while (left < middle && right < end) {
		bool take_right = from[right].time_ns < from[left].time_ns;

		to[start++] = from[take_right ? right : left];
		right += take_right;
		left += !take_right;
	}
	memcpy(to + start, from + left, (middle - left) * sizeof(*to));
	memcpy(to + start + (middle - left), from + right, (end - right) * sizeof(*to));
}

/* What is held before place `held`: neighbours in pairs, until there is one run. */
static struct mmt_error *sort(struct order *order, size_t held)
{
	if (!find_runs(order, held) || !vector_reserve_bytes((void **)&order->merged.items, &order->merged.capacity,
							     order->items.count, sizeof(struct order_item)))
		return &error_no_memory;
	while (order->runs.count > 2) {
		struct order_item *from = order->items.items, *to = order->merged.items;
		size_t *runs = order->runs.items, count = order->runs.count - 1, kept = 0, capacity;

		for (size_t i = 0; i < count; i += 2) {
			size_t end = runs[i + 2 <= count ? i + 2 : i + 1];

			merge_runs(from, to, runs[i], runs[i + 1], end);
			runs[kept++] = runs[i];
		}
		memcpy(to + held, from + held, (order->items.count - held) * sizeof(*to));
		runs[kept++] = runs[count];
		order->runs.count = kept;
		order->items.items = to;
		order->merged.items = from;
		capacity = order->items.capacity;
		order->items.capacity = order->merged.capacity;
		order->merged.capacity = capacity;
	}
	return NULL;
}

/* The first that is younger; what is held is sorted. */
static size_t find_younger(const struct order *order, uint64_t time_ns)
{
	size_t low = order->first, high = order->items.count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (order->items.items[middle].time_ns <= time_ns)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

/* What has gone out makes room. */
static void compact(struct order *order)
{
	size_t held = order->items.count - order->first;

	memmove(order->items.items, order->items.items + order->first, held * sizeof(*order->items.items));
	order->items.count = held;
	order->releasable -= order->first;
	order->round_start = order->round_start > order->first ? order->round_start - order->first : 0;
	order->first = 0;
}

static struct mmt_error *release_half(struct order *order)
{
	struct mmt_error *error = sort(order, order->items.count);
	size_t middle = order->first + (order->items.count - order->first) / 2;

	if (!error)
		order->releasable = find_younger(order, order->items.items[middle].time_ns);
	return error;
}

struct mmt_error *order_push(struct order *order, const struct order_item *item)
{
	if (order->first && order->first == order->releasable)
		compact(order);
	if (!vector_push(&order->items, *item))
		return &error_no_memory;
	item->block->pending++;
	order->bytes += item->size;
	if (item->time_ns > order->youngest_ns)
		order->youngest_ns = item->time_ns;
	if (order->bytes > (order->has_rounds ? ORDER_ROUNDS_BYTES : ORDER_WINDOW_BYTES) &&
	    order->first == order->releasable)
		return release_half(order);
	return NULL;
}

/* What came before this round goes out as a whole. */
static struct mmt_error *begin_anew(struct order *order)
{
	struct mmt_error *error = NULL;

	if (order->first < order->round_start)
		error = sort(order, order->round_start);
	order->releasable = order->round_start > order->first ? order->round_start : order->first;
	return error;
}

struct mmt_error *order_end_round(struct order *order)
{
	uint64_t release_ns = order->last_round_ns;
	bool jumped =
	    order->youngest_ns && release_ns > ORDER_JUMP_NS && order->youngest_ns < release_ns - ORDER_JUMP_NS;
	struct mmt_error *error = NULL;

	if (jumped) {
		error = begin_anew(order);
	} else if (release_ns && order->first < order->items.count) {
		error = sort(order, order->items.count);
		if (!error)
			order->releasable = find_younger(order, release_ns);
	}
	if (jumped || order->youngest_ns > release_ns)
		order->last_round_ns = order->youngest_ns;
	order->has_rounds = true;
	order->round_start = order->items.count;
	order->youngest_ns = 0;
	return error;
}

struct mmt_error *order_end(struct order *order)
{
	struct mmt_error *error = order->first < order->items.count ? sort(order, order->items.count) : NULL;

	order->releasable = order->items.count;
	return error;
}

static void note_time(struct order *order, uint64_t time_ns)
{
	bool late = time_ns < order->taken_ns;

	order->violations += late;
	if (!late || order->taken_ns - time_ns > ORDER_JUMP_NS)
		order->taken_ns = time_ns;
}

size_t order_take(struct order *order, struct order_item *items_ret, size_t maximum, size_t bytes,
		  struct record_block **done)
{
	size_t count = 0, taken = 0;

	while (order->first < order->releasable && count < maximum && taken < bytes) {
		const struct order_item *item = &order->items.items[order->first++];

		items_ret[count++] = *item;
		taken += item->size;
		let_go(item->block, done);
		note_time(order, item->time_ns);
	}
	order->bytes -= taken;
	return count;
}

uint64_t order_violations(const struct order *order)
{
	return order->violations;
}

size_t order_bytes(const struct order *order)
{
	return order->bytes + (order->items.capacity + order->merged.capacity) * sizeof(struct order_item);
}
