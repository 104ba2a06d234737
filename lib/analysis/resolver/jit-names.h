/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Symbolizes the JIT code of one process from recorded perf maps and jitdumps, by address and time. */
#pragma once

#include "code/jit/code-timeline.h"
#include "code/unwind/cfi.h"
#include "trace/read/reader.h"

struct jit_names;

/* Borrows the metadata. */
struct mmt_error *jit_names_create(const struct reader_metadata *metadata, int32_t pid,
				   struct jit_names **names_ret) MMT_MUST_CHECK;
void jit_names_destroy(struct jit_names *names);

/* Find the JIT code at `address` at this time, in the program that the process has run since `program_ns` (0: from the
 * beginning). Returns a number; 0: unknown. See code_timeline_find(). Jitdumps come before perf maps. Names written by
 * earlier programs of the process do not count. */
uint32_t jit_names_find(struct jit_names *names, uint64_t address, uint64_t time_ns, uint64_t program_ns);

/* A number that changes whenever the answer for some address may change. */
uint64_t jit_names_epoch(struct jit_names *names, uint64_t time_ns);

/* `number` must not be 0. */
struct named_code jit_names_describe(const struct jit_names *names, uint32_t number);

/* The source file of an address in it; NULL: unknown. This searches all lines: use it only for displayed frames. */
const char *jit_names_line(const struct jit_names *names, uint32_t number, uint64_t address, uint32_t *line_ret);

/* The row that covers an address in it; NULL: none. */
const struct cfi_row *jit_names_cfi(struct jit_names *names, uint32_t number, uint64_t address);

/* Completeness of the names. */
struct jit_names_state {
	bool has_perf_map, has_jitdump;
	size_t dropped_lines;	     /* lines of the perf map over the limit */
	size_t lost_records;	     /* records of jitdumps that are invalid or over the limit */
	size_t unread_bytes;	     /* bytes of jitdumps after a truncated record */
	bool other_clock;	     /* the timestamps of a jitdump are unusable */
	const char *jitdump_failure; /* why a jitdump is not used; NULL: all are */
};
struct jit_names_state jit_names_state(const struct jit_names *names);
