/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Everything except the last block is freed, and the heap cannot shrink below that block. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "support/stage.h"

enum { BLOCKS = 64, BLOCK_BYTES = 60 << 10 };

static void *blocks[BLOCKS];

VISIBLE void allocate_block(int i)
{
	blocks[i] = stage_need(malloc(BLOCK_BYTES), "malloc");
	memset(blocks[i], 1, BLOCK_BYTES);
}

int main(int argc, char **argv)
{
	struct stage stage = stage_open(argc, argv);
	char *start;

	stage_begin(&stage);
	start = sbrk(0);
	for (int i = 0; i < BLOCKS; i++)
		allocate_block(i);
	for (int i = 0; i < BLOCKS - 1; i++)
		free(blocks[i]);
	stage_expect("total=%zu", (size_t)((char *)sbrk(0) - start));
	stage_end(&stage);
	free(blocks[BLOCKS - 1]);
	return 0;
}
