/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The section FEATURE_MMTRACE_CODE: the latest bytes of JIT code, by process and program, and where they replaced other
 * code. lib/capture/jit-code reads them from the processes, analysis/resolver/jit-rows.h unwinds with them.
 */
#ifndef TRACE_SECTIONS_JIT_CODE_H
#define TRACE_SECTIONS_JIT_CODE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/bytes.h"
#include "base/errors.h"
#include "base/vector.h"

/* Contiguous bytes. */
struct jit_code_run {
	uint64_t start; /* address in the process */
	size_t size;
	size_t offset; /* in jit_code.bytes */
};

/* Other code was at these addresses before. */
struct jit_code_change {
	uint64_t start, size; /* within one run */
	uint64_t until_ns;    /* when the other code was last seen */
};

struct jit_code_program {
	int32_t pid;
	uint64_t until_ns; /* when another program replaced it in the process, or another process got its PID;
			      UINT64_MAX: never */
	VECTOR(struct jit_code_run) runs;	/* ascending, disjoint */
	VECTOR(struct jit_code_change) changes; /* ascending, disjoint */
};

struct jit_code {
	VECTOR(struct jit_code_program) programs;
	struct buffer bytes;
};

/* The kernel's names for memory that belongs to no module: executable memory there is JIT code. */
bool jit_code_is_path(const char *path);

/* The same, and modules of .NET: their precompiled code has no frame pointers and no unwind tables that mmtrace
 * reads. */
bool jit_code_is_wanted(const char *path);

/* Accepts a zeroed value. */
void jit_code_deinit(struct jit_code *code);

/* Adds the next bytes of a program, which are at `offset` in jit_code.bytes. Bytes below the end of its last run are
 * ignored. False: out of memory. */
bool jit_code_add(struct jit_code_program *program, uint64_t start, size_t size, size_t offset);

/* Source of bytes that the recorder keeps elsewhere: appends at least one of the `size` bytes at `offset` to `plain`.
 */
struct jit_code_source {
	void *context;
	struct mmt_error *(*read)(void *context, size_t offset, size_t size, struct buffer *plain);
};

/* As for the other compressed sections, see sections.h, but in several frames: they are never all in memory. `source`:
 * NULL for code->bytes. */
struct mmt_error *jit_code_encode(const struct jit_code *code, const struct jit_code_source *source,
				  struct buffer *buffer) MMT_MUST_CHECK;
struct mmt_error *jit_code_decode(struct bytes *bytes, size_t *room, struct jit_code *code_ret) MMT_MUST_CHECK;

/* The code of the program that began in the process at this time; NULL: none. */
const struct jit_code_program *jit_code_find(const struct jit_code *code, int32_t pid, uint64_t began_ns);

/* At most `size` bytes from `address` on. Returns their number, 0: none. Borrowed. */
size_t jit_code_at(const struct jit_code *code, const struct jit_code_program *program, uint64_t address, size_t size,
		   const uint8_t **code_ret);

/* At most `size` bytes that end at `address`. */
size_t jit_code_before(const struct jit_code *code, const struct jit_code_program *program, uint64_t address,
		       size_t size, const uint8_t **code_ret);

/* When other code was last seen at this address; 0: never. */
uint64_t jit_code_replaced_ns(const struct jit_code_program *program, uint64_t address);

#endif
