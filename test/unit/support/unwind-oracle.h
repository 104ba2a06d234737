/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The samples with a stack dump in a recording of one program of this architecture, unwound from the same registers and
 * bytes by mmtrace and by libunwind. If something cannot be read, the process exits.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/limits.h"
#include "code/unwind/unwind.h"
#include "support/host.h"

void unwind_oracle_read(const char *path);
void unwind_oracle_end(void); /* nothing of it is left then */
size_t unwind_oracle_count(void);

/* For mmtrace. As in reports, results are cached: the mappings do not change. */
void unwind_oracle_begin(void);
struct unwind_input unwind_oracle_input(size_t number);
struct unwind_callbacks unwind_oracle_callbacks(void);

/* Whether the call before this address is in an ELF file. */
bool unwind_oracle_is_program(uint64_t return_address);

/* What libunwind finds in the same sample, with its global cache; returns the number of frames. */
void unwind_oracle_open_libunwind(void);
void unwind_oracle_close_libunwind(void);
size_t unwind_oracle_libunwind(size_t number, uint64_t addresses_ret[LIMIT_UNWIND_FRAMES]);
