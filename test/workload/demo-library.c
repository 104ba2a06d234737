/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The library of the demo: no frame pointers, like most libraries. */
#include <sys/mman.h>

#include "support/stage.h"

EXPORTED int mmap_allocation(size_t bytes);

EXPORTED int mmap_allocation(size_t bytes)
{
	volatile char *block = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (block == MAP_FAILED)
		return -1;
	for (size_t offset = 0; offset < bytes; offset += 4096)
		block[offset] = 1;
	return 0;
}
