/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What the recorded bytes of a process's JIT code tell of it: how to unwind it, and where it calls. They were
 * seen now and then, so the code of a sample may have been another: every answer has to be checked against the stack.
 */
#ifndef ANALYSIS_RESOLVER_COPIED_CODE_H
#define ANALYSIS_RESOLVER_COPIED_CODE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/errors.h"
#include "code/unwind/cfi-rows.h"
#include "code/elf/module.h"
#include "trace/read/reader.h"

struct copied_code;

/* Of one program of `copies`. Borrows all. */
struct mmt_error *copied_code_create(const struct code_copies *copies, const struct process_code *process,
				     struct programs *programs, struct copied_code **copied_ret) MMT_MUST_CHECK;
/* Accepts NULL, as those below do. */
void copied_code_destroy(struct copied_code *copied);

/* The code runs in the frame of a function with this row: see struct epilogue_code. Before rows are asked for.
 * NULL: not known, what was said before holds. */
void copied_code_use_host(struct copied_code *copied, const struct cfi_row *host);

/*
 * What the next questions are about: the code as it was when it was first seen at that time or later. Times are about
 * to ascend. Where they go back and forth so much that it would take too long, nothing is known of the code any more.
 */
void copied_code_go_to(struct copied_code *copied, uint64_t time_ns);
/* They did: what would have told of callers was not asked. */
bool copied_code_gave_up(const struct copied_code *copied);
/* A number for what it is about now. */
uint64_t copied_code_epoch(const struct copied_code *copied);

/* The row of an address, or of the instruction before a return address: deduced and unsure; NULL: none. */
const struct cfi_row *copied_code_row(struct copied_code *copied, uint64_t address, bool is_return_address);

/*
 * The bytes from `start`, or from where they were recorded, to `end`, which `address` lies in, or with
 * `is_return_address` the call before it. Their number, 0: they are not recorded. Borrowed.
 */
size_t copied_code_around(struct copied_code *copied, uint64_t start, uint64_t end, uint64_t address,
			  bool is_return_address, uint64_t *start_ret, const uint8_t **code_ret);

/* Whether the function that begins at `start` has made a frame pointer before it came to `address`. */
bool copied_code_keeps_frame_pointer(struct copied_code *copied, uint64_t start, uint64_t address);

/* As program_follows_call(). */
int copied_code_follows_call(struct copied_code *copied, uint64_t return_address);

#endif
