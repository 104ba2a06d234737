/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Maps memory at once and touches it later: 20 MiB of each second in 64 mappings, 8 MiB of each second in a block of
 * malloc, and for the first seconds 10 MiB of each second in a third mapping; with a second operand only that. */
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "support/stage.h"

#define MEBIBYTE 1048576.0

enum { MAPPINGS = 64, BYTES = 32 << 20, FULL_SECONDS = 3 };

static char *map(size_t bytes)
{
	char *start = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	stage_need(start == MAP_FAILED ? NULL : start, "mmap");
	(void)madvise(start, bytes, MADV_NOHUGEPAGE);
	return start;
}

VISIBLE char *map_slowly(void)
{
	char *start = map(BYTES);

	KEEP_FRAME();
	return start;
}

VISIBLE char *map_full(void)
{
	char *start = map(BYTES);

	KEEP_FRAME();
	return start;
}

VISIBLE char *get_block(void)
{
	char *start = stage_need(malloc(16 * (size_t)BYTES), "malloc");

	KEEP_FRAME();
	return start;
}

static double now(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

/* Touch what is due at `mib` a second. */
static void touch(char *const *parts, size_t *done, double seconds, double mib, size_t most)
{
	size_t due = (size_t)(seconds * mib * MEBIBYTE);

	for (; *done < due && *done < most; *done += 4096)
		parts[*done / BYTES][*done % BYTES] = 1;
}

int main(int argc, char **argv)
{
	struct stage stage = stage_open(argc, argv);
	double seconds = stage.operand_count ? atof(stage.operands[0]) : 10, begin, elapsed;
	double slow_mib = stage.operand_count > 1 ? 0 : 20, block_mib = stage.operand_count > 1 ? 0 : 8;
	size_t slow_done = 0, full_done = 0, block_done = 0;
	char *slow[MAPPINGS], *full, *blocks[16];

	stage_begin(&stage);
	for (int i = 0; i < MAPPINGS; i++)
		slow[i] = map_slowly();
	full = map_full();
	blocks[0] = get_block();
	for (int i = 1; i < 16; i++)
		blocks[i] = blocks[i - 1] + BYTES;
	begin = now();
	while ((elapsed = now() - begin) < seconds) {
		touch(slow, &slow_done, elapsed, slow_mib, MAPPINGS * (size_t)BYTES);
		touch(blocks, &block_done, elapsed, block_mib, 16 * (size_t)BYTES);
		touch(&full, &full_done, elapsed < FULL_SECONDS ? elapsed : FULL_SECONDS, 10, BYTES);
		usleep(10000);
	}
	stage_end(&stage);
	return 0;
}
