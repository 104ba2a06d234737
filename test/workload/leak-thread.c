/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Four threads map; each keeps some blocks, frees some, and hands some to the main thread, which frees them. */
#include <pthread.h>
#include <sys/mman.h>

#include "support/stage.h"

enum { THREADS = 4, KEPT = 6, FREED_HERE = 5, FREED_BY_MAIN = 3, BLOCK_PAGES = 4 };

struct worker {
	pthread_t thread;
	void *for_main[FREED_BY_MAIN];
};

static pthread_barrier_t finished;

VISIBLE void *map_block(void)
{
	size_t bytes = BLOCK_PAGES * stage_page_bytes();
	void *block = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	stage_need(block, "mmap");
	stage_touch(block, bytes);
	return block;
}

VISIBLE void keep_block(void)
{
	map_block();
	KEEP_FRAME();
}

VISIBLE void free_block_here(void)
{
	munmap(map_block(), BLOCK_PAGES * stage_page_bytes());
	KEEP_FRAME();
}

VISIBLE void *hand_over_block(void)
{
	void *block = map_block();

	KEEP_FRAME();
	return block;
}

VISIBLE void *run_worker(void *argument)
{
	struct worker *worker = argument;

	for (int i = 0; i < KEPT; i++)
		keep_block();
	for (int i = 0; i < FREED_HERE; i++)
		free_block_here();
	for (int i = 0; i < FREED_BY_MAIN; i++)
		worker->for_main[i] = hand_over_block();
	pthread_barrier_wait(&finished);
	return NULL;
}

int main(int argc, char **argv)
{
	static struct worker workers[THREADS];
	struct stage stage = stage_open(argc, argv);
	size_t block = BLOCK_PAGES * stage_page_bytes();

	pthread_barrier_init(&finished, NULL, THREADS + 1);
	stage_begin(&stage);
	for (int i = 0; i < THREADS; i++)
		pthread_create(&workers[i].thread, NULL, run_worker, &workers[i]);
	pthread_barrier_wait(&finished);
	for (int i = 0; i < THREADS; i++) {
		for (int k = 0; k < FREED_BY_MAIN; k++)
			munmap(workers[i].for_main[k], block);
		pthread_join(workers[i].thread, NULL);
	}
	stage_expect(
	    "bytes=%zu count=%d resident=%zu threads=%d stack=mmap<map_block<keep_block<run_worker<start_thread",
	    THREADS * KEPT * block, THREADS * KEPT, THREADS * KEPT * block, THREADS);
	stage_expect("bytes=0 releases=%d stack=mmap<map_block<free_block_here<run_worker", THREADS * FREED_HERE);
	stage_expect("bytes=0 releases=%d stack=mmap<map_block<hand_over_block<run_worker", THREADS * FREED_BY_MAIN);
	stage_end(&stage);
	return 0;
}
