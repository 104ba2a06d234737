// SPDX-License-Identifier: LGPL-2.1-or-later
#include "trace/read/reorder.h"

#include <stdlib.h>
#include <string.h>

#include "base/limits.h"
#include "base/vector.h"

#define ITEM_BYTES (2 * sizeof(struct reorder_item)) /* size in `items` and `merged` */
#define SEAM_WAITS 2				     /* the round in which the jump was seen, and the next one */

/* The sort key of records. */
struct timestamp {
	uint64_t time_ns;
	uint16_t epoch;
};

struct stream {
	struct timestamp last;
	bool seen;
};

struct order {
	/* From `first` on: records to hand out, up to `releasable`, then other sorted ones, then new ones. */
	VECTOR(struct reorder_item) items;
	VECTOR(struct reorder_item) merged; /* room for merging */
	VECTOR(size_t) runs;		    /* start of each run, and finally the end of the last */
	size_t first, releasable;
	size_t sorted;		       /* everything before it is sorted */
	size_t round_start;	       /* the first record of this round */
	struct timestamp youngest;     /* of this round and those before */
	struct timestamp round_before; /* the youngest when the previous round ended */
	struct timestamp reached;      /* if the round ended now, all records up to this time would have been pushed */
	struct timestamp complete;     /* the same, when the previous round ended */
	struct timestamp floor;	       /* no older record may come, unless the clock has jumped */
	struct stream *streams;
	size_t stream_count;
	uint16_t epoch;		/* of the clock; the latest one remains */
	unsigned seam_waits;	/* ends of rounds until no more records from before the last jump can come */
	uint64_t seam_ns;	/* records younger than this are from before that jump */
	struct timestamp taken; /* timestamp of the last record handed out */
	uint64_t violations;
	size_t bytes;	    /* size of waiting records, including memory for sorting */
	size_t block_bytes; /* total size of their blocks */
	bool has_rounds;
};

struct mmt_error *reorder_create(size_t streams, struct order **order_ret)
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
	free(order->streams);
	free(order);
}

static inline bool is_before(const struct reorder_item *left, const struct reorder_item *right)
{
	if (left->epoch != right->epoch)
		return left->epoch < right->epoch;
	return left->time_ns < right->time_ns;
}

static inline bool is_younger(struct timestamp left, struct timestamp right)
{
	return left.epoch != right.epoch ? left.epoch > right.epoch : left.time_ns > right.time_ns;
}

static inline struct timestamp timestamp_of(const struct reorder_item *item)
{
	return (struct timestamp){.time_ns = item->time_ns, .epoch = item->epoch};
}

/* Merge two runs into `to`, whose end may be the upper one. With equal times the lower run comes first. */
static void merge_runs(const struct reorder_item *lower, size_t lower_count, const struct reorder_item *upper,
		       size_t upper_count, struct reorder_item *to)
{
	const struct reorder_item *lower_end = lower + lower_count, *upper_end = upper + upper_count;

	while (lower < lower_end && upper < upper_end) {
		bool take_upper = is_before(upper, lower);

		*to++ = take_upper ? *upper : *lower;
		upper += take_upper;
		lower += !take_upper;
	}
	memcpy(to, lower, (size_t)(lower_end - lower) * sizeof(*to));
	to += lower_end - lower;
	if (to != upper)
		memcpy(to, upper, (size_t)(upper_end - upper) * sizeof(*to));
}

/* Merge adjacent pairs of the runs behind the first, between the two arrays. Returns the one with the result. */
static struct reorder_item *merge_later_runs(struct order *order)
{
	struct reorder_item *from = order->items.items, *to = order->merged.items;
	size_t *runs = order->runs.items;

	while (order->runs.count > 3) {
		size_t count = order->runs.count - 1, kept = 1;
		struct reorder_item *merged = to;

		for (size_t i = 1; i < count; i += 2) {
			size_t middle = runs[i + 1], end = runs[i + 2 <= count ? i + 2 : i + 1];

			merge_runs(from + runs[i], middle - runs[i], from + middle, end - middle, to + runs[i]);
			runs[kept++] = runs[i];
		}
		runs[kept++] = runs[count];
		order->runs.count = kept;
		to = from;
		from = merged;
	}
	return from;
}

/* The first item in [low, high) that is younger; the items are sorted. */
static size_t find_younger_in(const struct reorder_item *items, size_t low, size_t high, struct timestamp timestamp)
{
	return low + partition_point(high - low, i, !is_younger(timestamp_of(&items[low + i]), timestamp));
}

/* Merge the waiting records into one run. The first run is already sorted; nearly all new records are younger, so merge
 * these first, and then with the end of the first run. */
static struct mmt_error *sort(struct order *order)
{
	struct reorder_item *items = order->items.items, *later;
	size_t start, middle, end;
	bool enough;

	order->runs.count = 0;
	enough = vector_push(&order->runs, order->first);
	for (size_t i = order->sorted > order->first ? order->sorted : order->first + 1; i < order->items.count; i++) {
		if (is_before(&items[i], &items[i - 1]))
			enough &= vector_push(&order->runs, i);
	}
	if (!enough || !vector_push(&order->runs, order->items.count) ||
	    !vector_reserve_bytes((void **)&order->merged.items, &order->merged.capacity, order->items.count,
				  sizeof(struct reorder_item)))
		return &error_no_memory;
	order->sorted = order->items.count;
	if (order->runs.count == 2)
		return NULL;
	later = merge_later_runs(order);
	middle = order->runs.items[1];
	end = order->runs.items[2];
	start = find_younger_in(items, order->first, middle, timestamp_of(&later[middle]));
	memcpy(order->merged.items + start, items + start, (middle - start) * sizeof(*items));
	merge_runs(order->merged.items + start, middle - start, later + middle, end - middle, items + start);
	return NULL;
}

