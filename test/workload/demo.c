/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The demo's program: Main calls MyTest, for which a library maps 256 blocks of 4 MiB that are never unmapped. */
#include <time.h>

#include "support/stage.h"

enum { BLOCKS = 256, BLOCK_BYTES = 4 << 20, PAUSE_NS = 20000000 };

int mmap_allocation(size_t bytes);

VISIBLE void MyTest(void)
{
	struct timespec pause = {.tv_nsec = PAUSE_NS};

	for (int i = 0; i < BLOCKS; i++) {
		stage_need_call(mmap_allocation(BLOCK_BYTES), "mmap_allocation");
		nanosleep(&pause, NULL);
	}
}

VISIBLE void Main(void)
{
	MyTest();
	KEEP_FRAME();
}

int main(int argc, char **argv)
{
	struct stage stage = stage_open(argc, argv);

	stage_begin(&stage);
	Main();
	stage_expect("bytes=%zu count=%d resident=%zu releases=0 stack=mmap<mmap_allocation<MyTest<Main<main",
		     (size_t)BLOCKS * BLOCK_BYTES, BLOCKS, (size_t)BLOCKS * BLOCK_BYTES);
	stage_expect("total=%zu", (size_t)BLOCKS * BLOCK_BYTES);
	stage_end(&stage);
	return 0;
}
