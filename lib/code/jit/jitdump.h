/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* jit-PID.dump: a runtime's record of the code that it generates, with timestamps, source lines, unwind rows and the
 * code itself. For the format see tools/perf/Documentation/jitdump-specification.txt in the kernel tree. */
#pragma once

#include "code/jit/code-timeline.h"
#include "code/unwind/cfi.h"

struct jitdump;

/*
 * Borrows the bytes. Ignores a truncated record at the end, which every file of a running process may have, and
 * everything after a record with an invalid size. `clock_end_ns`: end of the recording on its clock. A file with later
 * timestamps, or with TSC timestamps, uses another clock, and its timestamps are ignored. Returns an error for another
 * byte order or an unknown version.
 */
struct mmt_error *jitdump_create(const void *data, size_t size, uint64_t clock_end_ns,
				 struct jitdump **dump_ret) MMT_MUST_CHECK;
void jitdump_destroy(struct jitdump *dump);

struct jitdump_stats {
	size_t dropped;	  /* ranges over the limit */
	size_t refused;	  /* invalid records, skipped */
	size_t unread;	  /* bytes after a truncated record */
	bool other_clock; /* its timestamps are ignored */
};
struct jitdump_stats jitdump_stats(const struct jitdump *dump);

/* The code at `address` at this time, see code_timeline_find(). */
uint32_t jitdump_find(struct jitdump *dump, uint64_t address, uint64_t time_ns);

/* See code_timeline_epoch(). */
uint64_t jitdump_epoch(struct jitdump *dump, uint64_t time_ns);

struct named_code jitdump_code(const struct jitdump *dump, uint32_t number);

/* Source line of an address in that code; false: unknown. */
bool jitdump_line(const struct jitdump *dump, uint32_t number, uint64_t address, const char **file_ret,
		  uint32_t *line_ret);

/* The row that covers an address in that code; NULL: none. */
const struct cfi_row *jitdump_cfi(struct jitdump *dump, uint32_t number, uint64_t address);
