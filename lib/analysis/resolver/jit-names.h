/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Symbolizes the JIT code of one process from recorded perf maps and jitdumps, by address and time. */
#ifndef ANALYSIS_RESOLVER_JIT_NAMES_H
#define ANALYSIS_RESOLVER_JIT_NAMES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/errors.h"
#include "code/unwind/cfi-rows.h"
#include "trace/read/reader.h"

struct jit_names;

/* Borrows the metadata. */
struct mmt_error *jit_names_create(const struct reader_metadata *metadata, int32_t pid,
				   struct jit_names **names_ret) MMT_MUST_CHECK;
void jit_names_destroy(struct jit_names *names);

/*
 * What is at `address` at this time, in the program that the process has run since `program_ns` (0: from the
 * beginning): a number, 0: nothing that is known. As code_timeline_find(); of a jitdump before a perf map. Names that
 * programs before it wrote are not its own.
 */
uint32_t jit_names_find(struct jit_names *names, uint64_t address, uint64_t time_ns, uint64_t program_ns);

/* A number that differs when some address may have another answer than at the last time. */
uint64_t jit_names_epoch(struct jit_names *names, uint64_t time_ns);

struct jit_name {
	const char *name; /* as the runtime wrote it; borrowed, as all here */
	uint64_t start, size;
	const uint8_t *code; /* from `start` on; NULL: not known */
	size_t code_size;
};

/* Of a number other than 0. */
struct jit_name jit_names_describe(const struct jit_names *names, uint32_t number);

/* Nothing took its place until the recording ended, in the program that the process has run since `program_ns`. */
bool jit_names_is_last(struct jit_names *names, uint32_t number, uint64_t address, uint64_t program_ns);

/* The source file of an address in it, NULL: not known. All the lines are searched: for what is shown only. */
const char *jit_names_line(const struct jit_names *names, uint32_t number, uint64_t address, uint32_t *line_ret);

/* The row that covers an address of it; NULL: none. */
const struct cfi_row *jit_names_cfi(struct jit_names *names, uint32_t number, uint64_t address);

/* What the names are worth. */
struct jit_names_state {
	bool has_perf_map, has_jitdump;
	size_t dropped_lines;	     /* of the perf map: more than can be held */
	size_t lost_records;	     /* of the jitdumps: that lie, or are more than can be held */
	size_t unread_bytes;	     /* of them: from a record on that is not whole */
	bool other_clock;	     /* a jitdump's times cannot be used */
	const char *jitdump_failure; /* why one is not used; NULL: none */
};
struct jit_names_state jit_names_state(const struct jit_names *names);

#endif
