/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * How a stack ends: complete, if it reached the entry of its thread or coroutine (mmt_stack_end_is_complete()), or
 * truncated. The special functions below end or redirect unwinding: thread start, signal return, stack switches,
 * coroutine entries.
 */
#ifndef CODE_UNWIND_STACK_END_H
#define CODE_UNWIND_STACK_END_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "code/unwind/unwind.h"

#define SPECIAL_FUNCTIONS_CODE_MAX 16

#define SPECIAL_FUNCTIONS_CODE_BEFORE 8

/* Classify by the instructions that will be executed: up to SPECIAL_FUNCTIONS_CODE_MAX bytes from a return address on,
 * and up to SPECIAL_FUNCTIONS_CODE_BEFORE that end there. */
enum code_special_function stack_end_by_code(uint16_t elf_machine, const uint8_t *code, size_t size,
					     const uint8_t *before, size_t before_size);

/* Classify by symbol name. glibc's internal names count only in glibc: any program may define a `clone`. */
enum code_special_function stack_end_by_name(const char *function, bool in_c_library);

/* Whether a function contains a system call instruction, as all functions that start or end a thread do. */
bool stack_end_has_system_call(uint16_t elf_machine, const uint8_t *code, size_t size);

/* Whether a file of this name is libc, libpthread or the dynamic loader. */
bool stack_end_is_c_library(const char *path);

#endif
