/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The row of an address that no unwind table describes, read off the instructions: whatever path they take, what the
 * function does to the stack pointer before it returns tells where the return address is, and what it restores tells
 * where the registers are saved. So neither the function's beginning need be known, nor its name.
 */
#ifndef CODE_UNWIND_INSTRUCTION_ANALYSIS_H
#define CODE_UNWIND_INSTRUCTION_ANALYSIS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "code/elf/disassembly.h"
#include "code/unwind/cfi-rows.h"

#define EPILOGUE_REGISTERS 16

struct epilogue {
	struct cfi_row row; /* its rules are those below: valid at this place only, see epilogue_row() */
	struct cfi_rule rules[EPILOGUE_REGISTERS + 1];
};

struct epilogue_code {
	/* At most `size` bytes of code at `address`, *code_ret valid until the next call; 0: none. */
	size_t (*read)(void *context, uint64_t address, size_t size, const uint8_t **code_ret);
	/* Whether a function is known to begin at `address`: a call right before it does not return. NULL: nobody
	 * knows. */
	bool (*begins)(void *context, uint64_t address);
	void *context;
	/*
	 * The code has no frame of its own but runs in that of another function, which has jumped to it and which it
	 * leaves to by jumps through registers and memory: the row of that function. NULL: it has.
	 */
	const struct cfi_row *host;
};

/*
 * `pads_inside`: padding behind a call may be inside a function, as compilers of Java align their calls; else such a
 * call does not return.
 *
 * Where every path loads the stack pointer from elsewhere before it can return, the row says that the caller is on
 * another stack.
 *
 * False: no path of bounded length returns, or the stack pointer cannot be followed (x86-64 only).
 */
bool epilogue_find(struct disassembly *disassembly, const struct epilogue_code *code, uint64_t address,
		   bool is_return_address, bool pads_inside, struct epilogue *epilogue_ret);

/* The row, wherever the epilogue has been copied to. */
const struct cfi_row *epilogue_row(struct epilogue *epilogue);

/* How far a function goes of which only the beginning is known: as far as its instructions lead on. */

#define FUNCTION_RANGE_MAX 65536

/* Maximum length of a function if its instructions do not show the end. */
#define FUNCTION_RANGE_GUESSED 4096

/*
 * The end of the function at `start`, at most `limit`: behind an instruction after which nothing runs, when no branch
 * before it leads further.
 */
uint64_t function_range_find(struct disassembly *disassembly, const struct epilogue_code *code, uint64_t start,
			     uint64_t limit);

#endif
