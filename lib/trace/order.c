// SPDX-License-Identifier: LGPL-2.1-or-later
#include "trace/order.h"

#include <stdlib.h>
#include <string.h>

#include "base/vector.h"

#define ITEM_BYTES (2 * sizeof(struct order_item)) /* in `items` and `merged` */
#define EPOCHS_MAX 256				   /* more jumps are damage */
#define SEAM_WAITS 2				   /* the round in which the jump was seen, and the next one */

/* What records are ordered by. */
struct moment {
	uint64_t time_ns;
	uint16_t epoch;
};

struct stream {
	struct moment last;
	bool seen;
};

struct order {
	/* From `first` on: may go out up to `releasable`, then the rest of what was sorted, then what came since. */
	VECTOR(struct order_item) items;
	VECTOR(struct order_item) merged; /* where the next merge goes */
	VECTOR(size_t) runs;		  /* where they begin; at last, where they end */
	size_t first, releasable;
	size_t round_start;	    /* the first that was pushed in this round */
	struct moment youngest;	    /* of this round and those before */
	struct moment round_before; /* the youngest when the last round ended */
	struct moment reached;	    /* if the round ended now, everything up to here would have been pushed */
	struct moment complete;	    /* the same when the last round ended */
	struct moment floor;	    /* nothing older may come, unless the clock has jumped */
	struct stream *streams;
	size_t stream_count;
	uint16_t epoch;	     /* of the clock; the last one stays */
	unsigned seam_waits; /* ends of rounds until nothing from before the last jump can come any more */
	uint64_t seam_ns;    /* what is younger came before that jump */
	struct moment taken; /* that of the last */
	uint64_t violations;
	size_t bytes;	    /* of records that wait, with what it takes to sort them */
	size_t block_bytes; /* of the blocks they lie in */
	bool has_rounds;
};

struct mmt_error *order_create(size_t streams, struct order **order_ret)
{
	struct order *order = calloc(1, sizeof(*order));

	if (!order)
		return &error_no_memory;
	order->streams = calloc(streams ? streams : 1, sizeof(*order->streams));
	order->stream_count = streams;
	if (!order->streams) {
		free(order);
		return &error_no_memory;
	}
	*order_ret = order;
	return NULL;
}

/* One record of the block is no longer held. */
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

void order_destroy(struct order *order, struct record_blocks *blocks)
{
	struct record_block *done = NULL;

	if (!order)
		return;
	for (size_t i = order->first; i < order->items.count; i++)
		let_go(order, order->items.items[i].block, &done);
	if (done)
		record_blocks_give_back(blocks, done);
	vector_deinit(&order->items);
	vector_deinit(&order->merged);
	vector_deinit(&order->runs);
	free(order->streams);
	free(order);
}

static inline bool is_before(const struct order_item *left, const struct order_item *right)
{
	if (left->epoch != right->epoch)
		return left->epoch < right->epoch;
	return left->time_ns < right->time_ns;
}

static inline bool is_younger(struct moment left, struct moment right)
{
	return left.epoch != right.epoch ? left.epoch > right.epoch : left.time_ns > right.time_ns;
}

static inline struct moment moment_of(const struct order_item *item)
{
	return (struct moment){.time_ns = item->time_ns, .epoch = item->epoch};
}

/* Ascending runs of what is held before place `count`. */
static bool find_runs(struct order *order, size_t count)
{
	const struct order_item *items = order->items.items;

	order->runs.count = 0;
	if (!vector_push(&order->runs, order->first))
		return false;
	for (size_t i = order->first + 1; i < count; i++) {
		if (is_before(&items[i], &items[i - 1]) && !vector_push(&order->runs, i))
			return false;
	}
	return vector_push(&order->runs, count);
}

