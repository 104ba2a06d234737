/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Generated code over time: which of many ranges, each written at its time, is at an address at some moment. Later
 * ranges win byte by byte.
 */
#ifndef CODE_CODE_TIMELINE_H
#define CODE_CODE_TIMELINE_H

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

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
 * Times should ascend; going back is slow, and bounded: then what has been replaced since is not told any more.
 */
uint32_t code_timeline_find(struct code_timeline *timeline, uint64_t address, uint64_t time_ns);

/* A number that differs when some address may have another range now than at the last time. */
uint64_t code_timeline_epoch(struct code_timeline *timeline, uint64_t time_ns);

#endif
