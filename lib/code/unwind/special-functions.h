/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Code that unwinding must know for what it is: its own rules, if it has any, tell another story. */
#ifndef CODE_UNWIND_SPECIAL_FUNCTIONS_H
#define CODE_UNWIND_SPECIAL_FUNCTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "code/unwind/unwind.h"

#define STUBS_CODE_MAX 16

#define STUBS_CODE_BEFORE 8

/* By what will be executed: up to STUBS_CODE_MAX bytes from a return address on, and up to STUBS_CODE_BEFORE that end
 * there. */
enum code_stub stubs_by_code(uint16_t elf_machine, const uint8_t *code, size_t size, const uint8_t *before,
			     size_t before_size);

/* By the name of the symbol; those of the C library's own functions count only there: anybody may write a `clone`. */
enum code_stub stubs_by_name(const char *function, bool in_c_library);

/* Whether a function asks the kernel for something itself, as all do that start or end a thread. */
bool stubs_has_system_call(uint16_t elf_machine, const uint8_t *code, size_t size);

/* Whether a file of this name is the C library, its part for threads or its loader. */
bool stubs_is_c_library(const char *path);

#endif
