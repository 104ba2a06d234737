/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * /tmp/perf-PID.map: names of generated code by absolute address, one "START SIZE NAME" a line, hexadecimal with or
 * without 0x. Later lines win byte by byte.
 */
#ifndef CODE_PERF_MAP_H
#define CODE_PERF_MAP_H

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

struct perf_map;

struct perf_map_stats {
	size_t lines, used, garbage; /* garbage: lines that are no entry */
};

/* Parse a copy; garbage lines are counted and passed over, a last line without newline counts unless it is cut inside
 * the numbers. Copies what it needs. */
struct mmt_error *perf_map_create(const void *text, size_t size, struct perf_map **map_ret) MMT_MUST_CHECK;
void perf_map_destroy(struct perf_map *map);

/* Name at `address`, and the start of its code; NULL: none. Borrowed. */
const char *perf_map_find(const struct perf_map *map, uint64_t address, uint64_t *start_ret);

struct perf_map_stats perf_map_stats(const struct perf_map *map);

/*
 * Name for grouping and diffing: without tier suffix ("[OptimizedTier1]", "[QuickJitted]" ...), without run-specific
 * addresses (the MT comment of IL stubs). Written into `text`, cut to `size`.
 */
void perf_map_normalise(const char *name, char *text, size_t size);

#endif
