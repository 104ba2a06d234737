/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The section FEATURE_MMTRACE_CODE: the latest bytes of JIT code, by process and program. lib/capture/jit-code reads
 * them from the processes, analysis/resolver/jit-rows.c unwinds with them. */
#pragma once

#include "trace/sections/section-codec.h"

/* Contiguous bytes. */
struct jit_code_run {
	uint64_t start; /* address in the process */
	size_t size;
	size_t offset; /* in jit_code.bytes */
};

struct jit_code_program {
	int32_t pid;
	uint64_t until_ns; /* when another program replaced it in the process, or another process got its PID;
			      UINT64_MAX: never */
	VECTOR(struct jit_code_run) runs; /* ascending, disjoint */
};

struct jit_code {
	VECTOR(struct jit_code_program) programs;
	struct buffer bytes;
};

/* The kernel's names for memory that belongs to no module: executable memory there is JIT code. */
bool jit_code_is_path(const char *path);

/* The same, and modules of .NET: their precompiled code has no frame pointers and no known unwind tables. */
bool jit_code_is_wanted(const char *path);

extern const struct section_kind section_code; /* only for section_read() */

/* Accepts a zeroed value. */
void jit_code_deinit(void *value);

/* A page of a program, compressed by compressor_frame(). */
struct jit_code_page {
	uint64_t address;
	const uint8_t *frame;
	size_t frame_bytes;
};

/* Begins the section, which contains this many programs. packing_end() ends it. */
struct mmt_error *jit_code_encode(struct section_packing *packing, size_t programs,
				  struct buffer *buffer) MMT_MUST_CHECK;
/* The pages ascend, and are of one size. */
struct mmt_error *jit_code_encode_program(struct section_packing *packing, int32_t pid, uint64_t until_ns,
					  const struct jit_code_page *pages, size_t count,
					  size_t page_bytes) MMT_MUST_CHECK;

/* The code of the program that began in the process at this time; NULL: none. */
const struct jit_code_program *jit_code_find(const struct jit_code *code, int32_t pid, uint64_t began_ns);

/* At most `size` bytes from `address` on. Returns their number, 0: none. Borrowed. */
size_t jit_code_at(const struct jit_code *code, const struct jit_code_program *program, uint64_t address, size_t size,
		   const uint8_t **code_ret);

/* At most `size` bytes that end at `address`. */
size_t jit_code_before(const struct jit_code *code, const struct jit_code_program *program, uint64_t address,
		       size_t size, const uint8_t **code_ret);
