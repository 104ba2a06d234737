/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* JIT code over time. Finds which of many ranges, each with the time it was written, is at an address at a given time.
 * Later ranges replace earlier ones byte by byte. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/errors.h"

#define CODE_TIMELINE_NONE UINT32_MAX

struct timed_range {
	uint64_t start, end; /* end exclusive, greater than the start */
	uint64_t from_ns;    /* exists from this time on */
};

/* What a perf map or jitdump says of JIT code; the pointers are borrowed from it. */
struct named_code {
	const char *name; /* as written by the runtime */
	uint64_t start, size;
	uint64_t from_ns;     /* it exists from this time on, or was recorded then; 0: unknown, or always */
	const uint8_t *bytes; /* `size` bytes; NULL: unknown */
};

struct code_timeline;

/* Borrows the ranges: at most LIMIT_TIMELINE_RANGES, ascending by time. */
struct mmt_error *code_timeline_create(const struct timed_range *ranges, size_t count,
				       struct code_timeline **timeline_ret) MMT_MUST_CHECK;

void code_timeline_destroy(struct code_timeline *timeline);

/*
 * Index of the range at `address` at this time: the latest one that existed then. If none existed yet, the first one
 * that follows, because runtimes record JIT code with a delay, some only when they exit. CODE_TIMELINE_NONE: none
 * at any time.
 */
uint32_t code_timeline_find(const struct code_timeline *timeline, uint64_t address, uint64_t time_ns);

/* A number that is another one whenever the range at some address may be another one. */
uint64_t code_timeline_epoch(const struct code_timeline *timeline, uint64_t time_ns);
