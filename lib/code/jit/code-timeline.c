// SPDX-License-Identifier: LGPL-2.1-or-later
#include "code/jit/code-timeline.h"

#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/limits.h"
#include "base/vector.h"

/* Budget for applying ranges again after going back in time: at least this many, or all ranges this many times. */
#define REAPPLIED_MIN (1u << 20)
#define REAPPLIED_TIMES 16

/*
 * The starts and ends of all ranges divide the address space into pieces. For each piece this stores the first range
 * that ever covers it, and the latest range applied so far. The latter is stored per run of pieces with the same owner,
 * at the run's first piece.
 */
struct code_timeline {
	const struct timed_range *ranges;
	size_t count;
	uint64_t *bounds; /* piece i begins at bounds[i] and ends at bounds[i + 1] */
	size_t bound_count;
	uint32_t *first;  /* by piece */
	uint32_t *owners; /* by first piece of a run; CODE_TIMELINE_NONE: none yet */
	struct ordered_bits runs;
	size_t applied; /* number of ranges applied, from the first on */
	uint64_t epoch;
	uint64_t reappliable; /* remaining budget, in ranges */
	bool is_behind;	      /* the last query was for a time before the last applied range, and the budget is used
				 up */
};

static int compare_numbers(const void *left, const void *right)
{
	uint64_t a = *(const uint64_t *)left, b = *(const uint64_t *)right;

	return (a > b) - (a < b);
}

static bool collect_bounds(struct code_timeline *timeline)
{
	size_t count = 0, kept = 0;

	timeline->bounds = malloc((2 * timeline->count + 1) * sizeof(*timeline->bounds));
	if (!timeline->bounds)
		return false;
	for (size_t i = 0; i < timeline->count; i++) {
		timeline->bounds[count++] = timeline->ranges[i].start;
		timeline->bounds[count++] = timeline->ranges[i].end;
	}
	qsort(timeline->bounds, count, sizeof(*timeline->bounds), compare_numbers);
	for (size_t i = 0; i < count; i++) {
		if (!kept || timeline->bounds[kept - 1] != timeline->bounds[i])
			timeline->bounds[kept++] = timeline->bounds[i];
	}
	timeline->bound_count = kept;
	return true;
}

/* Number of bounds at or below `address`. */
static size_t bounds_up_to(const struct code_timeline *timeline, uint64_t address)
{
	return partition_point(timeline->bound_count, i, timeline->bounds[i] <= address);
}

/* First piece at or after `piece` without an owner; path compression speeds up later searches. */
static size_t next_free(size_t *next, size_t piece)
{
	size_t free_piece = piece;

	while (next[free_piece] != free_piece)
		free_piece = next[free_piece];
	while (next[piece] != free_piece) {
		size_t step = next[piece];

		next[piece] = free_piece;
		piece = step;
	}
	return free_piece;
}

/* From the first range to the last, each takes the pieces that are still free. Nearly linear, however the ranges
 * overlap. */
static bool find_first_owners(struct code_timeline *timeline)
{
	size_t count = timeline->bound_count;
	CLEANUP(free) size_t *next = malloc((count + 1) * sizeof(*next));

	if (!next)
		return false;
	for (size_t i = 0; i <= count; i++)
		next[i] = i;
	for (size_t i = 0; i < timeline->count; i++) {
		size_t end = bounds_up_to(timeline, timeline->ranges[i].end) - 1;
		size_t piece = next_free(next, bounds_up_to(timeline, timeline->ranges[i].start) - 1);

		for (; piece < end; piece = next_free(next, piece)) {
			timeline->first[piece] = (uint32_t)i;
			next[piece] = piece + 1;
		}
	}
	return true;
}

struct mmt_error *code_timeline_create(const struct timed_range *ranges, size_t count,
				       struct code_timeline **timeline_ret)
{
	struct code_timeline *timeline = calloc(1, sizeof(*timeline));
	size_t bytes;
	bool complete;

