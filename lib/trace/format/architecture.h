/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Everything that depends on the processor architecture when records are written and read: one constant description per
 * architecture, and no #ifdef elsewhere. To port: add a description with every field, add it to architecture_find(),
 * record a golden file, and see code/unwind/unwind-state.h. */
#pragma once

#include "trace/format/event.h"

struct architecture {
	const char *name;     /* as in uname -m and the ARCH feature */
	uint16_t elf_machine; /* EM_* */
	/* perf register number (bit in sample_regs_user) -> DWARF number, -1: not used; perf_register_count entries. */
	const int8_t *perf_to_dwarf;
	const char *const *register_names; /* by DWARF number; REGISTER_NUMBERS entries, NULL: none */
	unsigned perf_register_count;
	uint8_t argument_registers[6]; /* DWARF numbers at the call's exit */
	/* The result overwrites the first argument (aarch64): it is recorded at the call's entry. */
	bool first_argument_lost;
	/* The kernel ignores the other bits of the address in the first argument of a call (aarch64: its tag). */
	uint64_t address_mask;
	uint8_t instruction_pointer, stack_pointer, frame_pointer; /* DWARF numbers */
	/* perf masks: the registers that locate the stack, and those that unwinding also needs */
	uint64_t frame_registers;
	uint64_t saved_registers;
};

extern const struct architecture architecture_x86_64;

/* By the ARCH feature's text, which is the name that uname(2) has; NULL: none. */
const struct architecture *architecture_find(const char *name);

/* perf mask of the registers that hold the first `count` arguments of a call. */
uint64_t architecture_argument_mask(const struct architecture *architecture, unsigned count);
