/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Where a process has executable memory that belongs to no module: ranges that come and go. Pure.
 *
 * The ranges are stored in blocks of bounded size, so that an insertion moves few of them. Two neighbouring blocks with
 * few ranges are merged, so there are never many more blocks than needed.
 */
#ifndef CAPTURE_JIT_CODE_CODE_RANGES_H
#define CAPTURE_JIT_CODE_CODE_RANGES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/vector.h"

#define CODE_RANGES_MAX 16384
#define CODE_RANGES_BLOCK 128 /* most ranges in a block; two neighbours together have more than half as many */

struct code_range {
	uint64_t start, end;
	uint64_t noted_ns; /* when it was seen */
};

struct code_ranges_block {
	VECTOR(struct code_range) items;
};

struct code_ranges {
	VECTOR(struct code_ranges_block) blocks; /* none empty; all their ranges are ascending, disjoint */
	size_t count;				 /* number of ranges: at most CODE_RANGES_MAX */
	bool cut;				 /* ranges were dropped because of the limit */
};

/* Accepts a zeroed value. */
void code_ranges_deinit(struct code_ranges *ranges);

/* Adds a range. Ranges may be noted in any order of time: a range replaces those noted for an earlier time. False: out
 * of memory. */
bool code_ranges_add(struct code_ranges *ranges, uint64_t start, uint64_t end, uint64_t noted_ns);
/* Something else was mapped there at that time. */
bool code_ranges_remove(struct code_ranges *ranges, uint64_t start, uint64_t end, uint64_t time_ns);
/* The ranges added next are the complete list. */
void code_ranges_clear(struct code_ranges *ranges);
/* The first range that ends above `address`; NULL: none. */
const struct code_range *code_ranges_from(const struct code_ranges *ranges, uint64_t address);
/* Ranges noted up to this time are gone. */
void code_ranges_forget(struct code_ranges *ranges, uint64_t until_ns);

#endif
