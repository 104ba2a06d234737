/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Memory replaced in place repeatedly by MAP_FIXED, completely and in pieces, then unmapped: nothing is left. */
#include <sys/mman.h>

#include "support/stage.h"

enum { ROUNDS = 400, BLOCK_PAGES = 64, PIECE_PAGES = 16 };

VISIBLE char *map_in_place(char *place, size_t bytes)
{
	int flags = MAP_PRIVATE | MAP_ANONYMOUS | (place ? MAP_FIXED : 0);
	char *block = mmap(place, bytes, PROT_READ | PROT_WRITE, flags, -1, 0);

	stage_need(block, "mmap");
	KEEP_FRAME();
	return block;
}

VISIBLE void replace_all(size_t page)
{
	char *block = map_in_place(NULL, BLOCK_PAGES * page);

	for (int i = 0; i < ROUNDS; i++)
		map_in_place(block, BLOCK_PAGES * page);
	stage_need_call(munmap(block, BLOCK_PAGES * page), "munmap");
}

/* Pieces that overlap each other, then one that covers them all. */
VISIBLE void replace_pieces(size_t page)
{
	char *block = map_in_place(NULL, BLOCK_PAGES * page);

	for (size_t i = 0; i < ROUNDS; i++)
		map_in_place(block + i * 7 % (BLOCK_PAGES - PIECE_PAGES) * page, PIECE_PAGES * page);
	map_in_place(block, BLOCK_PAGES * page);
	stage_need_call(munmap(block, BLOCK_PAGES * page), "munmap");
}

int main(int argc, char **argv)
{
	struct stage stage = stage_open(argc, argv);
	size_t page = stage_page_bytes();

	stage_begin(&stage);
	replace_all(page);
	replace_pieces(page);
	stage_expect("bytes=0 allocated=%zu allocations=%d freed=%zu releases=%d stack=mmap<map_in_place<replace_all",
		     (ROUNDS + 1) * BLOCK_PAGES * page, ROUNDS + 1, (ROUNDS + 1) * BLOCK_PAGES * page, ROUNDS + 1);
	stage_expect("bytes=0 allocations=%d releases=%d stack=mmap<map_in_place<replace_pieces", ROUNDS + 2,
		     ROUNDS + 2);
	stage_expect("total=0");
	stage_end(&stage);
	return 0;
}
