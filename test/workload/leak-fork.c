/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The child leaks after the fork; what it inherits is the parent's and is not counted again. */
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "support/stage.h"

enum { PARENT_BLOCKS = 7, CHILD_BLOCKS = 5, FREED_BY_CHILD = 2, BLOCK_PAGES = 8 };

VISIBLE void *map_block(void)
{
	size_t bytes = BLOCK_PAGES * stage_page_bytes();
	void *block = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	stage_need(block, "mmap");
	stage_touch(block, bytes);
	return block;
}

VISIBLE void *leak_in_parent(void)
{
	void *block = map_block();

	KEEP_FRAME();
	return block;
}

VISIBLE void leak_in_child(void)
{
	map_block();
	KEEP_FRAME();
}

static void run_child(void **inherited, int ready, int stop)
{
	char byte = 0;

	for (int i = 0; i < CHILD_BLOCKS; i++)
		leak_in_child();
	for (int i = 0; i < FREED_BY_CHILD; i++)
		munmap(inherited[i], BLOCK_PAGES * stage_page_bytes());
	stage_need_call((int)write(ready, &byte, 1), "write");
	stage_need_call((int)read(stop, &byte, 1), "read");
	_exit(0);
}

int main(int argc, char **argv)
{
	struct stage stage = stage_open(argc, argv);
	size_t block = BLOCK_PAGES * stage_page_bytes();
	void *blocks[PARENT_BLOCKS];
	int ready[2], stop[2];
	char byte;

	stage_need_call(pipe(ready), "pipe");
	stage_need_call(pipe(stop), "pipe");
	stage_begin(&stage);
	for (int i = 0; i < PARENT_BLOCKS; i++)
		blocks[i] = leak_in_parent();
	if (stage_need_call(fork(), "fork") == 0) {
		close(stop[1]);
		run_child(blocks, ready[1], stop[0]);
	}
	stage_need_call((int)read(ready[0], &byte, 1), "read");
	stage_expect("bytes=%zu count=%d resident=%zu releases=0 stack=mmap<map_block<leak_in_parent<main",
		     PARENT_BLOCKS * block, PARENT_BLOCKS, PARENT_BLOCKS * block);
	stage_expect("bytes=%zu count=%d resident=%zu stack=mmap<map_block<leak_in_child", CHILD_BLOCKS * block,
		     CHILD_BLOCKS, CHILD_BLOCKS * block);
	stage_expect("total=%zu", (PARENT_BLOCKS + CHILD_BLOCKS) * block);
	stage_end(&stage);
	close(stop[1]);
	wait(NULL);
	return 0;
}
