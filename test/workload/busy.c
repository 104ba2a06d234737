/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Calls without a pause before, during and after the recording: four threads map blocks and hand them to each other
 * through slots, and the thread that takes a block unmaps it; one thread leaks a page every 50 microseconds.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

#include "support/stage.h"

#define SLOTS 64
#define PAGES 4

static _Atomic(void *) slots[SLOTS];

VISIBLE void *map_block(void)
{
	void *block =
	    mmap(NULL, PAGES * stage_page_bytes(), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	stage_need(block, "mmap");
	return block;
}

VISIBLE void *exchange_blocks(void *seed)
{
	unsigned number = (unsigned)(size_t)seed;

	for (;;) {
		void *taken;

		number = number * 1664525 + 1013904223;
		taken = atomic_exchange(&slots[(number >> 16) % SLOTS], map_block());
		if (taken)
			munmap(taken, PAGES * stage_page_bytes());
	}
	return NULL;
}

VISIBLE void *leak_steadily(void *unused)
{
	for (;;) {
		stage_need(mmap(NULL, stage_page_bytes(), PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), "mmap");
		usleep(50);
		KEEP_FRAME();
	}
	return unused;
}

int main(void)
{
	pthread_t thread;

	for (size_t i = 1; i <= 4; i++)
		pthread_create(&thread, NULL, exchange_blocks, (void *)i);
	pthread_create(&thread, NULL, leak_steadily, NULL);
	puts("ready");
	fflush(stdout);
	pause();
	return 0;
}