	if (!timeline)
		return &error_no_memory;
	timeline->ranges = ranges;
	timeline->count = count < LIMIT_TIMELINE_RANGES ? count : LIMIT_TIMELINE_RANGES;
	timeline->reappliable = REAPPLIED_MIN;
	if (timeline->count > REAPPLIED_MIN / REAPPLIED_TIMES)
		timeline->reappliable = (uint64_t)timeline->count * REAPPLIED_TIMES;
	complete = collect_bounds(timeline);
	bytes = (timeline->bound_count + 1) * sizeof(*timeline->first);
	timeline->first = complete ? malloc(bytes) : NULL;
	timeline->owners = complete ? malloc(bytes) : NULL;
	complete = timeline->first && timeline->owners && ordered_bits_init(&timeline->runs, timeline->bound_count);
	if (complete) {
		memset(timeline->first, 0xff, bytes);
		memset(timeline->owners, 0xff, bytes);
		complete = find_first_owners(timeline);
	}
	if (!complete) {
		code_timeline_destroy(timeline);
		return &error_no_memory;
	}
	*timeline_ret = timeline;
	return NULL;
}

void code_timeline_destroy(struct code_timeline *timeline)
{
	if (!timeline)
		return;
	free(timeline->bounds);
	free(timeline->first);
	free(timeline->owners);
	ordered_bits_deinit(&timeline->runs);
	free(timeline);
}

static uint32_t owner_of(const struct code_timeline *timeline, size_t piece)
{
	size_t run = ordered_bits_before(&timeline->runs, piece);

	return run == ORDERED_BITS_NONE ? CODE_TIMELINE_NONE : timeline->owners[run];
}

/* Start a run at `piece`, with the piece's current owner. */
static void split(struct code_timeline *timeline, size_t piece)
{
	if (piece >= timeline->bound_count || ordered_bits_has(&timeline->runs, piece))
		return;
	timeline->owners[piece] = owner_of(timeline, piece);
	ordered_bits_set(&timeline->runs, piece);
}

/* Amortised: each run removed here was created by an earlier range. */
static void apply(struct code_timeline *timeline, uint32_t index)
{
	size_t start = bounds_up_to(timeline, timeline->ranges[index].start) - 1;
	size_t end = bounds_up_to(timeline, timeline->ranges[index].end) - 1;
	bool replaces = owner_of(timeline, start) != CODE_TIMELINE_NONE;

	split(timeline, end);
	split(timeline, start);
	for (size_t run; (run = ordered_bits_after(&timeline->runs, start + 1)) < end;) {
		replaces |= timeline->owners[run] != CODE_TIMELINE_NONE;
		ordered_bits_clear(&timeline->runs, run);
	}
	/* Pieces without an owner already resolved to their first range, which is this one. */
	timeline->owners[start] = index;
	timeline->epoch += replaces;
}

/* False: the budget is used up. */
static bool go_back(struct code_timeline *timeline)
{
	if (timeline->applied > timeline->reappliable)
		return false;
	timeline->reappliable -= timeline->applied;
	for (size_t run = 0; (run = ordered_bits_after(&timeline->runs, run)) != ORDERED_BITS_NONE; run++)
		ordered_bits_clear(&timeline->runs, run);
	timeline->applied = 0;
	timeline->epoch++;
	return true;
}

uint64_t code_timeline_epoch(struct code_timeline *timeline, uint64_t time_ns)
{
	bool was_behind = timeline->is_behind;

	timeline->is_behind =
	    timeline->applied && timeline->ranges[timeline->applied - 1].from_ns > time_ns && !go_back(timeline);
	while (timeline->applied < timeline->count && timeline->ranges[timeline->applied].from_ns <= time_ns)
		apply(timeline, (uint32_t)timeline->applied++);
	/* Queries that failed at this time may succeed at another. */
	timeline->epoch += timeline->is_behind || was_behind;
	return timeline->epoch;
}

