/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* JIT code over time. Finds which of many ranges, each with the time it was written, is at an address at a given time.
 * Later ranges replace earlier ones byte by byte. */
#ifndef CODE_JIT_CODE_TIMELINE_H
#define CODE_JIT_CODE_TIMELINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/errors.h"

#define CODE_TIMELINE_NONE UINT32_MAX

struct timed_range {
	uint64_t start, end; /* end exclusive, greater than the start */
	uint64_t from_ns;    /* exists from this time on */
};

struct code_timeline;

/* Borrows the ranges: at most LIMIT_TIMELINE_RANGES, ascending by time. */
struct mmt_error *code_timeline_create(const struct timed_range *ranges, size_t count,
				       struct code_timeline **timeline_ret) MMT_MUST_CHECK;

void code_timeline_destroy(struct code_timeline *timeline);

/*
 * Index of the range at `address` at this time: the latest one that existed then. If none existed yet, the first one
 * that follows, because runtimes record JIT code with a delay, some only when they exit. CODE_TIMELINE_NONE: none
 * at any time. Times should ascend. Going back is slow and limited: beyond the limit, replaced ranges are no longer
 * found.
 */
uint32_t code_timeline_find(struct code_timeline *timeline, uint64_t address, uint64_t time_ns);

/* A number that changes whenever the range at some address may have changed since the last query. */
uint64_t code_timeline_epoch(struct code_timeline *timeline, uint64_t time_ns);

/*
 * A set of numbers below a limit. Finding the nearest member to a number takes a few steps. A sorted array would do the
 * same in time that grows with the square: adding and finding the runs of 100,000 ranges at random addresses takes 1 ms
 * with this set and 1.5 s with an array (measured), and JIT compilers write perf maps with a million lines.
 */

#define ORDERED_BITS_LEVELS 6 /* each level has 64 times the bits of the one above: numbers below 2^36 */
#define ORDERED_BITS_NONE SIZE_MAX

struct ordered_bits {
	uint64_t *words[ORDERED_BITS_LEVELS]; /* one allocation, owned by the first level; a bit is set if the
						 corresponding word one level below is not 0 */
	size_t levels, limit;
};

/* Create an empty set for numbers from 0 to limit - 1; false: out of memory, or the limit is too large. */
bool ordered_bits_init(struct ordered_bits *bits, size_t limit);

void ordered_bits_deinit(struct ordered_bits *bits);

void ordered_bits_set(struct ordered_bits *bits, size_t number);

void ordered_bits_clear(struct ordered_bits *bits, size_t number);

bool ordered_bits_has(const struct ordered_bits *bits, size_t number);

/* The largest member at or below `number`, or the smallest at or above; ORDERED_BITS_NONE: none. */
size_t ordered_bits_before(const struct ordered_bits *bits, size_t number);

size_t ordered_bits_after(const struct ordered_bits *bits, size_t number);

#endif
