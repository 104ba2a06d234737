/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Symbolizes the JIT code of one process from recorded perf maps and jitdumps, by address and time. */
#ifndef ANALYSIS_RESOLVER_RECORDED_JIT_CODE_H
#define ANALYSIS_RESOLVER_RECORDED_JIT_CODE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/errors.h"
#include "code/elf/module.h"
#include "code/unwind/cfi.h"
#include "trace/read/reader.h"

struct jit_names;

/* Borrows the metadata. */
struct mmt_error *jit_names_create(const struct reader_metadata *metadata, int32_t pid,
				   struct jit_names **names_ret) MMT_MUST_CHECK;
void jit_names_destroy(struct jit_names *names);

/*
 * Find the JIT code at `address` at this time, in the program that the process has run since `program_ns` (0: from the
 * beginning). Returns a number; 0: unknown. See code_timeline_find(). Jitdumps come before perf maps. Names
 * written by earlier programs of the process do not count.
 */
uint32_t jit_names_find(struct jit_names *names, uint64_t address, uint64_t time_ns, uint64_t program_ns);

/* A number that changes whenever the answer for some address may change. */
uint64_t jit_names_epoch(struct jit_names *names, uint64_t time_ns);

struct jit_name {
	const char *name; /* as written by the runtime; borrowed, as all pointers here */
	uint64_t start, size;
	const uint8_t *code; /* from `start` on; NULL: unknown */
	size_t code_size;
};

/* `number` must not be 0. */
struct jit_name jit_names_describe(const struct jit_names *names, uint32_t number);

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

/* The recorded bytes of a process's JIT code: how to unwind it, and where it calls. They were read only now and then,
 * so a sample's code may differ: check every answer against the stack. */

struct copied_code;

/* For one program of `copies`. Borrows all arguments. */
struct mmt_error *copied_code_create(const struct code_copies *copies, const struct process_code *process,
				     struct modules *modules, struct copied_code **copied_ret) MMT_MUST_CHECK;
/* Accepts NULL, as do the functions below. */
void copied_code_destroy(struct copied_code *copied);

/* The code runs in the frame of a function with this row: see struct analyzed_code. Call this before asking for rows.
 * NULL: unknown, keep the previous one. */
void copied_code_use_host(struct copied_code *copied, const struct cfi_row *host);

/* Select the code for the next queries: as first seen at or after this time. Times should be mostly ascending. If they
 * go back and forth so often that it would take too long, the code becomes unknown for good. */
void copied_code_go_to(struct copied_code *copied, uint64_t time_ns);
/* The code became unknown for that reason: queries about callers were not answered. */
bool copied_code_gave_up(const struct copied_code *copied);
/* A number for the selected version of the code. */
uint64_t copied_code_epoch(const struct copied_code *copied);

/* The row of an address, or of the instruction before a return address: from an analysis, unreliable. `start` of the
 * method, 0: unknown. NULL: none. */
const struct cfi_row *copied_code_row(struct copied_code *copied, uint64_t start, uint64_t address,
				      bool is_return_address);

/* Whether the function at `start` sets up a frame pointer before `address`. */
bool copied_code_keeps_frame_pointer(struct copied_code *copied, uint64_t start, uint64_t address);

/* Same result as module_follows_call(). */
int copied_code_follows_call(struct copied_code *copied, uint64_t return_address);

#endif
