// SPDX-License-Identifier: LGPL-2.1-or-later
#include "model/space/intervals.h"

#include <stdlib.h>
#include <string.h>

#include "base/cold.h"

#define CHUNK_RANGES 64
#define SEARCHED_TOGETHER 16
#define FREE_START UINT64_MAX
#define CACHE_LINE_BYTES 64

struct interval_chunk {
	size_t count;
	uint64_t starts[CHUNK_RANGES]; /* fills `starts` after the last range */
	struct interval_node *nodes[CHUNK_RANGES];
};

/* There may be a hundred thousand ranges, but most processes have few. */
#define SLAB_NODES_FIRST 2
#define SLAB_NODES_MOST 128

struct interval_slab {
	struct interval_slab *next;
	size_t count;
	struct interval_node nodes[];
};

/* Position of a range. */
struct interval_place {
	size_t chunk, index;
};

void intervals_deinit(struct intervals *intervals)
{
	for (size_t i = 0; i < intervals->chunk_count; i++)
		free(intervals->chunks[i]);
	while (intervals->slabs) {
		struct interval_slab *slab = intervals->slabs;

		intervals->slabs = slab->next;
		free(slab);
	}
	free(intervals->chunks);
	free(intervals->starts);
	*intervals = (struct intervals){0};
}

/* Count how many of SEARCHED_TOGETHER ascending numbers are at or below `limit`. The code is branch-free, and three
 * independent comparisons run in parallel. */
static inline size_t count_together(const uint64_t *numbers, uint64_t limit)
{
	const uint64_t *base = numbers;

	_Static_assert(SEARCHED_TOGETHER == 4 * 4, "two steps, each to a quarter");
	base += 4 * (size_t)((base[3] <= limit) + (base[7] <= limit) + (base[11] <= limit));
	base += (base[0] <= limit) + (base[1] <= limit) + (base[2] <= limit);
	return (size_t)(base - numbers) + (*base <= limit);
}

/* The same for a chunk, which may have fewer numbers. */
static inline size_t count_in_chunk(const struct interval_chunk *chunk, uint64_t limit)
{
	const uint64_t *starts = chunk->starts, *base = starts;
	size_t count;

	_Static_assert(CHUNK_RANGES == 4 * SEARCHED_TOGETHER, "one step more");
	base += SEARCHED_TOGETHER * (size_t)((starts[15] <= limit) + (starts[31] <= limit) + (starts[47] <= limit));
	count = (size_t)(base - starts) + count_together(base, limit);
	return count < chunk->count ? count : chunk->count;
}

