/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Maps as many MiB as the first operand says and touches every page, repeatedly; for each line on stdin it releases
 * them all with one munmap(), which takes long. Prints "touched" before the release and "releasing" when it starts.
 */
#include <stdio.h>
#include <sys/mman.h>

#include "support/stage.h"

int main(int argc, char **argv)
{
	struct stage stage = stage_open(argc, argv);
	size_t length = stage_number(&stage, 0, 1024) << 20;

	stage_begin(&stage);
	for (;;) {
		char *area =
		    stage_need(mmap(NULL, length, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), "mmap");

		madvise(area, length, MADV_NOHUGEPAGE);
		stage_touch(area, length);
		puts("touched");
		fflush(stdout);
		if (getchar() == EOF)
			return 0;
		puts("releasing");
		fflush(stdout);
		stage_need_call(munmap(area, length), "munmap");
	}
}