/* [start, middle) and [middle, end) of `from` into the same places of `to`; of equal times the left comes first. */
static void merge_runs(const struct order_item *from, struct order_item *to, size_t start, size_t middle, size_t end)
{
	size_t left = start, right = middle;

	while (left < middle && right < end) {
		bool take_right = is_before(&from[right], &from[left]);

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
static size_t find_younger(const struct order *order, struct moment moment)
{
	size_t low = order->first, high = order->items.count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (is_younger(moment_of(&order->items.items[middle]), moment))
			high = middle;
		else
			low = middle + 1;
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
		order->releasable = find_younger(order, moment_of(&order->items.items[middle]));
	order->seam_waits -= order->seam_waits > 0;
	return error;
}

/* The clock was at `before_ns` and is at `after_ns` now. What this round has brought from behind it already moves. */
static void begin_epoch(struct order *order, uint64_t before_ns, uint64_t after_ns)
{
	size_t start = order->round_start > order->releasable ? order->round_start : order->releasable;
	uint16_t before = order->epoch;

	if (before == EPOCHS_MAX)
		return;
	order->epoch++;
	order->seam_ns = after_ns + (before_ns - after_ns) / 2;
	order->seam_waits = SEAM_WAITS;
	for (size_t i = start; i < order->items.count; i++) {
		struct order_item *item = &order->items.items[i];

		if (item->epoch != before || item->time_ns > order->seam_ns)
			continue;
		item->epoch = order->epoch;
		if (is_younger(moment_of(item), order->youngest))
			order->youngest = moment_of(item);
	}
}

/* The epoch of a record that comes now. */
static uint16_t find_epoch(struct order *order, uint64_t time_ns, const struct stream *stream)
{
	bool joined = stream && stream->seen && stream->last.epoch == order->epoch;
	uint64_t limit_ns = order->floor.epoch == order->epoch ? order->floor.time_ns : 0;

	if (!joined && order->seam_waits && time_ns > order->seam_ns)
		return order->epoch - 1;
	if (joined && stream->last.time_ns > limit_ns)
		limit_ns = stream->last.time_ns;
	if (stream && limit_ns > ORDER_JUMP_NS && time_ns < limit_ns - ORDER_JUMP_NS)
		begin_epoch(order, limit_ns, time_ns);
	return order->epoch;
}

/*
 * The recorder reads its clock, then the heads of all rings, and then what is before these. So what it says itself is
 * no younger than all that it has read; of what a ring says others may have had older records still on their way.
 */
static struct moment find_reached(const struct order_item *item, bool own)
{
	struct moment moment = moment_of(item);

	if (!own)
		moment.time_ns -= moment.time_ns < ORDER_IN_FLIGHT_NS ? moment.time_ns : ORDER_IN_FLIGHT_NS;
	return moment;
}

static void place_in_time(struct order *order, struct order_item *item, uint32_t number)
{
	struct stream *stream = number < order->stream_count ? &order->streams[number] : NULL;
	struct moment reached;

	if (!item->time_ns) {
		item->time_ns = order->taken.time_ns;
		item->epoch = order->taken.epoch;
		return;
	}
	item->epoch = find_epoch(order, item->time_ns, stream);
	if (stream)
		*stream = (struct stream){.last = moment_of(item), .seen = true};
	if (is_younger(moment_of(item), order->youngest))
		order->youngest = moment_of(item);
	reached = find_reached(item, !stream);
	if (is_younger(reached, order->reached))
		order->reached = reached;
}

static bool is_full(const struct order *order)
{
	size_t limit = order->has_rounds ? ORDER_ROUNDS_BYTES : ORDER_WINDOW_BYTES;

	return order->bytes > limit || order->block_bytes > limit + ORDER_BLOCK_BYTES;
}

struct mmt_error *order_push(struct order *order, const struct order_item *item, uint32_t stream)
{
	struct order_item *added;

	if (order->first && order->first == order->releasable)
		compact(order);
	added = vector_append(&order->items);
	if (!added)
		return &error_no_memory;
	*added = *item;
	place_in_time(order, added, stream);
	if (!item->block->pending++) {
		item->block->counted = item->block->content.capacity;
		order->block_bytes += item->block->counted;
	}
	order->bytes += item->size + ITEM_BYTES;
	if (is_full(order) && order->first == order->releasable)
		return release_half(order);
	return NULL;
}

struct mmt_error *order_end_round(struct order *order)
{
	struct mmt_error *error = NULL;

	order->floor = order->round_before;
	if (order->has_rounds && order->first < order->items.count) {
		error = sort(order, order->items.count);
		if (!error)
			order->releasable = find_younger(order, order->floor);
	}
	order->round_before = order->youngest;
	order->complete = is_younger(order->floor, order->reached) ? order->floor : order->reached;
	order->seam_waits -= order->seam_waits > 0;
	order->has_rounds = true;
	order->round_start = order->items.count;
	return error;
}

struct mmt_error *order_end(struct order *order)
{
	struct mmt_error *error = order->first < order->items.count ? sort(order, order->items.count) : NULL;

	order->releasable = order->items.count;
	return error;
}

struct mmt_error *order_end_early(struct order *order, struct order_unfinished *unfinished_ret,
				  struct record_block **done)
{
	struct mmt_error *error = order_end(order);
	/* What the data begin with ends a round of nothing. */
	bool has_round = is_younger(order->round_before, (struct moment){0});
	size_t kept = error || !has_round ? order->items.count : find_younger(order, order->complete);
	const struct order_item *items = order->items.items;

	*unfinished_ret = (struct order_unfinished){.records = order->items.count - kept};
	if (error || kept == order->items.count)
		return error;
	/* Across a jump of the clock no time is known. */
	if (items[order->items.count - 1].epoch == order->complete.epoch)
		unfinished_ret->span_ns = items[order->items.count - 1].time_ns - order->complete.time_ns;
	for (size_t i = kept; i < order->items.count; i++) {
		order->bytes -= items[i].size + ITEM_BYTES;
		let_go(order, items[i].block, done);
	}
	order->items.count = order->releasable = kept;
	return NULL;
}

static void note_time(struct order *order, struct moment moment)
{
	bool late = moment.time_ns < order->taken.time_ns;

	order->violations += late;
	if (!late || order->taken.time_ns - moment.time_ns > ORDER_JUMP_NS || moment.epoch != order->taken.epoch)
		order->taken = moment;
}

size_t order_take(struct order *order, struct order_item *items_ret, size_t maximum, size_t bytes,
		  struct record_block **done)
{
	size_t count = 0, taken = 0;

	while (order->first < order->releasable && count < maximum && taken < bytes) {
		const struct order_item *item = &order->items.items[order->first++];

		items_ret[count++] = *item;
		taken += item->size;
		let_go(order, item->block, done);
		note_time(order, moment_of(item));
	}
	order->bytes -= taken + count * ITEM_BYTES;
	return count;
}

uint64_t order_violations(const struct order *order)
{
	return order->violations;
}

size_t order_bytes(const struct order *order)
{
	return order->bytes - (order->items.count - order->first) * ITEM_BYTES + order->block_bytes +
	       (order->items.capacity + order->merged.capacity) * sizeof(struct order_item);
}
