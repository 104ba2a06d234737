/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* munmap of the head, the middle, the tail and all of a mapping, and of a range over several mappings and holes. */
#include <sys/mman.h>

#include "support/stage.h"

enum { BLOCK_PAGES = 16, CUT_PAGES = 4, ARENA_PAGES = 80 };

VISIBLE char *map_block(void *place, size_t bytes)
{
	char *block =
	    mmap(place, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | (place ? MAP_FIXED : 0), -1, 0);

	stage_need(block, "mmap");
	stage_touch(block, bytes);
	return block;
}

VISIBLE void leave_without_head(size_t page)
{
	char *block = map_block(NULL, BLOCK_PAGES * page);

	munmap(block, CUT_PAGES * page);
	KEEP_FRAME();
}

VISIBLE void leave_without_middle(size_t page)
{
	char *block = map_block(NULL, BLOCK_PAGES * page);

	munmap(block + 6 * page, CUT_PAGES * page);
	KEEP_FRAME();
}

VISIBLE void leave_without_tail(size_t page)
{
	char *block = map_block(NULL, BLOCK_PAGES * page);

	munmap(block + (BLOCK_PAGES - CUT_PAGES) * page, CUT_PAGES * page);
	KEEP_FRAME();
}

VISIBLE void leave_nothing(size_t page)
{
	char *block = map_block(NULL, BLOCK_PAGES * page);

	munmap(block, BLOCK_PAGES / 2 * page);
	munmap(block + BLOCK_PAGES / 2 * page, BLOCK_PAGES / 2 * page);
	KEEP_FRAME();
}

/* Blocks at 0, 24 and 48; pages 8 to 56 go: half of the first, the second with the holes around it, half of the third.
 */
VISIBLE void cut_across(char *arena, size_t page)
{
	munmap(arena, ARENA_PAGES * page);
	for (size_t start = 0; start <= 48; start += 24)
		map_block(arena + start * page, BLOCK_PAGES * page);
	munmap(arena + 8 * page, 48 * page);
	KEEP_FRAME();
}

int main(int argc, char **argv)
{
	struct stage stage = stage_open(argc, argv);
	size_t page = stage_page_bytes(), rest = (BLOCK_PAGES - CUT_PAGES) * page;
	char *arena = mmap(NULL, ARENA_PAGES * page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	stage_need(arena, "mmap");
	stage_begin(&stage);
	leave_without_head(page);
	leave_without_middle(page);
	leave_without_tail(page);
	leave_nothing(page);
	cut_across(arena, page);
	stage_expect("bytes=%zu count=1 resident=%zu stack=mmap<map_block<leave_without_head<main", rest, rest);
	stage_expect("bytes=%zu count=1 resident=%zu stack=mmap<map_block<leave_without_middle<main", rest, rest);
	stage_expect("bytes=%zu count=1 resident=%zu stack=mmap<map_block<leave_without_tail<main", rest, rest);
	stage_expect("bytes=0 releases=1 stack=mmap<map_block<leave_nothing<main");
	stage_expect("bytes=%zu count=2 releases=1 stack=mmap<map_block<cut_across<main", 16 * page);
	stage_expect("total=%zu", 3 * rest + 16 * page);
	stage_end(&stage);
	return 0;
}
