/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* JIT code over time: perf maps, jitdumps, and what both need. That finds which of many ranges, each with the time it
 * was written, is at an address at a given time. Later ranges replace earlier ones byte by byte. */
#pragma once

#include "base/map.h"
#include "code/unwind/cfi.h"

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

/* Index of the range at `address` at this time: the latest one that existed then. If none existed yet, the first one
 * that follows, because runtimes record JIT code with a delay, some only when they exit. CODE_TIMELINE_NONE: none
 * at any time. */
uint32_t code_timeline_find(const struct code_timeline *timeline, uint64_t address, uint64_t time_ns);

/* A number that is another one whenever the range at some address may be another one. */
uint64_t code_timeline_epoch(const struct code_timeline *timeline, uint64_t time_ns);

/* /tmp/perf-PID.map: names of JIT code by absolute address, one "START SIZE NAME" per line, hexadecimal with or without
 * 0x. Later lines replace earlier ones byte by byte. */

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

/* jit-PID.dump: a runtime's record of the code that it generates, with timestamps, source lines, unwind rows and the
 * code itself. For the format see tools/perf/Documentation/jitdump-specification.txt in the kernel tree. */

struct jitdump_stats {
	size_t dropped;	  /* ranges over the limit */
	size_t refused;	  /* invalid records, skipped */
	size_t unread;	  /* bytes after a truncated record */
	bool other_clock; /* its timestamps are ignored */
};

/* A LOAD record with the info records that precede it. */
struct dumped_code {
	const char *name;
	uint64_t address, size;
	const uint8_t *bytes;
	const uint8_t *lines; /* entries of the DEBUG_INFO record */
	size_t lines_size;
	uint64_t line_count;
	const uint8_t *eh_frame;
	size_t eh_frame_size;
	struct cfi *cfi; /* NULL: not loaded yet, or none */
	bool cfi_made;
};

/* Code at an address; code that was moved has a second one. */
struct placed_code {
	struct timed_range range;
	uint32_t code; /* NO_CODE: the code there was moved away */
	uint32_t order;
};

struct jitdump {
	VECTOR(struct dumped_code) codes;
	VECTOR(struct placed_code) places; /* by time */
	VECTOR(struct timed_range) ranges;
	struct map by_index;	 /* code_index -> code */
	struct dumped_code next; /* info records for the next LOAD */
	struct code_timeline *timeline;
	struct jitdump_stats stats;
	uint64_t last_ns;
};

/* Borrows the bytes. Ignores a truncated record at the end, which every file of a running process may have, and
 * everything after a record with an invalid size. `clock_end_ns`: end of the recording on its clock. A file with later
 * timestamps, or with TSC timestamps, uses another clock, and its timestamps are ignored. Returns an error for another
 * byte order or an unknown version. */
struct mmt_error *jitdump_create(const void *data, size_t size, uint64_t clock_end_ns,
				 struct jitdump **dump_ret) MMT_MUST_CHECK;
void jitdump_destroy(struct jitdump *dump);

/* The code at `address` at this time, see code_timeline_find(). */
uint32_t jitdump_find(struct jitdump *dump, uint64_t address, uint64_t time_ns);

struct named_code jitdump_code(const struct jitdump *dump, uint32_t number);

/* Source line of an address in that code; false: unknown. */
bool jitdump_line(const struct jitdump *dump, uint32_t number, uint64_t address, const char **file_ret,
		  uint32_t *line_ret);

/* The row that covers an address in that code; NULL: none. */
const struct cfi_row *jitdump_cfi(struct jitdump *dump, uint32_t number, uint64_t address);
