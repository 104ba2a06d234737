// SPDX-License-Identifier: LGPL-2.1-or-later
#include "model/space/intervals.h"

#define CHUNK_RANGES 64
#define BLOCK_NODES 256 /* at most; so many as the map has already */

struct interval_chunk {
	size_t count;
	struct interval_slot slots[CHUNK_RANGES];
};

/* Position of a range. */
struct interval_place {
	size_t chunk, index;
};

void intervals_deinit(struct intervals *intervals)
{
	vector_deinit_each(&intervals->chunks, slot, free(slot->chunk));
	vector_deinit_each(&intervals->blocks, block, free(*block));
	*intervals = (struct intervals){0};
}

static inline void remember(const struct intervals *intervals, struct interval_place place)
{
	struct intervals *remembering = (struct intervals *)intervals; /* no range is remembered */

	remembering->found = place.chunk * CHUNK_RANGES + place.index;
}

static inline struct interval_place remembered(const struct intervals *intervals)
{
	return (struct interval_place){intervals->found / CHUNK_RANGES, intervals->found % CHUNK_RANGES};
}

/* Whether the last range that starts at or below `address` is the remembered one, or the one before it or (in a walk)
 * behind it in its chunk, which is then remembered. */
static inline bool is_found_again(const struct intervals *intervals, uint64_t address)
{
	struct interval_place place = remembered(intervals);
	const struct interval_slot *chunks = intervals->chunks.items;
	const struct interval_chunk *chunk;
	bool is_last;

	if (place.chunk >= intervals->chunks.count || place.index >= chunks[place.chunk].chunk->count)
		return false;
	chunk = chunks[place.chunk].chunk;
	if (chunk->slots[place.index].start > address) {
		if (!place.index || chunk->slots[--place.index].start > address)
			return false;
	} else if (place.index + 1 < chunk->count && chunk->slots[place.index + 1].start <= address) {
		place.index++;
	}
	is_last = place.index + 1 == chunk->count;
	if (is_last ? place.chunk + 1 < intervals->chunks.count && chunks[place.chunk + 1].start <= address
		    : chunk->slots[place.index + 1].start <= address)
		return false;
	remember(intervals, place);
	return true;
}

/* False: no range starts at or below `address`. */
static COLD bool search_start(const struct intervals *intervals, uint64_t address)
{
	const struct interval_slot *chunks = intervals->chunks.items;
	size_t count = partition_point(intervals->chunks.count, i, chunks[i].start <= address);
	const struct interval_chunk *chunk;

	if (!count)
		return false;
	chunk = chunks[count - 1].chunk;
	remember(intervals, (struct interval_place){
				count - 1, partition_point(chunk->count, i, chunk->slots[i].start <= address) - 1});
	return true;
}

/* Find the last range that starts at or below `address`; false: none. It is usually the remembered range or a
 * neighbour. */
static inline bool find_start(const struct intervals *intervals, uint64_t address, struct interval_place *place_ret)
{
	if (!is_found_again(intervals, address) && !search_start(intervals, address))
		return false;
	*place_ret = remembered(intervals);
	return true;
}

static inline struct interval_node *node_at(const struct intervals *intervals, struct interval_place place)
{
	return intervals->chunks.items[place.chunk].chunk->slots[place.index].node;
}

/* The range after the one at `place`; NULL: none. */
static struct interval_node *node_behind(const struct intervals *intervals, struct interval_place place)
{
	if (++place.index < intervals->chunks.items[place.chunk].chunk->count)
		return node_at(intervals, place);
	return ++place.chunk < intervals->chunks.count ? intervals->chunks.items[place.chunk].chunk->slots[0].node
						       : NULL;
}

struct interval_node *intervals_next(const struct intervals *intervals, uint64_t address)
{
	struct interval_node *node;
	struct interval_place place;

	if (!intervals->count)
		return NULL;
	if (!find_start(intervals, address, &place))
		return intervals->chunks.items[0].chunk->slots[0].node;
	node = node_at(intervals, place);
	return node->interval.end > address ? node : node_behind(intervals, place);
}

struct interval_node *intervals_walk(const struct intervals *intervals, size_t *place)
{
	size_t chunk = *place / CHUNK_RANGES, index = *place % CHUNK_RANGES;

	if (chunk < intervals->chunks.count && index >= intervals->chunks.items[chunk].chunk->count) {
		chunk++;
		index = 0;
	}
	*place = chunk * CHUNK_RANGES + index + 1;
	return chunk < intervals->chunks.count ? intervals->chunks.items[chunk].chunk->slots[index].node : NULL;
}

struct interval_node *intervals_before(const struct intervals *intervals, uint64_t address)
{
	struct interval_place place;

	if (!address || !find_start(intervals, address - 1, &place))
		return NULL;
	return node_at(intervals, place);
}

bool intervals_meet(const struct intervals *intervals, uint64_t address, struct interval_node **left_ret,
		    struct interval_node **right_ret)
{
	struct interval_place place;

	if (!address || !find_start(intervals, address - 1, &place))
		return false;
	*left_ret = node_at(intervals, place);
	if ((*left_ret)->interval.end != address)
		return false;
	*right_ret = node_behind(intervals, place);
	return *right_ret && (*right_ret)->interval.start == address;
}

/* Insert an empty chunk. NULL: out of memory. */
static struct interval_chunk *insert_chunk(struct intervals *intervals, size_t at)
{
	struct interval_chunk *chunk = malloc(sizeof(*chunk));
	struct interval_slot *items;

