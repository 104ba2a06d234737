// SPDX-License-Identifier: LGPL-2.1-or-later
#include "trace/format/architecture.h"

#include <stdlib.h>
#include <string.h>

/* Register numbers: perf's from asm/perf_regs.h of x86, DWARF's from the System V ABI, AMD64 supplement, figure 3.36.
 */

#define X86_64_MACHINE 62 /* EM_X86_64 */

enum perf_register {
	PERF_AX,
	PERF_BX,
	PERF_CX,
	PERF_DX,
	PERF_SI,
	PERF_DI,
	PERF_BP,
	PERF_SP,
	PERF_IP,
	PERF_FLAGS,
	PERF_CS,
	PERF_SS,
	PERF_DS,
	PERF_ES,
	PERF_FS,
	PERF_GS,
	PERF_R8,
	PERF_R9,
	PERF_R10,
	PERF_R11,
	PERF_R12,
	PERF_R13,
	PERF_R14,
	PERF_R15,
	PERF_REGISTERS,
};

enum dwarf_register {
	DWARF_RAX,
	DWARF_RDX,
	DWARF_RCX,
	DWARF_RBX,
	DWARF_RSI,
	DWARF_RDI,
	DWARF_RBP,
	DWARF_RSP,
	DWARF_R8,
	DWARF_R9,
	DWARF_R10,
	DWARF_R11,
	DWARF_R12,
	DWARF_R13,
	DWARF_R14,
	DWARF_R15,
	DWARF_RETURN_ADDRESS,
};

static const int8_t x86_64_to_dwarf[PERF_REGISTERS] = {
    [PERF_AX] = DWARF_RAX,  [PERF_BX] = DWARF_RBX,  [PERF_CX] = DWARF_RCX,
    [PERF_DX] = DWARF_RDX,  [PERF_SI] = DWARF_RSI,  [PERF_DI] = DWARF_RDI,
    [PERF_BP] = DWARF_RBP,  [PERF_SP] = DWARF_RSP,  [PERF_IP] = DWARF_RETURN_ADDRESS,
    [PERF_FLAGS] = -1,	    [PERF_CS] = -1,	    [PERF_SS] = -1,
    [PERF_DS] = -1,	    [PERF_ES] = -1,	    [PERF_FS] = -1,
    [PERF_GS] = -1,	    [PERF_R8] = DWARF_R8,   [PERF_R9] = DWARF_R9,
    [PERF_R10] = DWARF_R10, [PERF_R11] = DWARF_R11, [PERF_R12] = DWARF_R12,
    [PERF_R13] = DWARF_R13, [PERF_R14] = DWARF_R14, [PERF_R15] = DWARF_R15,
};

static const char *const x86_64_names[REGISTER_NUMBERS] = {
    "rax", "rdx", "rcx", "rbx", "rsi", "rdi", "rbp", "rsp", "r8", "r9", "r10", "r11", "r12", "r13", "r14", "r15", "rip",
};

#define BIT(perf_register) (1ULL << (perf_register))

const struct architecture architecture_x86_64 = {
    .name = "x86_64",
    .elf_machine = X86_64_MACHINE,
    .perf_to_dwarf = x86_64_to_dwarf,
    .register_names = x86_64_names,
    .perf_register_count = PERF_REGISTERS,
    .address_mask = UINT64_MAX,
    .argument_registers = {DWARF_RDI, DWARF_RSI, DWARF_RDX, DWARF_R10, DWARF_R8, DWARF_R9},
    .instruction_pointer = DWARF_RETURN_ADDRESS,
    .stack_pointer = DWARF_RSP,
    .frame_pointer = DWARF_RBP,
    .frame_registers = BIT(PERF_BP) | BIT(PERF_SP) | BIT(PERF_IP),
    .saved_registers = BIT(PERF_BX) | BIT(PERF_R12) | BIT(PERF_R13) | BIT(PERF_R14) | BIT(PERF_R15),
};

/* Register numbers: perf's from asm/perf_regs.h of arm64, DWARF's from "DWARF for the Arm 64-bit Architecture",
 * section 4.1. */

#define AARCH64_MACHINE 183 /* EM_AARCH64 */
#define AARCH64_FRAME_POINTER 29
#define AARCH64_LINK_REGISTER 30
#define AARCH64_STACK_POINTER 31
#define AARCH64_PROGRAM_COUNTER 32
#define AARCH64_REGISTERS 33

/* x0 to x30 and sp have the same numbers in both. The program counter's number does not occur in tables, where it is
 * the link register's value. */
static const int8_t aarch64_to_dwarf[AARCH64_REGISTERS] = {
    0,	1,  2,	3,  4,	5,  6,	7,  8,	9,  10, 11, 12, 13, 14, 15, 16,
    17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31, 32,
};

static const char *const aarch64_names[REGISTER_NUMBERS] = {
    "x0",  "x1",  "x2",	 "x3",	"x4",  "x5",  "x6",  "x7",  "x8",  "x9",  "x10",
    "x11", "x12", "x13", "x14", "x15", "x16", "x17", "x18", "x19", "x20", "x21",
    "x22", "x23", "x24", "x25", "x26", "x27", "x28", "x29", "x30", "sp",  "pc",
};

/* x19 to x28 are callee-saved. */
#define AARCH64_CALLEE_SAVED 0x1ff80000ULL
#define AARCH64_FRAME                                                                                                  \
	((1ULL << AARCH64_FRAME_POINTER) | (1ULL << AARCH64_LINK_REGISTER) | (1ULL << AARCH64_STACK_POINTER) |         \
	 (1ULL << AARCH64_PROGRAM_COUNTER))

static const struct architecture architecture_aarch64 = {
    .name = "aarch64",
    .elf_machine = AARCH64_MACHINE,
    .perf_to_dwarf = aarch64_to_dwarf,
    .register_names = aarch64_names,
    .perf_register_count = AARCH64_REGISTERS,
    .argument_registers = {0, 1, 2, 3, 4, 5},
    .first_argument_lost = true,
    .address_mask = (1ULL << 56) - 1,
    .instruction_pointer = AARCH64_PROGRAM_COUNTER,
    .stack_pointer = AARCH64_STACK_POINTER,
    .frame_pointer = AARCH64_FRAME_POINTER,
    .frame_registers = AARCH64_FRAME,
    .saved_registers = AARCH64_CALLEE_SAVED,
};

static const struct architecture *const architectures[] = {&architecture_x86_64, &architecture_aarch64};

const struct architecture *architecture_find(const char *name)
{
	for (size_t i = 0; i < sizeof(architectures) / sizeof(architectures[0]); i++) {
		if (strcmp(architectures[i]->name, name) == 0)
			return architectures[i];
	}
	return NULL;
}

uint64_t architecture_argument_mask(const struct architecture *architecture, unsigned count)
{
	uint64_t mask = 0;

	for (unsigned i = 0; i < architecture->perf_register_count; i++) {
		for (unsigned argument = 0; argument < count; argument++) {
			if (architecture->perf_to_dwarf[i] == architecture->argument_registers[argument])
				mask |= 1ULL << i;
		}
	}
	return mask;
}
