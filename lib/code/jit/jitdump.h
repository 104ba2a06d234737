/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * jit-PID.dump: what a runtime writes of the code that it generates, with times, source lines, unwind rows and the code
 * itself. The format is that of the kernel tree's tools/perf/Documentation/jitdump-specification.txt.
 */
#ifndef CODE_JIT_JITDUMP_H
#define CODE_JIT_JITDUMP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/errors.h"
#include "code/unwind/cfi-rows.h"

struct jitdump;

/*
 * Borrows the bytes. What is cut off at the end, as in every file of a process that still runs, is done without; so is
 * everything behind a record that lies about its size. `clock_end_ns`: when the recording ended on its clock; a file
 * with a later time, or with those of the processor's own counter, has another clock: its times say nothing then.
 * Errors: no jitdump of this machine's byte order and known version.
 */
struct mmt_error *jitdump_create(const void *data, size_t size, uint64_t clock_end_ns,
				 struct jitdump **dump_ret) MMT_MUST_CHECK;
void jitdump_destroy(struct jitdump *dump);

struct jitdump_stats {
	size_t loads, moves, debug_infos, unwinding_infos, closes, others;
	size_t dropped;	  /* ranges: more than can be held */
	size_t refused;	  /* records that are not what they say, passed over */
	size_t unread;	  /* bytes from a record on that is not whole */
	bool truncated;	  /* the last record is not whole */
	bool other_clock; /* its times are not used */
};
struct jitdump_stats jitdump_stats(const struct jitdump *dump);

#define JITDUMP_NONE UINT32_MAX

/* The code at `address` at this time, as code_timeline_find() has it; JITDUMP_NONE: none. */
uint32_t jitdump_find(struct jitdump *dump, uint64_t address, uint64_t time_ns);

/* As code_timeline_epoch(). */
uint64_t jitdump_epoch(struct jitdump *dump, uint64_t time_ns);

/* When it was written down; 0: not known. */
uint64_t jitdump_time(const struct jitdump *dump, uint32_t number);

struct jitdump_code {
	const char *name; /* as everything here borrowed from the data */
	uint64_t start, size;
	const uint8_t *bytes; /* `size` of them; NULL: none */
};
struct jitdump_code jitdump_code(const struct jitdump *dump, uint32_t number);

/* Source line of an address in that code; false: not known. */
bool jitdump_line(const struct jitdump *dump, uint32_t number, uint64_t address, const char **file_ret,
		  uint32_t *line_ret);

/* The row that covers an address of that code; NULL: none. */
const struct cfi_row *jitdump_cfi(struct jitdump *dump, uint32_t number, uint64_t address);

#endif
