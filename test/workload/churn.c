/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A malloc heap in which one function keeps every tenth block, and others free all of theirs, but need the new pages.
 */
#include <stdlib.h>
#include <string.h>

#include "support/stage.h"

enum { ROUNDS = 60000, BLOCK = 1000, BATCH = 20, KEPT = ROUNDS / 10 };

static char *kept[KEPT];
static size_t kept_count;

VISIBLE char *fill(char *start, size_t bytes)
{
	memset(stage_need(start, "malloc"), 1, bytes);
	return start;
}

VISIBLE void leak(size_t bytes)
{
	kept[kept_count++] = fill(malloc(bytes), bytes);
	KEEP_FRAME();
}

VISIBLE void temp(size_t bytes)
{
	free(fill(malloc(bytes), bytes));
	KEEP_FRAME();
}

VISIBLE void batch(size_t bytes)
{
	char *blocks[BATCH];

	for (int i = 0; i < BATCH; i++)
		blocks[i] = fill(malloc(bytes), bytes);
	for (int i = 0; i < BATCH; i++)
		free(blocks[i]);
	KEEP_FRAME();
}

int main(int argc, char **argv)
{
	struct stage stage = stage_open(argc, argv);

	temp(BLOCK);
	stage_begin(&stage);
	for (int i = 0; i < ROUNDS; i++) {
		if (i % 2)
			temp(BLOCK);
		else if (i % 100 == 0)
			batch(BLOCK);
		if (i % 10 == 0)
			leak(BLOCK);
	}
	stage_end(&stage);
	return 0;
}
