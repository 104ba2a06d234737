/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A program that leaks, replaces itself with exec and leaks again: the first leak vanished with the old address
 * space. */
#include <sys/mman.h>
#include <unistd.h>

#include "support/stage.h"

enum { BEFORE_BLOCKS = 9, AFTER_BLOCKS = 4, BLOCK_PAGES = 32 };

VISIBLE void map_block(void)
{
	size_t bytes = BLOCK_PAGES * stage_page_bytes();
	void *block = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	stage_need(block, "mmap");
	stage_touch(block, bytes);
}

VISIBLE void leak_before_exec(void)
{
	map_block();
	KEEP_FRAME();
}

VISIBLE void leak_after_exec(void)
{
	map_block();
	KEEP_FRAME();
}

int main(int argc, char **argv)
{
	struct stage stage = stage_open(argc, argv);
	size_t block = BLOCK_PAGES * stage_page_bytes();

	if (stage.operand_count == 0) {
		stage_begin(&stage);
		for (int i = 0; i < BEFORE_BLOCKS; i++)
			leak_before_exec();
		if (stage.exit_by_itself)
			execl("/proc/self/exe", argv[0], "--exit", "again", (char *)NULL);
		else
			execl("/proc/self/exe", argv[0], "again", (char *)NULL);
		stage_need_call(-1, "execl");
	}
	for (int i = 0; i < AFTER_BLOCKS; i++)
		leak_after_exec();
	stage_expect("bytes=0 stack=mmap<map_block<leak_before_exec<main");
	stage_expect("bytes=%zu count=%d resident=%zu stack=mmap<map_block<leak_after_exec<main", AFTER_BLOCKS * block,
		     AFTER_BLOCKS, AFTER_BLOCKS * block);
	stage_end(&stage);
	return 0;
}