/* The first younger record; the waiting records are sorted. */
static size_t find_younger(const struct order *order, struct timestamp timestamp)
{
	return find_younger_in(order->items.items, order->first, order->items.count, timestamp);
}

/* The clock jumped back from `before_ns` to `after_ns`. Records of this round after it move to the new epoch. */
static void begin_epoch(struct order *order, uint64_t before_ns, uint64_t after_ns)
{
	size_t start = order->round_start > order->releasable ? order->round_start : order->releasable;
	uint16_t before = order->epoch;

	if (before == LIMIT_EPOCHS)
		return;
	order->epoch++;
	order->seam_ns = after_ns + (before_ns - after_ns) / 2;
	order->seam_waits = SEAM_WAITS;
	if (order->sorted > start)
		order->sorted = start;
	for (size_t i = start; i < order->items.count; i++) {
		struct reorder_item *item = &order->items.items[i];

		if (item->epoch != before || item->time_ns > order->seam_ns)
			continue;
		item->epoch = order->epoch;
		if (is_younger(timestamp_of(item), order->youngest))
			order->youngest = timestamp_of(item);
	}
}

/* The epoch of a new record. */
static inline uint16_t find_epoch(struct order *order, uint64_t time_ns, const struct stream *stream)
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

static inline void place_in_time(struct order *order, struct reorder_item *item, uint32_t number)
{
	struct stream *stream = number < order->stream_count ? &order->streams[number] : NULL;
	struct timestamp reached;

	if (!item->time_ns) {
		item->time_ns = order->taken.time_ns;
		item->epoch = order->taken.epoch;
		return;
	}
	item->epoch = find_epoch(order, item->time_ns, stream);
	if (stream)
		*stream = (struct stream){.last = timestamp_of(item), .seen = true};
	if (is_younger(timestamp_of(item), order->youngest))
		order->youngest = timestamp_of(item);
	/* The recorder reads its clock, then the heads of all rings, and then the records before these. So everything
	 * older than a record of its own has been read. When a record of a ring was written, older ones may still have
	 * been on their way to other rings. */
	reached = timestamp_of(item);
	if (stream)
		reached.time_ns -= reached.time_ns < ORDER_IN_FLIGHT_NS ? reached.time_ns : ORDER_IN_FLIGHT_NS;
	if (is_younger(reached, order->reached))
		order->reached = reached;
}

struct mmt_error *reorder_push(struct order *order, const struct reorder_item *item, uint32_t stream)
{
	size_t limit = order->has_rounds ? LIMIT_ORDER_ROUNDS_BYTES : LIMIT_ORDER_WINDOW_BYTES;
	struct reorder_item *added;

	/* Records handed out make room. */
	if (order->first && order->first == order->releasable) {
		size_t held = order->items.count - order->first;

		memmove(order->items.items, order->items.items + order->first, held * sizeof(*order->items.items));
		order->items.count = held;
		order->releasable = 0;
		order->sorted = order->sorted > order->first ? order->sorted - order->first : 0;
		order->round_start = order->round_start > order->first ? order->round_start - order->first : 0;
		order->first = 0;
	}
	if (!vector_push(&order->items, *item))
		return &error_no_memory;
	added = &order->items.items[order->items.count - 1];
	place_in_time(order, added, stream);
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
			order->releasable = find_younger(order, timestamp_of(&order->items.items[middle]));
		order->seam_waits -= order->seam_waits > 0;
		return error;
	}
	return NULL;
}

struct mmt_error *reorder_end_round(struct order *order)
{
	struct mmt_error *error = NULL;

	order->floor = order->round_before;
	if (order->has_rounds && order->first < order->items.count) {
		error = sort(order);
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
	bool has_round = is_younger(order->round_before, (struct timestamp){0});
	size_t kept = error || !has_round ? order->items.count : find_younger(order, order->complete);
	const struct reorder_item *items = order->items.items;

	*unfinished_ret = (struct reorder_unfinished){.records = order->items.count - kept};
	if (error || kept == order->items.count)
		return error;
	/* Times on both sides of a clock jump cannot be subtracted. */
	if (items[order->items.count - 1].epoch == order->complete.epoch)
		unfinished_ret->span_ns = items[order->items.count - 1].time_ns - order->complete.time_ns;
	for (size_t i = kept; i < order->items.count; i++) {
		order->bytes -= items[i].size + ITEM_BYTES;
		let_go(order, items[i].block, done);
	}
	order->items.count = order->releasable = order->sorted = kept;
	return NULL;
}

size_t reorder_take(struct order *order, struct reorder_item *items_ret, size_t maximum, size_t bytes,
		    struct record_block **done)
{
	size_t count = 0, taken = 0;

	while (order->first < order->releasable && count < maximum && taken < bytes) {
		const struct reorder_item *item = &order->items.items[order->first++];
		struct timestamp *last = &order->taken;
		bool late = item->time_ns < last->time_ns;

		items_ret[count++] = *item;
		taken += item->size;
		let_go(order, item->block, done);
		order->violations += late;
		if (!late || last->time_ns - item->time_ns > ORDER_JUMP_NS || item->epoch != last->epoch)
			*last = timestamp_of(item);
	}
	order->bytes -= taken + count * ITEM_BYTES;
	return count;
}

bool reorder_has_releasable(const struct order *order)
{
	return order->first < order->releasable;
}

uint64_t reorder_violations(const struct order *order)
{
	return order->violations;
}

size_t reorder_bytes(const struct order *order)
{
	return order->bytes - (order->items.count - order->first) * ITEM_BYTES + order->block_bytes +
	       (order->items.capacity + order->merged.capacity) * sizeof(struct reorder_item);
}
