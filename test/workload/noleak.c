/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Maps and unmaps a lot in changing order and leaves nothing: noleak [--exit] [ROUNDS]. */
#include <stdint.h>
#include <sys/mman.h>

#include "support/stage.h"

enum { BLOCKS = 64 };

VISIBLE void map_and_unmap(char **blocks, size_t *lengths, uint32_t *seed)
{
	size_t page = stage_page_bytes(), i;

	*seed = *seed * 1664525u + 1013904223u;
	i = *seed >> 16 & (BLOCKS - 1);
	if (blocks[i]) {
		stage_need_call(munmap(blocks[i], lengths[i]), "munmap");
		blocks[i] = NULL;
		return;
	}
	lengths[i] = (1 + (*seed >> 24 & 15)) * page;
	blocks[i] = mmap(NULL, lengths[i], PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	stage_need(blocks[i], "mmap");
	if (*seed & 1 << 10) {
		blocks[i] = mremap(blocks[i], lengths[i], lengths[i] * 2, MREMAP_MAYMOVE);
		stage_need(blocks[i], "mremap");
		lengths[i] *= 2;
	}
}

int main(int argc, char **argv)
{
	struct stage stage = stage_open(argc, argv);
	size_t rounds = stage_number(&stage, 0, 20000);
	static size_t lengths[BLOCKS];
	static char *blocks[BLOCKS];
	uint32_t seed = 1;

	stage_begin(&stage);
	for (size_t i = 0; i < rounds; i++)
		map_and_unmap(blocks, lengths, &seed);
	for (size_t i = 0; i < BLOCKS; i++)
		if (blocks[i])
			munmap(blocks[i], lengths[i]);
	stage_expect("bytes=0 stack=mmap<map_and_unmap<main");
	stage_expect("bytes=0 stack=mremap<map_and_unmap<main");
	stage_expect("total=0");
	stage_end(&stage);
	return 0;
}
