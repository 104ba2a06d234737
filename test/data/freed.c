/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Grows for eight seconds and frees everything before it ends. */
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { BLOCKS = 80, BLOCK_BYTES = 1 << 20, INTERVAL_MICROSECONDS = 100000 };

static __attribute__((noinline)) void *grow(void)
{
	void *block = mmap(NULL, BLOCK_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	return block == MAP_FAILED ? NULL : memset(block, 1, BLOCK_BYTES);
}

int main(void)
{
	void *blocks[BLOCKS];

	for (int i = 0; i < BLOCKS; i++) {
		blocks[i] = grow();
		usleep(INTERVAL_MICROSECONDS);
	}
	for (int i = 0; i < BLOCKS; i++)
		if (blocks[i])
			munmap(blocks[i], BLOCK_BYTES);
	return 0;
}
