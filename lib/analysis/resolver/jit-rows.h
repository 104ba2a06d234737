/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The recorded bytes of the JIT code of one program: how to unwind it, and where it calls. They were read only now and
 * then, and are those that were read last, so a sample's code may differ: check every answer against the stack. */
#pragma once

#include "code/elf/module.h"
#include "trace/sections/jit-code.h"

struct jit_rows;

/* For one program of `code`. Borrows all arguments. NULL: out of memory. */
struct jit_rows *jit_rows_create(const struct jit_code *code, const struct jit_code_program *program,
				 struct modules *modules);
/* Accepts NULL, as do the functions below. */
void jit_rows_destroy(struct jit_rows *rows);

/* The code runs in the frame of a function with this row: see struct analyzed_code. Call this before asking for rows.
 * NULL: unknown, keep the previous one. */
void jit_rows_use_host(struct jit_rows *rows, const struct cfi_row *host);

/* The row of an address, or of the call before it, unreliable. `start` of the method, 0: unknown. NULL: none. */
const struct cfi_row *jit_rows_find(struct jit_rows *rows, uint64_t start, uint64_t address, bool is_return_address);

/* Whether the function at `start` sets up a frame pointer before `address`. */
bool jit_rows_keep_frame_pointer(const struct jit_rows *rows, uint64_t start, uint64_t address);

/* Same result as module_follows_call(). */
int jit_rows_follow_call(const struct jit_rows *rows, uint64_t return_address);
