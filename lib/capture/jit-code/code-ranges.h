/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Where a process has executable memory that is no module: ranges that come and go. Pure.
 *
 * They stand in blocks of a bounded size, so that one more moves few others. Two blocks beside each other that have few
 * become one: there are never many more blocks than the ranges need.
 */
#ifndef CAPTURE_JIT_CODE_CODE_RANGES_H
#define CAPTURE_JIT_CODE_CODE_RANGES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/vector.h"

#define CODE_RANGES_MAX 16384
#define CODE_RANGES_BLOCK 128 /* ranges of a block at most; of two neighbours together more than half as many */

struct code_range {
	uint64_t start, end;
	uint64_t noted_ns; /* when it was there */
};

struct code_ranges_block {
	VECTOR(struct code_range) items;
};

struct code_ranges {
	VECTOR(struct code_ranges_block) blocks; /* none empty; all their ranges are ascending, disjoint */
	size_t count;				 /* of ranges: at most CODE_RANGES_MAX */
	bool cut;				 /* there were more */
};

/* Accepts a zeroed value. */
void code_ranges_deinit(struct code_ranges *ranges);

/* What is told of comes in no order: it takes the place of what was noted for a time before. False: out of memory. */
bool code_ranges_add(struct code_ranges *ranges, uint64_t start, uint64_t end, uint64_t noted_ns);
/* Something else was there then. */
bool code_ranges_remove(struct code_ranges *ranges, uint64_t start, uint64_t end, uint64_t time_ns);
/* What comes next is all that there is. */
void code_ranges_clear(struct code_ranges *ranges);
/* The first range that ends behind `address`; NULL: none. */
const struct code_range *code_ranges_from(const struct code_ranges *ranges, uint64_t address);
/* What was there until then is not there any more. */
void code_ranges_forget(struct code_ranges *ranges, uint64_t until_ns);

#endif
