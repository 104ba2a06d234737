/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * /tmp/perf-PID.map: names of JIT code by absolute address, one "START SIZE NAME" a line, hexadecimal with or
 * without 0x. Later lines win byte by byte.
 */
#ifndef CODE_JIT_PERF_MAP_H
#define CODE_JIT_PERF_MAP_H

#include <stddef.h>
#include <stdint.h>

#include "base/errors.h"

struct perf_map;

struct perf_map_stats {
	size_t lines, used, garbage; /* garbage: lines that are no entry */
	size_t dropped;		     /* beyond what can be held: not used */
};

/* How long the file was at some moment, ascending: lines beyond that came later. */
struct perf_map_step {
	uint64_t time_ns, length;
};

/* Parse a copy; garbage lines are counted and passed over, a last line without newline counts unless it is cut inside
 * the numbers. Copies what it needs. Without steps every line was always there. */
struct mmt_error *perf_map_create(const void *text, size_t size, const struct perf_map_step *steps, size_t step_count,
				  struct perf_map **map_ret) MMT_MUST_CHECK;
void perf_map_destroy(struct perf_map *map);

#define PERF_MAP_NONE UINT32_MAX

/*
 * The entry at `address` at this time, as code_timeline_find() has it; PERF_MAP_NONE: none. A line written between two
 * looks at the file counts from the first of these on.
 */
uint32_t perf_map_find(struct perf_map *map, uint64_t address, uint64_t time_ns);

/* As code_timeline_epoch(). */
uint64_t perf_map_epoch(struct perf_map *map, uint64_t time_ns);

/* Name of an entry and the start of its code. Borrowed. */
const char *perf_map_name(const struct perf_map *map, uint32_t entry, uint64_t *start_ret);

/* Of its code, in bytes. */
uint64_t perf_map_size(const struct perf_map *map, uint32_t entry);

/* Since when it is known to be there; 0: always. */
uint64_t perf_map_time(const struct perf_map *map, uint32_t entry);

struct perf_map_stats perf_map_stats(const struct perf_map *map);

/*
 * Name for grouping and diffing: without tier suffix ("[OptimizedTier1]", "[QuickJitted]" ...), without run-specific
 * addresses (the MT comment of IL stubs). Written into `text`, cut to `size`.
 */
void perf_map_normalise(const char *name, char *text, size_t size);

#endif
