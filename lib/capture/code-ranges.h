/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Where a process has executable memory that is no program file: ranges that come and go. Pure. */
#ifndef CAPTURE_CODE_RANGES_H
#define CAPTURE_CODE_RANGES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/vector.h"

#define CODE_RANGES_MAX 1024 /* each that is told of is put into its place, and moves those behind it */

struct code_range {
	uint64_t start, end;
	uint64_t noted_ns; /* when it was there */
};

struct code_ranges {
	VECTOR(struct code_range) items; /* ascending, disjoint */
	bool cut;			 /* there were more than CODE_RANGES_MAX */
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
