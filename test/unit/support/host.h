/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The machine that the tests run on, for tests that read their own program. */
#pragma once

#include <elf.h>

#if defined(__aarch64__)
#define HOST_MACHINE EM_AARCH64
/* The address of the next instruction, and the address after a call. */
#define ASSEMBLE_NEXT_ADDRESS(variable) __asm__ volatile("adr %0, .+4" : "=r"(variable))
#define ASSEMBLE_RETURN_ADDRESS(variable) __asm__ volatile("bl 1f\n1: mov %0, x30" : "=r"(variable)::"x30")
#else
#define HOST_MACHINE EM_X86_64
#define ASSEMBLE_NEXT_ADDRESS(variable) __asm__ volatile("lea 0(%%rip), %0" : "=r"(variable))
#define ASSEMBLE_RETURN_ADDRESS(variable) __asm__ volatile("call 1f\n1: pop %0" : "=r"(variable))
#endif
