/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Computes the row of an address without unwind tables from the instructions. Whatever path they take, what the
 * function does to the stack pointer before it returns shows where the return address is, and what it restores shows
 * where registers are saved. Neither the start of the function nor its name is needed. */
#pragma once

#include "code/elf/disassembly.h"
#include "code/unwind/cfi.h"

#define DEDUCED_REGISTERS 16

struct deduced_row {
	struct cfi_row row; /* refers to the rules below: valid only in place, see deduced_row_get() */
	struct cfi_rule rules[DEDUCED_REGISTERS + 1];
};

struct analyzed_code {
	/* Returns up to `size` bytes of code at `address`; *code_ret is valid until the next call. 0: none. */
	size_t (*read)(void *context, uint64_t address, size_t size, const uint8_t **code_ret);
	/* Whether a function is known to begin at `address`: a call right before it does not return. NULL: unknown. */
	bool (*begins)(void *context, uint64_t address);
	void *context;
	/* The code has no frame of its own but runs in the frame of a host function, which jumps to it. The code
	 * returns there by jumps through registers and memory. This is the row of the host function; NULL: the code has
	 * its own frame. */
	const struct cfi_row *host;
};

/*
 * `pads_inside`: there may be padding after a call inside a function, because Java compilers align calls. Otherwise
 * padding after a call means that the call does not return.
 *
 * If every path sets the stack pointer to a value from elsewhere before it can return, the row marks the caller as
 * being on another stack.
 *
 * False: no path of bounded length returns, or the stack pointer cannot be tracked (x86-64 only).
 */
bool deduced_row_find(struct disassembly *disassembly, const struct analyzed_code *code, uint64_t address,
		      bool is_return_address, bool pads_inside, struct deduced_row *deduced_ret);

/* The row; valid until `deduced` is moved or freed. */
const struct cfi_row *deduced_row_get(struct deduced_row *deduced);

/* Finds the end of a function with a known start by following its instructions. */

/* Maximum length of a function if its instructions do not show the end. */
#define FUNCTION_RANGE_GUESSED 4096

/* The end of the function at `start`, at most `limit`: after an instruction that does not continue, if no earlier
 * branch leads beyond it. */
uint64_t function_range_find(struct disassembly *disassembly, const struct analyzed_code *code, uint64_t start,
			     uint64_t limit);
