/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Maps blocks, then makes enough calls to overflow small rings, while it maps more blocks and releases some of the
 * first ones, then maps a few more: overflow [CHURN] for CHURN pairs in between. The recorder must be stopped between
 * "first" and "over". Everything runs on one CPU, so that one ring takes it all.
 */
#include <sched.h>
#include <stdio.h>
#include <sys/mman.h>

#include "support/stage.h"

#define BLOCK_BYTES ((size_t)1 << 16)
#define LAST_BYTES (2 * BLOCK_BYTES) /* too large for where one of the first was released */
#define FIRST 20		     /* the smallest rings have room for them */
#define RELEASED 10
#define UNSEEN 70
#define LAST 10
#define CHURN 20000
#define CHURN_ADDRESS ((void *)0x100000000000) /* where nothing else comes */

static char *first_blocks[FIRST];

VISIBLE void *map_first(void)
{
	void *block = mmap(NULL, BLOCK_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	KEEP_FRAME();
	return stage_need(block, "mmap");
}

VISIBLE void map_unseen(void)
{
	stage_need(mmap(NULL, BLOCK_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), "mmap");
	KEEP_FRAME();
}

VISIBLE void map_last(void)
{
	stage_need(mmap(NULL, LAST_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), "mmap");
	KEEP_FRAME();
}

VISIBLE void churn(void)
{
	void *page = mmap(CHURN_ADDRESS, stage_page_bytes(), PROT_READ,
			  MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);

	stage_need_call(munmap(stage_need(page, "mmap"), stage_page_bytes()), "munmap");
}

static void stay_on_one_processor(void)
{
	cpu_set_t all, one;

	stage_need_call(sched_getaffinity(0, sizeof(all), &all), "sched_getaffinity");
	CPU_ZERO(&one);
	for (int cpu = 0; cpu < CPU_SETSIZE && !CPU_COUNT(&one); cpu++) {
		if (CPU_ISSET(cpu, &all))
			CPU_SET(cpu, &one);
	}
	stage_need_call(sched_setaffinity(0, sizeof(one), &one), "sched_setaffinity");
}

int main(int argc, char **argv)
{
	struct stage stage = stage_open(argc, argv);
	int churned = (int)stage_number(&stage, 0, CHURN);

	stay_on_one_processor();
	stage_begin(&stage);
	for (int i = 0; i < FIRST; i++)
		first_blocks[i] = map_first();
	stage_pause(&stage, "first");
	for (int i = 0; i < churned; i++)
		churn();
	for (int i = 0; i < UNSEEN; i++)
		map_unseen();
	for (int i = 0; i < RELEASED; i++)
		stage_need_call(munmap(first_blocks[2 * i], BLOCK_BYTES), "munmap");
	stage_pause(&stage, "over");
	for (int i = 0; i < LAST; i++)
		map_last();
	stage_expect("stack=mmap<map_first bytes=%zu", (FIRST - RELEASED) * BLOCK_BYTES);
	stage_expect("stack=mmap<map_last bytes=%zu count=%d", LAST * LAST_BYTES, LAST);
	stage_expect("total=%zu", (FIRST - RELEASED + UNSEEN) * BLOCK_BYTES + LAST * LAST_BYTES);
	dprintf(1, "made mmap %d munmap %d unseen %zu released %zu\n", FIRST + churned + UNSEEN + LAST,
		churned + RELEASED, UNSEEN * BLOCK_BYTES, RELEASED * BLOCK_BYTES);
	stage_end(&stage);
	return 0;
}
