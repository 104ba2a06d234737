/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Steps through CFI rows with DWARF expressions, by libunwind. */
#ifndef CODE_UNWIND_EXPRESSIONS_H
#define CODE_UNWIND_EXPRESSIONS_H

#include <stdbool.h>
#include <stdint.h>

#include "code/unwind/cfi-rows.h"

struct expressions_registers {
	uint64_t values[CFI_REGISTERS];
	uint64_t known; /* mask */
};

/* The word at `address`; false: it was not recorded. */
typedef bool expressions_read(void *context, uint64_t address, uint64_t *word_ret);

/*
 * Registers of the caller of the code at `address`, in the column of the stack pointer the CFA, in `return_column` the
 * return address. False: libunwind of this host does not know the architecture, something that is needed is not known,
 * or an expression is not one that a compiler writes. Bounded in time, whatever the expressions are.
 */
bool expressions_step(uint16_t elf_machine, const struct cfi_row *row, uint64_t address, expressions_read *read,
		      void *context, const struct expressions_registers *registers,
		      struct expressions_registers *caller_ret);

/* Major version times 256 plus minor version. */
unsigned expressions_library_version(void);

#endif
