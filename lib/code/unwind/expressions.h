/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Steps through CFI rows with DWARF expressions, using libunwind. */
#ifndef CODE_UNWIND_EXPRESSIONS_H
#define CODE_UNWIND_EXPRESSIONS_H

#include <stdbool.h>
#include <stdint.h>

#include "code/unwind/cfi.h"

struct expressions_registers {
	uint64_t values[CFI_REGISTERS];
	uint64_t known; /* mask */
};

/* The word at `address`; false: not recorded. */
typedef bool expressions_read(void *context, uint64_t address, uint64_t *word_ret);

/*
 * Compute the registers of the caller of the code at `address`. The column of the stack pointer gets the CFA,
 * `return_column` the return address. False: this host's libunwind does not support the architecture, needed data is
 * missing, or no compiler writes such an expression. Time is bounded for any expression.
 */
bool expressions_step(uint16_t elf_machine, const struct cfi_row *row, uint64_t address, expressions_read *read,
		      void *context, const struct expressions_registers *registers,
		      struct expressions_registers *caller_ret);

/* Major version times 256 plus minor version. */
unsigned expressions_library_version(void);

#endif
