/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * JIT code over time: which of many ranges, each written at its time, is at an address at a time. Later
 * ranges win byte by byte.
 */
#ifndef CODE_JIT_CODE_TIMELINE_H
#define CODE_JIT_CODE_TIMELINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/errors.h"

#define CODE_TIMELINE_NONE UINT32_MAX
#define CODE_TIMELINE_RANGES_MAX (1u << 23)

struct timed_range {
	uint64_t start, end; /* end exclusive, beyond the start */
	uint64_t from_ns;    /* there from this time on */
};

struct code_timeline;

/* Borrows the ranges, CODE_TIMELINE_RANGES_MAX at most, ascending by time. */
struct mmt_error *code_timeline_create(const struct timed_range *ranges, size_t count,
				       struct code_timeline **timeline_ret) MMT_MUST_CHECK;

void code_timeline_destroy(struct code_timeline *timeline);

/*
 * Index of the range at `address` at this time: the last one that was there; where none was yet, the first that came:
 * runtimes write down what they have generated somewhat later, some only when they end. CODE_TIMELINE_NONE: none ever.
 * Times should ascend. Going back is slow and limited: beyond the limit, replaced ranges are no longer found.
 */
uint32_t code_timeline_find(struct code_timeline *timeline, uint64_t address, uint64_t time_ns);

/* A number that differs when some address may have another range now than at the last time. */
uint64_t code_timeline_epoch(struct code_timeline *timeline, uint64_t time_ns);

/* A set of numbers below a limit, of which the nearest one to a number is found in a few steps. */

#define ORDERED_BITS_LEVELS 6 /* of 64 each: numbers below 2^36 */
#define ORDERED_BITS_NONE SIZE_MAX

struct ordered_bits {
	uint64_t *
	    words[ORDERED_BITS_LEVELS]; /* one block, owned by the first; a bit stands for a word below that is not 0 */
	size_t levels, limit;
};

/* Numbers from 0 to limit - 1, none in the set; false: out of memory, or too large. */
bool ordered_bits_init(struct ordered_bits *bits, size_t limit);

void ordered_bits_deinit(struct ordered_bits *bits);

void ordered_bits_set(struct ordered_bits *bits, size_t number);

void ordered_bits_clear(struct ordered_bits *bits, size_t number);

bool ordered_bits_has(const struct ordered_bits *bits, size_t number);

/* The largest at or below `number`, and the smallest at or above; ORDERED_BITS_NONE: there is none. */
size_t ordered_bits_before(const struct ordered_bits *bits, size_t number);

size_t ordered_bits_after(const struct ordered_bits *bits, size_t number);

#endif
