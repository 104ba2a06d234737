/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The table of functions (pclntab) that the Go linker writes into every program, stripped or not, for Go 1.16 and
 * later: names, lines, inlined functions, and how deep the stack is at each instruction. It also covers the assembly
 * functions of the runtime, and nothing but Go: C code in a Go program is not in it. */
#pragma once

#include "code/unwind/instruction-analysis.h"

/* Borrows `elf`, whose bytes may be arbitrary. NULL: it has no table, or one of an unknown format; or out of memory.
 * The caller frees it. */
struct go_functions *go_functions_create(Elf *elf);

struct go_function {
	uint64_t start, end;
	const char *name;    /* borrowed from the ELF file; NULL: none */
	bool switches_stack; /* sets the stack pointer to a value that the table does not describe */
	/* Offsets into the table, read by go-functions.c. */
	uint32_t depths, files, lines, inlined, units;
	uint64_t inline_tree; /* address; 0: none */
};

size_t go_functions_count(const struct go_functions *functions);

/* By number, ascending by address unless the table is damaged. False: damaged. */
bool go_functions_get(const struct go_functions *functions, size_t number, struct go_function *function_ret);

/* How to unwind from `address`; see deduced_row_get(). *frame_pointer_ret: the function has set up its frame pointer.
 * A function that switches stacks is left by its frame pointer, which is in the frame of its caller; without one, the
 * row only says that the caller is on another stack. False: the table does not describe this code. */
bool go_functions_row(const struct go_functions *functions, uint64_t address, struct deduced_row *deduced_ret,
		      bool *frame_pointer_ret);

struct go_frame {
	const char *name, *source_file; /* borrowed; NULL: unknown */
	uint32_t source_line;
	bool inlined; /* into the next frame */
};

/* Innermost first. Returns the number of frames, at most `limit`; 0: no function is known there. */
size_t go_functions_frames(const struct go_functions *functions, uint64_t address, struct go_frame *frames_ret,
			   size_t limit);
