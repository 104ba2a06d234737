/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The recorded bytes of a process's JIT code: how to unwind it, and where it calls. They were read only now and then,
 * so a sample's code may differ: check every answer against the stack. */
#ifndef ANALYSIS_RESOLVER_COPIED_CODE_H
#define ANALYSIS_RESOLVER_COPIED_CODE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/errors.h"
#include "code/unwind/cfi-rows.h"
#include "code/elf/module.h"
#include "trace/read/reader.h"

struct copied_code;

/* For one program of `copies`. Borrows all arguments. */
struct mmt_error *copied_code_create(const struct code_copies *copies, const struct process_code *process,
				     struct programs *programs, struct copied_code **copied_ret) MMT_MUST_CHECK;
/* Accepts NULL, as do the functions below. */
void copied_code_destroy(struct copied_code *copied);

/* The code runs in the frame of a function with this row: see struct epilogue_code. Call this before asking for rows.
 * NULL: unknown, keep the previous one. */
void copied_code_use_host(struct copied_code *copied, const struct cfi_row *host);

/* Select the code for the next queries: as first seen at or after this time. Times should be mostly ascending. If they
 * go back and forth so often that it would take too long, the code becomes unknown for good. */
void copied_code_go_to(struct copied_code *copied, uint64_t time_ns);
/* The code became unknown for that reason: queries about callers were not answered. */
bool copied_code_gave_up(const struct copied_code *copied);
/* A number for the selected version of the code. */
uint64_t copied_code_epoch(const struct copied_code *copied);

/* The row of an address, or of the instruction before a return address: from an analysis, unreliable. NULL: none. */
const struct cfi_row *copied_code_row(struct copied_code *copied, uint64_t address, bool is_return_address);

/* The bytes from `start`, or from the first recorded one, to `end`. They contain `address`, or with `is_return_address`
 * the call before it. Returns their number; 0: not recorded. Borrowed. */
size_t copied_code_around(struct copied_code *copied, uint64_t start, uint64_t end, uint64_t address,
			  bool is_return_address, uint64_t *start_ret, const uint8_t **code_ret);

/* Whether the function at `start` sets up a frame pointer before `address`. */
bool copied_code_keeps_frame_pointer(struct copied_code *copied, uint64_t start, uint64_t address);

/* Same result as program_follows_call(). */
int copied_code_follows_call(struct copied_code *copied, uint64_t return_address);

#endif
