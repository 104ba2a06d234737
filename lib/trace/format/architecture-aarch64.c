// SPDX-License-Identifier: LGPL-2.1-or-later
/* Register numbers: perf's from asm/perf_regs.h of arm64, DWARF's from "DWARF for the Arm 64-bit Architecture",
 * section 4.1. */
#include "trace/format/architecture.h"

#define ELF_MACHINE 183 /* EM_AARCH64 */
#define FRAME_POINTER 29
#define LINK_REGISTER 30
#define STACK_POINTER 31
#define PROGRAM_COUNTER 32
#define REGISTERS 33

/* x0 to x30 and sp have the same numbers in both. The program counter's number does not occur in tables, where it is
 * the link register's value. */
static const int8_t perf_to_dwarf[REGISTERS] = {
    0,	1,  2,	3,  4,	5,  6,	7,  8,	9,  10, 11, 12, 13, 14, 15, 16,
    17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31, 32,
};

static const char *const register_names[REGISTER_NUMBERS] = {
    "x0",  "x1",  "x2",	 "x3",	"x4",  "x5",  "x6",  "x7",  "x8",  "x9",  "x10",
    "x11", "x12", "x13", "x14", "x15", "x16", "x17", "x18", "x19", "x20", "x21",
    "x22", "x23", "x24", "x25", "x26", "x27", "x28", "x29", "x30", "sp",  "pc",
};

/* x19 to x28 are callee-saved. */
#define CALLEE_SAVED 0x1ff80000ULL
#define FRAME ((1ULL << FRAME_POINTER) | (1ULL << LINK_REGISTER) | (1ULL << STACK_POINTER) | (1ULL << PROGRAM_COUNTER))

const struct architecture architecture_aarch64 = {
    .name = "aarch64",
    .elf_machine = ELF_MACHINE,
    .perf_to_dwarf = perf_to_dwarf,
    .register_names = register_names,
    .perf_register_count = REGISTERS,
    .argument_registers = {0, 1, 2, 3, 4, 5},
    .first_argument_lost = true,
    .instruction_pointer = PROGRAM_COUNTER,
    .stack_pointer = STACK_POINTER,
    .frame_pointer = FRAME_POINTER,
    .return_address = LINK_REGISTER,
    .frame_registers = FRAME,
    .saved_registers = CALLEE_SAVED,
};
