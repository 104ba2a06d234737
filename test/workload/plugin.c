/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Built twice, as two libraries whose function has different names. */
#include <sys/mman.h>

#include "support/stage.h"

void *PLUGIN_FUNCTION(size_t bytes);

EXPORTED void *PLUGIN_FUNCTION(size_t bytes)
{
	volatile char *block = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (block != MAP_FAILED)
		block[0] = 1;
	return (void *)block;
}
