// SPDX-License-Identifier: LGPL-2.1-or-later
#include "trace/read/reorder.h"

#define ITEM_BYTES (2 * sizeof(struct reorder_item)) /* size in `items` and `merged` */

struct mmt_error *reorder_create(uint64_t file_bytes, struct order **order_ret)
{
	const uint64_t allowed = LIMIT_ORDER_ANYWHERE_BYTES + file_bytes * LIMIT_UNPACKED_EXPANSION;
	struct order *order = calloc(1, sizeof(*order));

	if (!order)
		return &error_no_memory;
	order->rounds_bytes = allowed < LIMIT_ORDER_ROUNDS_BYTES ? (size_t)allowed : LIMIT_ORDER_ROUNDS_BYTES;
	*order_ret = order;
	return NULL;
}

/* Release one record of the block. */
static void let_go(struct order *order, struct record_block *block, struct record_block **done)
{
	if (--block->pending)
		return;
	order->block_bytes -= block->counted;
	if (!block->left)
		return;
	block->next = *done;
	*done = block;
}

void reorder_destroy(struct order *order)
{
	struct record_block *done = NULL;

	if (!order)
		return;
	for (size_t i = order->first; i < order->items.count; i++)
		let_go(order, order->items.items[i].block, &done);
	record_blocks_destroy(done);
	vector_deinit(&order->items);
	vector_deinit(&order->merged);
	vector_deinit(&order->runs);
	free(order);
}

/* With equal times the lower run comes first. */
static void merge_runs(const struct reorder_item *lower, size_t lower_count, const struct reorder_item *upper,
		       size_t upper_count, struct reorder_item *to)
{
	const struct reorder_item *lower_end = lower + lower_count, *upper_end = upper + upper_count;

	while (lower < lower_end && upper < upper_end) {
		bool take_upper = upper->time_ns < lower->time_ns;

		*to++ = take_upper ? *upper : *lower;
		upper += take_upper;
		lower += !take_upper;
	}
	memcpy(to, lower, (size_t)(lower_end - lower) * sizeof(*to));
	memcpy(to + (lower_end - lower), upper, (size_t)(upper_end - upper) * sizeof(*to));
}

/* Merge the waiting records into one run: adjacent pairs of runs, from one array to the other, until one is left. */
static struct mmt_error *sort(struct order *order)
{
	bool enough;

	order->runs.count = 0;
	enough = vector_push(&order->runs, order->first);
	for (size_t i = order->sorted > order->first ? order->sorted : order->first + 1; i < order->items.count; i++) {
		if (order->items.items[i].time_ns < order->items.items[i - 1].time_ns)
			enough &= vector_push(&order->runs, i);
	}
	if (!enough || !vector_push(&order->runs, order->items.count) ||
	    !vector_reserve_bytes((void **)&order->merged.items, &order->merged.capacity, order->items.count,
				  sizeof(struct reorder_item)))
		return &error_no_memory;
	order->sorted = order->items.count;
	while (order->runs.count > 2) {
		size_t *runs = order->runs.items, count = order->runs.count - 1, kept = 0;
		__typeof__(order->items) from = order->items;

		order->merged.count = from.count;
		order->items = order->merged;
		order->merged = from;
		for (size_t i = 0; i < count; i += 2) {
			size_t middle = runs[i + 1], end = runs[i + 2 <= count ? i + 2 : i + 1];

			merge_runs(from.items + runs[i], middle - runs[i], from.items + middle, end - middle,
				   order->items.items + runs[i]);
			runs[kept++] = runs[i];
		}
		runs[kept++] = runs[count];
		order->runs.count = kept;
	}
	return NULL;
}

/* The first younger record; the waiting records are sorted. */
static size_t find_younger(const struct order *order, uint64_t time_ns)
{
	const struct reorder_item *items = order->items.items + order->first;

	return order->first + partition_point(order->items.count - order->first, i, items[i].time_ns <= time_ns);
}

