/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Threads with names, functions and a file each map known amounts: for --focus and --ignore. The work is done in two
 * rounds, with a pause "round" in between, and one block is unmapped between the rounds.
 */
#include <pthread.h>
#include <sys/mman.h>
#include <unistd.h>

#include "support/stage.h"

enum { BLOCK = 16384, WORKERS = 2, FILE_BLOCKS = 13, MAIN_BLOCKS = 11 };

static const struct {
	const char *name;
	int cached, buffered;
} workers[WORKERS] = {{"worker-1", 3, 5}, {"worker-2", 2, 7}};

static void map_blocks(int count, int file, void **last)
{
	for (int i = 0; i < count; i++) {
		*last = mmap(NULL, BLOCK, PROT_READ | PROT_WRITE, file < 0 ? MAP_PRIVATE | MAP_ANONYMOUS : MAP_SHARED,
			     file, 0);
		stage_need(*last, "mmap");
		stage_touch(*last, BLOCK);
	}
}

VISIBLE void keep_cache(int count, void **last)
{
	map_blocks(count, -1, last);
	KEEP_FRAME();
}

VISIBLE void keep_buffer(int count, void **last)
{
	map_blocks(count, -1, last);
	KEEP_FRAME();
}

VISIBLE void keep_file(int count, int file, void **last)
{
	map_blocks(count, file, last);
	KEEP_FRAME();
}

VISIBLE void *run_worker(void *argument)
{
	int number = *(int *)argument;
	void *last;

	stage_need_call(-pthread_setname_np(pthread_self(), workers[number].name), "pthread_setname_np");
	keep_cache(workers[number].cached, &last);
	keep_buffer(workers[number].buffered, &last);
	return NULL;
}

VISIBLE void run_round(int file, void **last)
{
	pthread_t threads[WORKERS];
	int numbers[WORKERS] = {0, 1};

	for (int i = 0; i < WORKERS; i++)
		stage_need_call(-pthread_create(&threads[i], NULL, run_worker, &numbers[i]), "pthread_create");
	for (int i = 0; i < WORKERS; i++)
		pthread_join(threads[i], NULL);
	keep_cache(MAIN_BLOCKS, last);
	keep_file(FILE_BLOCKS, file, &(void *){NULL});
}

int main(int argc, char **argv)
{
	struct stage stage = stage_open(argc, argv);
	int file = memfd_create("pages", MFD_CLOEXEC);
	void *last = NULL;

	stage_need_call(file, "memfd_create");
	stage_need_call(ftruncate(file, BLOCK), "ftruncate");
	stage_begin(&stage);
	run_round(file, &last);
	stage_pause(&stage, "round");
	stage_need_call(munmap(last, BLOCK), "munmap");
	stage_pause(&stage, "unmapped");
	run_round(file, &last);
	stage_end(&stage);
	return 0;
}
