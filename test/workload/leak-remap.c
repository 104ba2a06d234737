/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* mremap: growth is allocated by the mremap; existing memory keeps its allocation wherever it moves. */
#include <sys/mman.h>

#include "support/stage.h"

enum { ROUNDS = 5 };

VISIBLE char *map_pages(size_t bytes)
{
	char *block = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	stage_need(block, "mmap");
	stage_touch(block, bytes);
	return block;
}

VISIBLE char *map_to_grow(size_t page)
{
	char *block = map_pages(4 * page);

	KEEP_FRAME();
	return block;
}

VISIBLE void grow(char *block, size_t page)
{
	char *grown = mremap(block, 4 * page, 16 * page, MREMAP_MAYMOVE);

	stage_need(grown, "mremap");
	stage_touch(grown, 16 * page);
}

VISIBLE char *map_to_move(size_t page)
{
	char *block = map_pages(8 * page);

	KEEP_FRAME();
	return block;
}

VISIBLE void move_over(char *target, char *block, size_t page)
{
	stage_need(mremap(block, 8 * page, 8 * page, MREMAP_MAYMOVE | MREMAP_FIXED, target), "mremap");
	KEEP_FRAME();
}

VISIBLE void map_to_shrink(size_t page)
{
	char *block = map_pages(16 * page);

	stage_need(mremap(block, 16 * page, 4 * page, 0), "mremap");
	KEEP_FRAME();
}

/* Memory moved onto a mapping replaces it. */
VISIBLE char *map_to_replace(size_t page)
{
	char *block = map_pages(8 * page);

	KEEP_FRAME();
	return block;
}

int main(int argc, char **argv)
{
	struct stage stage = stage_open(argc, argv);
	size_t page = stage_page_bytes();

	stage_begin(&stage);
	for (int i = 0; i < ROUNDS; i++) {
		char *target = map_to_replace(page);

		grow(map_to_grow(page), page);
		move_over(target, map_to_move(page), page);
		map_to_shrink(page);
	}
	stage_expect("bytes=%zu count=%d stack=mmap<map_pages<map_to_grow<main", ROUNDS * 4 * page, ROUNDS);
	stage_expect("bytes=%zu count=%d stack=mremap<grow<main", ROUNDS * 12 * page, ROUNDS);
	stage_expect("bytes=%zu count=%d stack=mmap<map_pages<map_to_move<main", ROUNDS * 8 * page, ROUNDS);
	stage_expect("bytes=%zu count=%d stack=mmap<map_pages<map_to_shrink<main", ROUNDS * 4 * page, ROUNDS);
	stage_expect("bytes=0 releases=%d stack=mmap<map_pages<map_to_replace<main", ROUNDS);
	stage_expect("total=%zu", ROUNDS * 28 * page);
	stage_end(&stage);
	return 0;
}
