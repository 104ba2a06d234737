/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The heap grows by sbrk in steps and shrinks by less than a step. */
#include <stdint.h>
#include <unistd.h>

#include "support/stage.h"

enum { STEPS = 8, STEP_PAGES = 16, SHRINK_PAGES = 4 };

VISIBLE void grow_heap(size_t bytes)
{
	void *start = sbrk((intptr_t)bytes);

	stage_need(start, "sbrk");
	stage_touch(start, bytes);
}

VISIBLE void shrink_heap(size_t bytes)
{
	stage_need(sbrk(-(intptr_t)bytes), "sbrk");
	KEEP_FRAME();
}

int main(int argc, char **argv)
{
	struct stage stage = stage_open(argc, argv);
	size_t page = stage_page_bytes(), left = (STEPS * STEP_PAGES - SHRINK_PAGES) * page;

	/* From here on the break is page-aligned, so that every step is a number of pages. */
	stage_need(sbrk((intptr_t)(page - (size_t)sbrk(0) % page)), "sbrk");
	stage_begin(&stage);
	for (int i = 0; i < STEPS; i++)
		grow_heap(STEP_PAGES * page);
	shrink_heap(SHRINK_PAGES * page);
	stage_expect("bytes=%zu count=%d resident=%zu stack=brk<sbrk<grow_heap<main", left, STEPS, left);
	stage_expect("total=%zu", left);
	stage_end(&stage);
	return 0;
}