uint32_t code_timeline_find(struct code_timeline *timeline, uint64_t address, uint64_t time_ns)
{
	size_t piece = bounds_up_to(timeline, address);
	uint32_t owner;

	if (!piece)
		return CODE_TIMELINE_NONE;
	(void)code_timeline_epoch(timeline, time_ns);
	owner = owner_of(timeline, piece - 1);
	if (owner == CODE_TIMELINE_NONE)
		return timeline->first[piece - 1];
	/* A range that already existed then has owned the piece ever since. If it is newer, the range that it replaced
	 * is unknown. */
	if (timeline->is_behind && timeline->ranges[owner].from_ns > time_ns)
		return owner == timeline->first[piece - 1] ? owner : CODE_TIMELINE_NONE;
	return owner;
}

bool ordered_bits_init(struct ordered_bits *bits, size_t limit)
{
	size_t sizes[ORDERED_BITS_LEVELS], total = 0, left = limit ? limit : 1;

	*bits = (struct ordered_bits){.limit = limit};
	do {
		if (bits->levels == ORDERED_BITS_LEVELS)
			return false;
		left = left / 64 + (left % 64 != 0);
		sizes[bits->levels++] = left;
		total += left;
	} while (left > 1);
	bits->words[0] = calloc(total, sizeof(**bits->words));
	for (size_t i = 1; bits->words[0] && i < bits->levels; i++)
		bits->words[i] = bits->words[i - 1] + sizes[i - 1];
	return bits->words[0] != NULL;
}

void ordered_bits_deinit(struct ordered_bits *bits)
{
	free(bits->words[0]);
	*bits = (struct ordered_bits){0};
}

void ordered_bits_set(struct ordered_bits *bits, size_t number)
{
	for (size_t level = 0; level < bits->levels; level++, number /= 64)
		bits->words[level][number / 64] |= 1ULL << number % 64;
}

void ordered_bits_clear(struct ordered_bits *bits, size_t number)
{
	for (size_t level = 0; level < bits->levels; level++, number /= 64) {
		bits->words[level][number / 64] &= ~(1ULL << number % 64);
		if (bits->words[level][number / 64])
			break;
	}
}

bool ordered_bits_has(const struct ordered_bits *bits, size_t number)
{
	return number < bits->limit && bits->words[0][number / 64] >> number % 64 & 1;
}

static size_t highest(uint64_t word)
{
	return 63 - (size_t)__builtin_clzll(word);
}

static size_t lowest(uint64_t word)
{
	return (size_t)__builtin_ctzll(word);
}

size_t ordered_bits_before(const struct ordered_bits *bits, size_t number)
{
	size_t level = 0;
	uint64_t word;

	if (!bits->limit)
		return ORDERED_BITS_NONE;
	if (number >= bits->limit)
		number = bits->limit - 1;
	/* Go up until a word has a bit at or below; above the lowest level, the bit itself was already checked. */
	word = bits->words[0][number / 64] & UINT64_MAX >> (63 - number % 64);
	while (!word) {
		number /= 64;
		if (++level == bits->levels)
			return ORDERED_BITS_NONE;
		word = bits->words[level][number / 64] & ((1ULL << number % 64) - 1);
	}
	number = number / 64 * 64 + highest(word);
	while (level-- > 0)
		number = number * 64 + highest(bits->words[level][number]);
	return number;
}

size_t ordered_bits_after(const struct ordered_bits *bits, size_t number)
{
	size_t level = 0;
	uint64_t word;

	if (number >= bits->limit)
		return ORDERED_BITS_NONE;
	word = bits->words[0][number / 64] & UINT64_MAX << number % 64;
	while (!word) {
		number /= 64;
		if (++level == bits->levels)
			return ORDERED_BITS_NONE;
		word = number % 64 == 63 ? 0 : bits->words[level][number / 64] & UINT64_MAX << (number % 64 + 1);
	}
	number = number / 64 * 64 + lowest(word);
	while (level-- > 0)
		number = number * 64 + lowest(bits->words[level][number]);
	return number;
}
