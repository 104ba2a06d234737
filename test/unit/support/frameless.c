// SPDX-License-Identifier: LGPL-2.1-or-later
#include "support/frameless.h"

#include <string.h>

int frameless_recurse(int depth, void (*at_bottom)(void))
{
	volatile char local[40];

	local[0] = (char)depth;
	if (depth)
		return frameless_recurse(depth - 1, at_bottom) + local[0];
	at_bottom();
	return local[0];
}

size_t frameless_allocate(size_t bytes, void (*at_bottom)(void))
{
	volatile char *memory = __builtin_alloca(bytes);
	char aligned[64] __attribute__((aligned(64)));

	memory[0] = 1;
	memset(aligned, memory[0], sizeof(aligned));
	at_bottom();
	return (size_t)memory[0] + (size_t)aligned[63];
}
