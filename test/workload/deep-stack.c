/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A leak at the bottom of a recursion without frame pointers, at least 256 bytes a frame: deep-stack [--exit]
 * [DEPTH]. */
#include <string.h>
#include <sys/mman.h>

#include "support/stage.h"

enum { LEAKS = 3, BLOCK_PAGES = 4 };

VISIBLE void leak_at_bottom(void)
{
	stage_need(mmap(NULL, BLOCK_PAGES * stage_page_bytes(), PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), "mmap");
	KEEP_FRAME();
}

VISIBLE int descend(size_t depth)
{
	char room[256];

	memset(room, (int)depth, sizeof(room));
	__asm__ volatile("" ::"r"(room) : "memory");
	if (depth > 1)
		return descend(depth - 1) + room[depth % sizeof(room)];
	leak_at_bottom();
	return room[0];
}

int main(int argc, char **argv)
{
	struct stage stage = stage_open(argc, argv);
	size_t depth = stage_number(&stage, 0, 12), bytes = LEAKS * BLOCK_PAGES * stage_page_bytes();

	stage_begin(&stage);
	for (int i = 0; i < LEAKS; i++) {
		int sum = descend(depth);

		__asm__ volatile("" ::"r"(sum));
	}
	stage_expect("bytes=%zu count=%d stack=mmap<leak_at_bottom<descend", bytes, LEAKS);
	stage_expect("total=%zu", bytes);
	stage_end(&stage);
	return 0;
}
