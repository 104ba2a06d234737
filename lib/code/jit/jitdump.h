/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* jit-PID.dump: a runtime's record of the code that it generates, with timestamps, source lines, unwind rows and the
 * code itself. For the format see tools/perf/Documentation/jitdump-specification.txt in the kernel tree. */
#pragma once

#include "base/map.h"
#include "base/vector.h"
#include "code/jit/code-timeline.h"
#include "code/unwind/cfi.h"

struct jitdump_stats {
	size_t dropped;	  /* ranges over the limit */
	size_t refused;	  /* invalid records, skipped */
	size_t unread;	  /* bytes after a truncated record */
	bool other_clock; /* its timestamps are ignored */
};

#define JITDUMP_NO_CODE UINT32_MAX

/* A LOAD record with the info records that precede it. */
struct jitdump_code {
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
struct jitdump_place {
	struct timed_range range;
	uint32_t code; /* JITDUMP_NO_CODE: the code there was moved away */
	uint32_t order;
};

struct jitdump {
	VECTOR(struct jitdump_code) codes;
	VECTOR(struct jitdump_place) places; /* by time */
	VECTOR(struct timed_range) ranges;
	struct map by_index;	  /* code_index -> code */
	struct jitdump_code next; /* info records for the next LOAD */
	struct code_timeline *timeline;
	struct jitdump_stats stats;
	uint64_t last_ns;
};

/*
 * Borrows the bytes. Ignores a truncated record at the end, which every file of a running process may have, and
 * everything after a record with an invalid size. `clock_end_ns`: end of the recording on its clock. A file with later
 * timestamps, or with TSC timestamps, uses another clock, and its timestamps are ignored. Returns an error for another
 * byte order or an unknown version.
 */
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