/* The same for the directory, which is padded with SEARCHED_TOGETHER numbers that read as FREE_START. */
static inline size_t count_in_directory(const struct intervals *intervals, uint64_t limit)
{
	const uint64_t *base = intervals->starts;
	size_t left = intervals->chunk_count, count;

	while (left > SEARCHED_TOGETHER) {
		size_t half = left / 2;

		base += half & -(size_t)(base[half - 1] <= limit);
		left -= half;
	}
	count = (size_t)(base - intervals->starts) + count_together(base, limit);
	return count < intervals->chunk_count ? count : intervals->chunk_count;
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

/* Whether the remembered range is the last one that starts at or below `address`. Always false for the last range of a
 * chunk. */
static inline bool is_found_again(const struct intervals *intervals, uint64_t address)
{
	struct interval_place place = remembered(intervals);
	const struct interval_chunk *chunk;

	if (place.chunk >= intervals->chunk_count)
		return false;
	chunk = intervals->chunks[place.chunk];
	return place.index + 1 < chunk->count && chunk->starts[place.index] <= address &&
	       chunk->starts[place.index + 1] > address;
}

/* False: no range starts at or below `address`. */
static COLD bool search_start(const struct intervals *intervals, uint64_t address)
{
	size_t chunk = intervals->chunk_count ? count_in_directory(intervals, address) : 0;

	if (!chunk--)
		return false;
	remember(intervals, (struct interval_place){chunk, count_in_chunk(intervals->chunks[chunk], address) - 1});
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
	return intervals->chunks[place.chunk]->nodes[place.index];
}

/* The range after the one at `place`; NULL: none. */
static struct interval_node *node_behind(const struct intervals *intervals, struct interval_place place)
{
	if (++place.index < intervals->chunks[place.chunk]->count)
		return node_at(intervals, place);
	return ++place.chunk < intervals->chunk_count ? intervals->chunks[place.chunk]->nodes[0] : NULL;
}

static struct interval_node *node_before(const struct intervals *intervals, struct interval_place place)
{
	if (place.index)
		place.index--;
	else if (place.chunk)
		place.index = intervals->chunks[--place.chunk]->count - 1;
	else
		return NULL;
	return node_at(intervals, place);
}

struct interval_node *intervals_next(const struct intervals *intervals, uint64_t address)
{
	struct interval_node *node;
	struct interval_place place;

	if (!intervals->count)
		return NULL;
	if (!find_start(intervals, address, &place))
		return intervals->chunks[0]->nodes[0];
	node = node_at(intervals, place);
	return node->interval.end > address ? node : node_behind(intervals, place);
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

/* Make room for one more chunk in the directory. */
static bool grow_directory(struct intervals *intervals)
{
	size_t needed = intervals->chunk_count + 1, before = intervals->chunk_capacity;
	size_t chunks = before, starts = before ? before + SEARCHED_TOGETHER : 0;

	if (needed <= before)
		return true;
	if (!vector_reserve_bytes((void **)&intervals->chunks, &chunks, needed, sizeof(*intervals->chunks)) ||
	    !vector_reserve_bytes((void **)&intervals->starts, &starts, chunks + SEARCHED_TOGETHER,
				  sizeof(*intervals->starts)))
		return false;
	intervals->chunk_capacity = chunks;
	for (size_t i = intervals->chunk_count; i < chunks + SEARCHED_TOGETHER; i++)
		intervals->starts[i] = FREE_START;
	return true;
}

/* Fill the unused starts up to `end`. */
static void free_starts(struct interval_chunk *chunk, size_t end)
{
	for (size_t i = chunk->count; i < end; i++)
		chunk->starts[i] = FREE_START;
}

/* NULL: out of memory. */
static struct interval_chunk *insert_chunk(struct intervals *intervals, size_t at)
{
	struct interval_chunk *chunk = grow_directory(intervals) ? malloc(sizeof(*chunk)) : NULL;
	size_t behind = intervals->chunk_count - at;

	if (!chunk)
		return NULL;
	chunk->count = 0;
	free_starts(chunk, CHUNK_RANGES);
	memmove(intervals->chunks + at + 1, intervals->chunks + at, behind * sizeof(*intervals->chunks));
	memmove(intervals->starts + at + 1, intervals->starts + at, behind * sizeof(*intervals->starts));
	intervals->chunks[at] = chunk;
	intervals->chunk_count++;
	return chunk;
}

static void remove_chunk(struct intervals *intervals, size_t at)
{
	size_t behind = intervals->chunk_count - at - 1;

	free(intervals->chunks[at]);
	memmove(intervals->chunks + at, intervals->chunks + at + 1, behind * sizeof(*intervals->chunks));
	memmove(intervals->starts + at, intervals->starts + at + 1, behind * sizeof(*intervals->starts));
	intervals->starts[--intervals->chunk_count] = FREE_START;
}

/* Append the ranges of `from`, starting with index `first`, to `to`. */
static void move_ranges(struct interval_chunk *to, struct interval_chunk *from, size_t first)
{
	size_t count = from->count - first;

	memcpy(to->starts + to->count, from->starts + first, count * sizeof(*to->starts));
	memcpy(to->nodes + to->count, from->nodes + first, count * sizeof(*to->nodes));
	to->count += count;
	from->count = first;
	free_starts(from, first + count);
}

static bool split_chunk(struct intervals *intervals, size_t at)
{
	struct interval_chunk *upper = insert_chunk(intervals, at + 1);

	if (!upper)
		return false;
	move_ranges(upper, intervals->chunks[at], CHUNK_RANGES / 2);
	intervals->starts[at + 1] = upper->starts[0];
	return true;
}

/* Make room for a range that starts at `start`; false: out of memory. */
static bool make_room(struct intervals *intervals, uint64_t start, struct interval_place *place_ret)
{
	struct interval_place place = {0};

	if (!intervals->chunk_count) {
		*place_ret = place;
		return insert_chunk(intervals, 0) != NULL;
	}
	if (find_start(intervals, start, &place))
		place.index++;
	if (intervals->chunks[place.chunk]->count == CHUNK_RANGES) {
		if (!split_chunk(intervals, place.chunk))
			return false;
		if (place.index > CHUNK_RANGES / 2) {
			place.chunk++;
			place.index -= CHUNK_RANGES / 2;
		}
	}
	*place_ret = place;
	return true;
}

static void put_spare(struct intervals *intervals, struct interval_node *node)
{
	node->next_spare = intervals->spare;
	intervals->spare = node;
}

/* Each slab has twice as many nodes as the one before. */
static bool add_slab(struct intervals *intervals)
{
	size_t count = intervals->slabs ? intervals->slabs->count * 2 : SLAB_NODES_FIRST;
	struct interval_slab *slab;

	if (count > SLAB_NODES_MOST)
		count = SLAB_NODES_MOST;
	slab = malloc(sizeof(*slab) + count * sizeof(slab->nodes[0]));
	if (!slab)
		return false;
	slab->count = count;
	slab->next = intervals->slabs;
	intervals->slabs = slab;
	while (count--)
		put_spare(intervals, &slab->nodes[count]);
	return true;
}

static struct interval_node *make_node(struct intervals *intervals)
{
	struct interval_node *node;

	if (!intervals->spare && !add_slab(intervals))
		return NULL;
	node = intervals->spare;
	intervals->spare = node->next_spare;
	return node;
}

static struct interval_node *insert(struct intervals *intervals, const struct space_interval *interval,
				    uint64_t time_ns, struct interval_place *place_ret)
{
	struct interval_node *node = make_node(intervals);
	struct interval_chunk *chunk;
	struct interval_place place;
	size_t behind;

	if (!node)
		return NULL;
	node->interval = *interval;
	node->time_ns = time_ns;
	if (!make_room(intervals, interval->start, &place)) {
		put_spare(intervals, node);
		return NULL;
	}
	chunk = intervals->chunks[place.chunk];
	behind = chunk->count - place.index;
	memmove(chunk->starts + place.index + 1, chunk->starts + place.index, behind * sizeof(*chunk->starts));
	memmove(chunk->nodes + place.index + 1, chunk->nodes + place.index, behind * sizeof(*chunk->nodes));
	chunk->starts[place.index] = interval->start;
	chunk->nodes[place.index] = node;
	chunk->count++;
	intervals->starts[place.chunk] = chunk->starts[0];
	intervals->count++;
	*place_ret = place;
	return node;
}

struct interval_node *intervals_insert(struct intervals *intervals, const struct space_interval *interval,
				       uint64_t time_ns)
{
	struct interval_place place;

	return insert(intervals, interval, time_ns, &place);
}

struct interval_node *intervals_insert_beside(struct intervals *intervals, const struct space_interval *interval,
					      bool *met_ret)
{
	struct interval_place place;
	struct interval_node *node = insert(intervals, interval, 0, &place), *other;

	if (!node)
		return NULL;
	other = node_behind(intervals, place);
	*met_ret = other && other->interval.start == interval->end;
	other = node_before(intervals, place);
	*met_ret |= other && other->interval.end == interval->start;
	return node;
}

/* Merge chunks with few ranges. */
static void shrink(struct intervals *intervals, size_t at)
{
	struct interval_chunk *chunk = intervals->chunks[at];

	if (!chunk->count) {
		remove_chunk(intervals, at);
		return;
	}
	intervals->starts[at] = chunk->starts[0];
	if (chunk->count > CHUNK_RANGES / 4 || at + 1 == intervals->chunk_count ||
	    chunk->count + intervals->chunks[at + 1]->count > CHUNK_RANGES / 2)
		return;
	move_ranges(chunk, intervals->chunks[at + 1], 0);
	remove_chunk(intervals, at + 1);
}

void intervals_remove(struct intervals *intervals, uint64_t start)
{
	struct interval_chunk *chunk;
	struct interval_node *node;
	struct interval_place place = {0};
	size_t behind;

	(void)find_start(intervals, start, &place);
	chunk = intervals->chunks[place.chunk];
	node = chunk->nodes[place.index];
	behind = chunk->count - place.index - 1;
	memmove(chunk->starts + place.index, chunk->starts + place.index + 1, behind * sizeof(*chunk->starts));
	memmove(chunk->nodes + place.index, chunk->nodes + place.index + 1, behind * sizeof(*chunk->nodes));
	chunk->count--;
	free_starts(chunk, chunk->count + 1);
	intervals->count--;
	put_spare(intervals, node);
	/* The next mapping often goes where this range was. */
	if (place.index)
		remember(intervals, (struct interval_place){place.chunk, place.index - 1});
	shrink(intervals, place.chunk);
}

/* Move the start of a range up, not beyond the start of the next range. */
static void move_start(struct intervals *intervals, struct interval_node *node, uint64_t start)
{
	struct interval_place place = {0};

	(void)find_start(intervals, node->interval.start, &place);
	intervals->chunks[place.chunk]->starts[place.index] = start;
	if (!place.index)
		intervals->starts[place.chunk] = start;
	node->interval.start = start;
}

bool intervals_cut_some(struct intervals *intervals, uint64_t start, uint64_t end)
{
	struct interval_node *node;

	while ((node = intervals_within(intervals, start, end))) {
		struct space_interval *interval = &node->interval;

		if (interval->start < start && interval->end > end) {
			struct space_interval tail = *interval;

			tail.start = end;
			if (!intervals_insert(intervals, &tail, node->time_ns))
				return false;
			interval->end = start;
			return true;
		}
		if (interval->start < start)
			interval->end = start;
		else if (interval->end > end)
			move_start(intervals, node, end);
		else
			intervals_remove(intervals, interval->start);
	}
	return true;
}
