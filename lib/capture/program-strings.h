/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Finds the arguments and the environment of a program, which the kernel puts at the upper end of the main thread's stack.
 * A dump that begins in the outermost frames contains them, and environment variables contain passwords and tokens. No
 * frames are there, so unwinding does not need them.
 *
 * From lower addresses to higher ones: argc, the pointers of argv, a null, those of the environment, a null, the
 * auxiliary vector, and then all strings. The vector is found by its contents and not with /proc: the process may have
 * ended, or executed another program, before its sample is read.
 */
#ifndef CAPTURE_PROGRAM_STRINGS_H
#define CAPTURE_PROGRAM_STRINGS_H

#include <stddef.h>
#include <stdint.h>

/* Offset of the strings in a copy of `size` bytes of a stack at `address`; everything above is strings too. `size`: none.
 */
size_t program_strings_find(const uint8_t *stack, size_t size, uint64_t address);

#endif
