/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * FEATURE_MMTRACE_CODE: the bytes of JIT code, as they were last seen, by process and program.  Other code that
 * was seen at a place before is among their changes.
 */
#ifndef TRACE_SECTIONS_CODE_COPIES_H
#define TRACE_SECTIONS_CODE_COPIES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buffer.h"
#include "base/bytes.h"
#include "base/errors.h"
#include "base/vector.h"

/* Bytes one after the other. */
struct code_run {
	uint64_t start; /* address in the process */
	size_t size;
	size_t offset; /* in code_copies.bytes */
};

/* What was there before other code was. */
struct code_change {
	uint64_t start; /* within one run */
	size_t size;
	size_t offset;	   /* in code_copies.bytes */
	uint64_t until_ns; /* when it was seen last */
};

struct process_code {
	int32_t pid;
	uint64_t until_ns; /* when another program took its place in the process, or another process its number;
			      UINT64_MAX: never */
	VECTOR(struct code_run) runs;	    /* ascending, disjoint */
	VECTOR(struct code_change) changes; /* ascending by time */
};

struct code_copies {
	VECTOR(struct process_code) processes;
	struct buffer bytes;
};

/* Names that the kernel gives to memory which is no module: what is executable there has been generated. */
bool code_copies_is_jit(const char *path);

/* The same, and modules of .NET, whose precompiled code keeps no frame pointers either and has no unwind tables
 * that are read. */
bool code_copies_is_wanted(const char *path);

/* Accepts a zeroed value. */
void code_copies_deinit(struct code_copies *copies);

/* The next bytes of a process, which lie at `offset` in code_copies.bytes; what lies below its last is left out. False:
 * out of memory. */
bool code_copies_add(struct process_code *process, uint64_t start, size_t size, size_t offset);

/* Where the bytes are that a recorder keeps elsewhere: those of a run or a change, by its offset, appended to `plain`.
 */
struct code_source {
	void *context;
	struct mmt_error *(*read)(void *context, size_t offset, struct buffer *plain);
};

/* As the other sections that are compressed, see sections.h, but in several frames: never all of it is in memory.
 * `source`: NULL for copies->bytes. */
struct mmt_error *code_copies_encode(const struct code_copies *copies, const struct code_source *source,
				     struct buffer *buffer) MMT_MUST_CHECK;
struct mmt_error *code_copies_decode(struct bytes *bytes, size_t *room, struct code_copies *copies_ret) MMT_MUST_CHECK;

/* Of the program that began in the process at this time; NULL: none. */
const struct process_code *code_copies_find(const struct code_copies *copies, int32_t pid, uint64_t began_ns);

/* At most `size` bytes from `address` on; their number, 0: none. Borrowed. */
size_t code_copies_at(const struct code_copies *copies, const struct process_code *process, uint64_t address,
		      size_t size, const uint8_t **code_ret);

/* At most `size` bytes that end at `address`. */
size_t code_copies_before(const struct code_copies *copies, const struct process_code *process, uint64_t address,
			  size_t size, const uint8_t **code_ret);

#endif
