// SPDX-License-Identifier: LGPL-2.1-or-later
#include <elf.h>

#include "code/unwind/unwind-state.h"

enum { RAX, RDX, RCX, RBX, RSI, RDI, RBP, RSP, R8, R9, R10, R11, R12, R13, R14, R15, RIP };

/* struct ucontext, at the stack pointer after the handler has returned: flags, link and stack, then the general
 * registers. */
#define GENERAL_REGISTER(n) (40 + 8 * (n))

const struct unwind_rules unwind_rules_x86_64 = {
    .elf_machine = EM_X86_64,
    .register_count = RIP + 1,
    .instruction_pointer = RIP,
    .stack_pointer = RSP,
    .frame_pointer = RBP,
    .preserved = 1 << RBX | 1 << RBP | 1 << R12 | 1 << R13 | 1 << R14 | 1 << R15,
    .address_mask = UINT64_MAX,
    .word = 8,
    .return_address_pushed = true,
    .saved_frame_pointer = 0,
    .saved_return_address = 8,
    .frame_end = 16,
    .signal_registers =
	{
	    [R8] = GENERAL_REGISTER(0),
	    [R9] = GENERAL_REGISTER(1),
	    [R10] = GENERAL_REGISTER(2),
	    [R11] = GENERAL_REGISTER(3),
	    [R12] = GENERAL_REGISTER(4),
	    [R13] = GENERAL_REGISTER(5),
	    [R14] = GENERAL_REGISTER(6),
	    [R15] = GENERAL_REGISTER(7),
	    [RDI] = GENERAL_REGISTER(8),
	    [RSI] = GENERAL_REGISTER(9),
	    [RBP] = GENERAL_REGISTER(10),
	    [RBX] = GENERAL_REGISTER(11),
	    [RDX] = GENERAL_REGISTER(12),
	    [RAX] = GENERAL_REGISTER(13),
	    [RCX] = GENERAL_REGISTER(14),
	    [RSP] = GENERAL_REGISTER(15),
	    [RIP] = GENERAL_REGISTER(16),
	},
};
