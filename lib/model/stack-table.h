/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Interned call stacks: equal sequences of frame numbers have equal stack numbers. Pure. */
#ifndef MODEL_STACK_TABLE_H
#define MODEL_STACK_TABLE_H

#include <stddef.h>
#include <stdint.h>

#include "base/map.h"

struct stacks {
	struct intern interned;
};

#define STACKS_NONE UINT32_MAX

void stacks_deinit(struct stacks *stacks);

/* Number of a stack: `frames` innermost first (the caller's numbers), `end` the reason why it ends (part of its
 * identity). STACKS_NONE: out of memory. */
uint32_t stacks_put(struct stacks *stacks, const uint32_t *frames, size_t count, uint32_t end);

/* Frames of a stack, valid until the next stacks_put(). */
const uint32_t *stacks_get(const struct stacks *stacks, uint32_t stack, size_t *count_ret, uint32_t *end_ret);

size_t stacks_count(const struct stacks *stacks);

#endif
