/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Leaks a known amount and waits to be killed. With the operand 1 it provokes that: it touches more than a memory
 * limit permits. */
#include <sys/mman.h>

#include "support/stage.h"

enum { BLOCKS = 8, BLOCK_BYTES = 1 << 20 };
#define LARGE_BYTES ((size_t)1 << 30)

VISIBLE void *leak(size_t bytes)
{
	return stage_need(mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0),
			  "mmap");
}

VISIBLE void release(void *start, size_t bytes)
{
	stage_need_call(munmap(start, bytes), "munmap");
}

int main(int argc, char **argv)
{
	struct stage stage = stage_open(argc, argv);
	char *large;

	stage_begin(&stage);
	for (int i = 0; i < BLOCKS; i++)
		stage_touch(leak(BLOCK_BYTES), BLOCK_BYTES);
	release(leak(BLOCK_BYTES), BLOCK_BYTES);
	large = leak(LARGE_BYTES);
	stage_expect("bytes=%zu count=%d stack=mmap<leak<main", LARGE_BYTES + BLOCKS * (size_t)BLOCK_BYTES, BLOCKS + 1);
	stage_end(&stage);
	if (stage_number(&stage, 0, 0))
		stage_touch(large, LARGE_BYTES);
	return 0;
}
