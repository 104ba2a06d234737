/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Stack numbers by event. The stack of a call becomes known after the call, so a consumer that needs stacks in order
 * makes two passes. The numbers are in a temporary file, so memory use depends only on the number of distinct stacks.
 */
#ifndef ANALYSIS_REPLAY_STACK_NUMBERS_H
#define ANALYSIS_REPLAY_STACK_NUMBERS_H

#include <stdint.h>
#include <stdio.h>

#include "base/errors.h"

struct stack_numbers {
	FILE *file; /* NULL: not created */
};

/* Stack number of an event; 0: none. */
struct stack_number {
	uint32_t stack, callchain; /* stack number plus 1 */
};

struct mmt_error *stack_numbers_create(struct stack_numbers *numbers) MMT_MUST_CHECK;

/* Accepts an uncreated value. */
void stack_numbers_deinit(struct stack_numbers *numbers);

struct mmt_error *stack_numbers_put_stack(struct stack_numbers *numbers, uint64_t sequence,
					  uint32_t stack) MMT_MUST_CHECK;
struct mmt_error *stack_numbers_put_callchain(struct stack_numbers *numbers, uint64_t sequence,
					      uint32_t callchain) MMT_MUST_CHECK;

struct mmt_error *stack_numbers_get(const struct stack_numbers *numbers, uint64_t sequence,
				    struct stack_number *number_ret) MMT_MUST_CHECK;

#endif