	if (!chunk || !vector_append(&intervals->chunks)) {
		free(chunk);
		return NULL;
	}
	items = intervals->chunks.items;
	memmove(items + at + 1, items + at, (intervals->chunks.count - at - 1) * sizeof(*items));
	items[at].chunk = chunk;
	chunk->count = 0;
	return chunk;
}

/* Make room for a range that starts at `start`; false: out of memory. */
static bool make_room(struct intervals *intervals, uint64_t start, struct interval_place *place_ret)
{
	struct interval_place place = {0};
	struct interval_chunk *upper, *lower;

	*place_ret = place;
	if (!intervals->chunks.count)
		return insert_chunk(intervals, 0);
	place.chunk = intervals->chunks.count - 1;
	place.index = intervals->chunks.items[place.chunk].chunk->count;
	/* A fork copies ascending ranges. */
	if (intervals->chunks.items[place.chunk].chunk->slots[place.index - 1].start > start) {
		place = (struct interval_place){0};
		place.index = find_start(intervals, start, &place) ? place.index + 1 : 0;
	}
	if (intervals->chunks.items[place.chunk].chunk->count == CHUNK_RANGES) {
		/* Move the upper half to a new chunk, or none if addresses ascend. */
		upper = insert_chunk(intervals, place.chunk + 1);
		if (!upper)
			return false;
		lower = intervals->chunks.items[place.chunk].chunk;
		lower->count = place.index == CHUNK_RANGES ? CHUNK_RANGES : CHUNK_RANGES / 2;
		upper->count = CHUNK_RANGES - lower->count;
		memcpy(upper->slots, lower->slots + lower->count, upper->count * sizeof(*upper->slots));
		intervals->chunks.items[place.chunk + 1].start = upper->count ? upper->slots[0].start : start;
		if (place.index > CHUNK_RANGES / 2) {
			place.chunk++;
			place.index -= lower->count;
		}
	}
	*place_ret = place;
	return true;
}

static void spare_node(struct intervals *intervals, struct interval_node *node)
{
	node->next_spare = intervals->spare;
	intervals->spare = node;
}

/* Return a node without contents; NULL: out of memory. */
static struct interval_node *take_node(struct intervals *intervals)
{
	size_t count = smaller_of(intervals->count + 1, BLOCK_NODES);
	struct interval_node *block = intervals->spare ? NULL : malloc(count * sizeof(*block)), *node;

	if (!intervals->spare && (!block || !vector_push(&intervals->blocks, block))) {
		free(block);
		return NULL;
	}
	for (size_t i = block ? count : 0; i--;)
		spare_node(intervals, &block[i]);
	node = intervals->spare;
	intervals->spare = node->next_spare;
	return node;
}

struct interval_node *intervals_insert(struct intervals *intervals, const struct space_interval *interval,
				       uint64_t time_ns)
{
	struct interval_node *node = take_node(intervals);
	struct interval_chunk *chunk;
	struct interval_place place;
	size_t behind;

	if (!node)
		return NULL;
	if (!make_room(intervals, interval->start, &place)) {
		spare_node(intervals, node);
		return NULL;
	}
	*node = (struct interval_node){*interval, {time_ns}};
	chunk = intervals->chunks.items[place.chunk].chunk;
	behind = chunk->count++ - place.index;
	memmove(chunk->slots + place.index + 1, chunk->slots + place.index, behind * sizeof(*chunk->slots));
	chunk->slots[place.index] = (struct interval_slot){interval->start, {node}};
	intervals->chunks.items[place.chunk].start = chunk->slots[0].start;
	intervals->count++;
	remember(intervals, place);
	return node;
}

void intervals_remove(struct intervals *intervals, uint64_t start)
{
	struct interval_slot *chunks = intervals->chunks.items;
	struct interval_place place = {0};
	struct interval_chunk *chunk;
	size_t behind;

	(void)find_start(intervals, start, &place);
	chunk = chunks[place.chunk].chunk;
	spare_node(intervals, chunk->slots[place.index].node);
	behind = --chunk->count - place.index;
	memmove(chunk->slots + place.index, chunk->slots + place.index + 1, behind * sizeof(*chunk->slots));
	intervals->count--;
	/* The next mapping often goes where this range was. */
	if (place.index)
		remember(intervals, (struct interval_place){place.chunk, place.index - 1});
	if (chunk->count) {
		chunks[place.chunk].start = chunk->slots[0].start;
		return;
	}
	free(chunk);
	behind = --intervals->chunks.count - place.chunk;
	memmove(chunks + place.chunk, chunks + place.chunk + 1, behind * sizeof(*chunks));
}

bool intervals_cut_some(struct intervals *intervals, uint64_t start, uint64_t end)
{
	struct interval_node *node;

	while ((node = intervals_within(intervals, start, end))) {
		struct space_interval tail = node->interval;
		struct interval_place place = {0};

		if (tail.start < start) {
			node->interval.end = start;
			if (tail.end <= end)
				continue;
			tail.start = end;
			return intervals_insert(intervals, &tail, node->time_ns);
		}
		if (tail.end <= end) {
			intervals_remove(intervals, tail.start);
			continue;
		}
		(void)find_start(intervals, tail.start, &place);
		intervals->chunks.items[place.chunk].chunk->slots[place.index].start = node->interval.start = end;
		if (!place.index)
			intervals->chunks.items[place.chunk].start = end;
	}
	return true;
}
