// SPDX-License-Identifier: LGPL-2.1-or-later
#include "model/stack-table.h"

#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"

#define FEW_FRAMES 255

void stacks_deinit(struct stacks *stacks)
{
	intern_deinit(&stacks->interned);
}

/* Stored as the end, followed by the frames. */
uint32_t stacks_put(struct stacks *stacks, const uint32_t *frames, size_t count, uint32_t end)
{
	CLEANUP(free) uint32_t *many = NULL;
	uint32_t few[FEW_FRAMES + 1];
	uint32_t *words = few;

	if (count > FEW_FRAMES) {
		if (count > SIZE_MAX / sizeof(*words) - 1)
			return STACKS_NONE;
		words = many = malloc((count + 1) * sizeof(*words));
		if (!words)
			return STACKS_NONE;
	}
	words[0] = end;
	if (count)
		memcpy(words + 1, frames, count * sizeof(*frames));
	return intern_put(&stacks->interned, words, (count + 1) * sizeof(*words));
}

const uint32_t *stacks_get(const struct stacks *stacks, uint32_t stack, size_t *count_ret, uint32_t *end_ret)
{
	size_t size;
	const uint32_t *words = intern_get(&stacks->interned, stack, &size);

	*count_ret = size / sizeof(*words) - 1;
	if (end_ret)
		*end_ret = words[0];
	return words + 1;
}

size_t stacks_count(const struct stacks *stacks)
{
	return stacks->interned.count;
}
