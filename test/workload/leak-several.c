/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Four leaks of the requested sizes, and one that is always the same: leak-several [--exit] [BLOCKS BLOCKS BLOCKS
 * BLOCKS]. */
#include <sys/mman.h>

#include "support/stage.h"

enum { BLOCK_PAGES = 4, STEADY_BLOCKS = 5 };

VISIBLE void map_blocks(size_t count)
{
	size_t bytes = BLOCK_PAGES * stage_page_bytes();

	for (size_t i = 0; i < count; i++)
		stage_need(mmap(NULL, bytes, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), "mmap");
}

VISIBLE void leak_first(size_t count)
{
	map_blocks(count);
	KEEP_FRAME();
}

VISIBLE void leak_second(size_t count)
{
	map_blocks(count);
	KEEP_FRAME();
}

VISIBLE void leak_third(size_t count)
{
	map_blocks(count);
	KEEP_FRAME();
}

VISIBLE void leak_fourth(size_t count)
{
	map_blocks(count);
	KEEP_FRAME();
}

VISIBLE void leak_steadily(void)
{
	map_blocks(STEADY_BLOCKS);
	KEEP_FRAME();
}

int main(int argc, char **argv)
{
	struct stage stage = stage_open(argc, argv);
	size_t block = BLOCK_PAGES * stage_page_bytes();
	size_t first = stage_number(&stage, 0, 1), second = stage_number(&stage, 1, 2);
	size_t third = stage_number(&stage, 2, 3), fourth = stage_number(&stage, 3, 4);

	stage_begin(&stage);
	leak_first(first);
	leak_second(second);
	leak_third(third);
	leak_fourth(fourth);
	leak_steadily();
	stage_expect("bytes=%zu stack=mmap<map_blocks<leak_first<main", first * block);
	stage_expect("bytes=%zu stack=mmap<map_blocks<leak_second<main", second * block);
	stage_expect("bytes=%zu stack=mmap<map_blocks<leak_third<main", third * block);
	stage_expect("bytes=%zu stack=mmap<map_blocks<leak_fourth<main", fourth * block);
	stage_expect("bytes=%zu stack=mmap<map_blocks<leak_steadily<main", STEADY_BLOCKS * block);
	stage_expect("total=%zu", (first + second + third + fourth + STEADY_BLOCKS) * block);
	stage_end(&stage);
	return 0;
}
