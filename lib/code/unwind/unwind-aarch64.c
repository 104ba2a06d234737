// SPDX-License-Identifier: LGPL-2.1-or-later
#include <elf.h>

#include "code/unwind/unwind-state.h"

enum { X19 = 19, FRAME_POINTER = 29, LINK_REGISTER, STACK_POINTER, PROGRAM_COUNTER };

/* struct rt_sigframe, at the stack pointer after the handler has returned: siginfo, then ucontext. Its sigcontext is
 * aligned to 16 bytes and begins with the fault address. */
#define GENERAL_REGISTER(n) (128 + 176 + 8 + 8 * (n))

#define FOUR(n)                                                                                                        \
	[n] = GENERAL_REGISTER(n), [(n) + 1] = GENERAL_REGISTER((n) + 1), [(n) + 2] = GENERAL_REGISTER((n) + 2),       \
	[(n) + 3] = GENERAL_REGISTER((n) + 3)

const struct unwind_rules unwind_rules_aarch64 = {
    .elf_machine = EM_AARCH64,
    .register_count = PROGRAM_COUNTER + 1,
    .instruction_pointer = PROGRAM_COUNTER,
    .stack_pointer = STACK_POINTER,
    .frame_pointer = FRAME_POINTER,
    .link_register = LINK_REGISTER,
    .preserved = ((1ULL << (FRAME_POINTER + 1)) - 1) & ~((1ULL << X19) - 1),
    .address_mask = (1ULL << 48) - 1,
    .word = 8,
    .saved_frame_pointer = 0,
    .saved_return_address = 8,
    .frame_end = 16,
    .signal_registers = {FOUR(0), FOUR(4), FOUR(8), FOUR(12), FOUR(16), FOUR(20), FOUR(24),
			 FOUR(28), [PROGRAM_COUNTER] = GENERAL_REGISTER(PROGRAM_COUNTER)},
};
