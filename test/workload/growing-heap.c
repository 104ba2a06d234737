/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A heap of 64 MiB, in so many mappings as requested, that grows by a page ten thousand times a second, and is never
 * given back. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "support/stage.h"

enum { HEAP_BYTES = 64 << 20, PAUSE_MICROSECONDS = 50 };

int main(int argc, char **argv)
{
	size_t page = stage_page_bytes(), pieces = argc > 1 ? strtoul(argv[1], NULL, 10) : 1, step;
	char *heap;

	stage_need(sbrk((intptr_t)(page - (size_t)sbrk(0) % page)), "sbrk");
	heap = sbrk(HEAP_BYTES);
	stage_need(heap, "sbrk");
	step = HEAP_BYTES / page / pieces * page;
	/* Every other piece differs from its neighbours in a flag that the maps do not show. */
	for (size_t i = 0; i + 1 < pieces; i += 2)
		madvise(heap + i * step, step, MADV_DONTDUMP);
	puts("ready");
	fflush(stdout);
	for (;;) {
		stage_need(sbrk((intptr_t)page), "sbrk");
		usleep(PAUSE_MICROSECONDS);
	}
}