static inline void place_in_time(struct order *order, struct reorder_item *item, bool from_ring)
{
	uint64_t reached_ns = item->time_ns;

	if (!item->time_ns) {
		item->time_ns = order->taken_ns;
		return;
	}
	order->youngest_ns = larger_of(order->youngest_ns, item->time_ns);
	/* The recorder reads its clock, then the heads of all rings, and then the records before these. So everything
	 * older than a record of its own has been read. When a record of a ring was written, older ones may still have
	 * been on their way to other rings. */
	if (from_ring)
		reached_ns -= reached_ns < ORDER_IN_FLIGHT_NS ? reached_ns : ORDER_IN_FLIGHT_NS;
	order->reached_ns = larger_of(order->reached_ns, reached_ns);
}

struct mmt_error *reorder_push(struct order *order, const struct reorder_item *item, bool from_ring)
{
	size_t limit = order->has_rounds ? order->rounds_bytes : LIMIT_ORDER_WINDOW_BYTES;
	struct reorder_item *added;

	/* Records handed out make room. */
	if (order->first && order->first == order->releasable) {
		size_t held = order->items.count - order->first;

		memmove(order->items.items, order->items.items + order->first, held * sizeof(*order->items.items));
		order->items.count = held;
		order->releasable = 0;
		order->sorted = order->sorted > order->first ? order->sorted - order->first : 0;
		order->first = 0;
	}
	if (!vector_push(&order->items, *item))
		return &error_no_memory;
	added = &order->items.items[order->items.count - 1];
	place_in_time(order, added, from_ring);
	if (!item->block->pending++) {
		item->block->counted = item->block->content.capacity;
		order->block_bytes += item->block->counted;
	}
	order->bytes += item->size + ITEM_BYTES;
	if ((order->bytes > limit || order->block_bytes > limit + ORDER_BLOCK_BYTES) &&
	    order->first == order->releasable) {
		/* Release the older half. */
		struct mmt_error *error = sort(order);
		size_t middle = order->first + (order->items.count - order->first) / 2;

		if (!error)
			order->releasable = find_younger(order, order->items.items[middle].time_ns);
		return error;
	}
	return NULL;
}

struct mmt_error *reorder_end_round(struct order *order)
{
	uint64_t floor_ns = order->round_before_ns; /* no older record may come */
	struct mmt_error *error = NULL;

	if (order->has_rounds && order->first < order->items.count) {
		error = sort(order);
		if (!error)
			order->releasable = find_younger(order, floor_ns);
	}
	order->round_before_ns = order->youngest_ns;
	order->complete_ns = floor_ns > order->reached_ns ? floor_ns : order->reached_ns;
	order->has_rounds = true;
	return error;
}

struct mmt_error *reorder_end(struct order *order)
{
	struct mmt_error *error = order->first < order->items.count ? sort(order) : NULL;

	order->releasable = order->items.count;
	return error;
}

struct mmt_error *reorder_end_early(struct order *order, struct reorder_unfinished *unfinished_ret,
				    struct record_block **done)
{
	struct mmt_error *error = reorder_end(order);
	/* The end of an empty round at the start of the data does not count. */
	size_t kept = error || !order->round_before_ns ? order->items.count : find_younger(order, order->complete_ns);
	const struct reorder_item *items = order->items.items;

	*unfinished_ret = (struct reorder_unfinished){.records = order->items.count - kept};
	if (error || kept == order->items.count)
		return error;
	unfinished_ret->span_ns = items[order->items.count - 1].time_ns - order->complete_ns;
	for (size_t i = kept; i < order->items.count; i++) {
		order->bytes -= items[i].size + ITEM_BYTES;
		let_go(order, items[i].block, done);
	}
	order->items.count = order->releasable = order->sorted = kept;
	return NULL;
}

bool reorder_take(struct order *order, struct reorder_item *item_ret, struct record_block **done)
{
	bool late;

	if (order->first == order->releasable)
		return false;
	*item_ret = order->items.items[order->first++];
	late = item_ret->time_ns < order->taken_ns;
	order->bytes -= item_ret->size + ITEM_BYTES;
	let_go(order, item_ret->block, done);
	order->violations += late;
	if (!late || order->taken_ns - item_ret->time_ns > ORDER_JUMP_NS)
		order->taken_ns = item_ret->time_ns;
	return true;
}
