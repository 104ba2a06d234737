// SPDX-License-Identifier: LGPL-2.1-or-later
/* Register numbers: perf's from asm/perf_regs.h of x86, DWARF's from the System V ABI, AMD64 supplement, figure 3.36.
 */
#include "trace/format/architecture.h"

#define ELF_MACHINE 62 /* EM_X86_64 */

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

static const int8_t perf_to_dwarf[PERF_REGISTERS] = {
    [PERF_AX] = DWARF_RAX,  [PERF_BX] = DWARF_RBX,  [PERF_CX] = DWARF_RCX,
    [PERF_DX] = DWARF_RDX,  [PERF_SI] = DWARF_RSI,  [PERF_DI] = DWARF_RDI,
    [PERF_BP] = DWARF_RBP,  [PERF_SP] = DWARF_RSP,  [PERF_IP] = DWARF_RETURN_ADDRESS,
    [PERF_FLAGS] = -1,	    [PERF_CS] = -1,	    [PERF_SS] = -1,
    [PERF_DS] = -1,	    [PERF_ES] = -1,	    [PERF_FS] = -1,
    [PERF_GS] = -1,	    [PERF_R8] = DWARF_R8,   [PERF_R9] = DWARF_R9,
    [PERF_R10] = DWARF_R10, [PERF_R11] = DWARF_R11, [PERF_R12] = DWARF_R12,
    [PERF_R13] = DWARF_R13, [PERF_R14] = DWARF_R14, [PERF_R15] = DWARF_R15,
};

static const char *const register_names[REGISTER_NUMBERS] = {
    "rax", "rdx", "rcx", "rbx", "rsi", "rdi", "rbp", "rsp", "r8", "r9", "r10", "r11", "r12", "r13", "r14", "r15", "rip",
};

#define BIT(perf_register) (1ULL << (perf_register))

const struct architecture architecture_x86_64 = {
    .name = "x86_64",
    .elf_machine = ELF_MACHINE,
    .perf_to_dwarf = perf_to_dwarf,
    .register_names = register_names,
    .perf_register_count = PERF_REGISTERS,
    .argument_registers = {DWARF_RDI, DWARF_RSI, DWARF_RDX, DWARF_R10, DWARF_R8, DWARF_R9},
    .instruction_pointer = DWARF_RETURN_ADDRESS,
    .stack_pointer = DWARF_RSP,
    .frame_pointer = DWARF_RBP,
    .return_address = DWARF_RETURN_ADDRESS,
    .frame_registers = BIT(PERF_BP) | BIT(PERF_SP) | BIT(PERF_IP),
    .saved_registers = BIT(PERF_BX) | BIT(PERF_R12) | BIT(PERF_R13) | BIT(PERF_R14) | BIT(PERF_R15),
};
