/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The native side of the .NET program: maps one block and touches it. */
#include <stddef.h>
#include <stdint.h>
#include <sys/mman.h>

int32_t mmap_allocation(size_t bytes);

__attribute__((visibility("default"))) int32_t mmap_allocation(size_t bytes)
{
	volatile char *block = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (block == MAP_FAILED)
		return -1;
	for (size_t offset = 0; offset < bytes; offset += 4096)
		block[offset] = 1;
	return 0;
}
