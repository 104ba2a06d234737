/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Where the kernel put the arguments and the environment of a program: at the upper end of its first stack. A dump that
 * begins in the first frames of main() holds them, and environment variables hold passwords and tokens. No frame is
 * there, so unwinding does without.
 *
 * From lower addresses to higher ones: argc, the pointers of argv, a null, those of the environment, a null, the
 * auxiliary vector, and then all strings. The vector is found by its content rather than by what /proc says: the
 * process may have ended, or have executed another program, before its sample is read.
 */
#ifndef CAPTURE_PROGRAM_STRINGS_H
#define CAPTURE_PROGRAM_STRINGS_H

#include <stddef.h>
#include <stdint.h>

/* Offset of the strings, and of all above them, in a copy of `size` bytes of a stack from `address` on; `size`: none.
 */
size_t program_strings_find(const uint8_t *stack, size_t size, uint64_t address);

#endif
