/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* /tmp/perf-PID.map: names of JIT code by absolute address, one "START SIZE NAME" per line, hexadecimal with or without
 * 0x. Later lines replace earlier ones byte by byte. */
#pragma once

#include "base/vector.h"
#include "code/jit/code-timeline.h"

struct perf_map {
	VECTOR(struct timed_range) ranges; /* in file order */
	VECTOR(size_t) name_offsets;	   /* index into `names` for each range */
	VECTOR(char) names;
	/* Of `ranges`. A line written between two looks at the file counts from the first of them on. */
	struct code_timeline *timeline;
	size_t dropped; /* lines over the limit, ignored */
};

/* Size of the file at a timestamp, ascending: lines beyond it were written later. */
struct perf_map_step {
	uint64_t time_ns, length;
};

/* Parse and copy the text. Invalid lines are skipped. A last line without newline counts unless it is
 * truncated inside the numbers. Without steps, all lines exist from the beginning. */
struct mmt_error *perf_map_create(const void *text, size_t size, const struct perf_map_step *steps, size_t step_count,
				  struct perf_map **map_ret) MMT_MUST_CHECK;
void perf_map_destroy(struct perf_map *map);

/* What code_timeline_find() has found. */
struct named_code perf_map_entry(const struct perf_map *map, uint32_t entry);

/* Name for grouping and diffing: without tier suffix ("[OptimizedTier1]", "[QuickJitted]" ...) and without addresses
 * that differ from run to run (the MT comment of IL stubs). Written to `text`, truncated to `size`. */
void perf_map_normalise(const char *name, char *text, size_t size);
