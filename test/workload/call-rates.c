/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Calls at full speed or on deep stacks, as requested on stdin: call-rates [DEPTH [PAIRS]]. "fast" makes PAIRS of mmap
 * and munmap as fast as possible; "deep" makes some calls of mmap under DEPTH frames of 1,000 bytes, so few that their
 * dumps fit into any ring; each line is repeated after the work. Any other line ends the program.
 */
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#include "support/stage.h"

#define BLOCK_BYTES ((size_t)1 << 16)
#define FRAME_BYTES 960
#define DEEP_CALLS 50

VISIBLE void leak_deep(void)
{
	void *block = mmap(NULL, BLOCK_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	KEEP_FRAME();
	stage_need(block, "mmap");
}

VISIBLE void descend(size_t depth)
{
	char frame[FRAME_BYTES];

	memset(frame, (int)depth, sizeof(frame));
	__asm__ volatile("" ::"r"(frame) : "memory");
	if (depth)
		descend(depth - 1);
	else
		leak_deep();
	KEEP_FRAME();
}

VISIBLE void map_and_unmap(size_t pairs)
{
	for (size_t i = 0; i < pairs; i++) {
		void *block = mmap(NULL, BLOCK_BYTES, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

		stage_need_call(munmap(stage_need(block, "mmap"), BLOCK_BYTES), "munmap");
	}
	KEEP_FRAME();
}

int main(int argc, char **argv)
{
	struct stage stage = stage_open(argc, argv);
	size_t depth = stage_number(&stage, 0, 50), pairs = stage_number(&stage, 1, 3000), leaks = 0;
	char line[16];

	stage_begin(&stage);
	while (fgets(line, sizeof(line), stdin)) {
		if (strcmp(line, "fast\n") == 0) {
			map_and_unmap(pairs);
		} else if (strcmp(line, "deep\n") == 0) {
			for (size_t i = 0; i < DEEP_CALLS; i++)
				descend(depth);
			leaks += DEEP_CALLS;
		} else {
			break;
		}
		fputs(line, stdout);
		fflush(stdout);
	}
	stage_expect("bytes=%zu count=%zu stack=mmap<leak_deep<descend", leaks * BLOCK_BYTES, leaks);
	stage_end(&stage);
	return 0;
}
