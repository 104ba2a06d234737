// SPDX-License-Identifier: LGPL-2.1-or-later
#include "trace/format/architecture.h"

/* Registers: perf's numbers from asm/perf_regs.h of x86, DWARF's from the AMD64 ABI, figure 3.36. */

#define X86_64_MACHINE 62 /* EM_X86_64 */
#define X86_64_REGISTERS 24

/* ax, bx, cx, dx, si, di, bp, sp, ip, flags, the segments cs to gs, r8 to r15 */
static const int8_t x86_64_to_dwarf[X86_64_REGISTERS] = {
    0, 3, 2, 1, 4, 5, 6, 7, 16, -1, -1, -1, -1, -1, -1, -1, 8, 9, 10, 11, 12, 13, 14, 15,
};

static const char *const x86_64_names[REGISTER_NUMBERS] = {
    "rax", "rdx", "rcx", "rbx", "rsi", "rdi", "rbp", "rsp", "r8", "r9", "r10", "r11", "r12", "r13", "r14", "r15", "rip",
};

const struct architecture architecture_x86_64 = {
    .name = "x86_64",
    .elf_machine = X86_64_MACHINE,
    .perf_to_dwarf = x86_64_to_dwarf,
    .register_names = x86_64_names,
    .perf_register_count = X86_64_REGISTERS,
    .address_mask = UINT64_MAX,
    .argument_registers = {5, 4, 1, 10, 8, 9}, /* rdi, rsi, rdx, r10, r8, r9 */
    .instruction_pointer = 16,
    .stack_pointer = 7,
    .frame_pointer = 6,
    .frame_registers = 0x1c0,	 /* bp, sp, ip */
    .saved_registers = 0xf00002, /* bx, r12 to r15 */
};

/* Registers: perf's from asm/perf_regs.h of arm64, DWARF's from "DWARF for the Arm 64-bit Architecture", 4.1. */

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
