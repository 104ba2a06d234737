/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Memory that grows in different places: `growth arena` touches what malloc reserved and made accessible before, in an
 * arena of a thread; `growth mmap` maps and touches; `growth brk` grows the heap; `growth idle` does nothing; `growth
 * give-back` unmaps what it had touched. Says how many bytes it touched.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "support/stage.h"

enum { PIECE_BYTES = 60000, PIECES = 700, BYTES = 40 << 20 };

static char *pieces[PIECES];
static pthread_barrier_t begin, done, end;

/* The pieces lie in the thread's arena; only their headers are touched. */
static void *run_thread(void *unused)
{
	for (int i = 0; i < PIECES; i++)
		pieces[i] = stage_need(malloc(PIECE_BYTES), "malloc");
	pthread_barrier_wait(&begin);
	pthread_barrier_wait(&begin);
	for (int i = 0; i < PIECES; i++)
		memset(pieces[i], 1, PIECE_BYTES);
	pthread_barrier_wait(&done);
	pthread_barrier_wait(&end);
	return unused;
}

static void grow_arena(const struct stage *stage)
{
	pthread_t thread;

	pthread_barrier_init(&begin, NULL, 2);
	pthread_barrier_init(&done, NULL, 2);
	pthread_barrier_init(&end, NULL, 2);
	if (pthread_create(&thread, NULL, run_thread, NULL))
		exit(1);
	pthread_barrier_wait(&begin);
	stage_begin(stage);
	pthread_barrier_wait(&begin);
	pthread_barrier_wait(&done);
	/* The page of each header was touched before. */
	printf("touched %zu\n", PIECES * (PIECE_BYTES - stage_page_bytes()));
	stage_end(stage);
	pthread_barrier_wait(&end);
	pthread_join(thread, NULL);
}

VISIBLE void *map_block(void)
{
	void *block = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	return stage_need(block, "mmap");
}

VISIBLE void *grow_heap(void)
{
	void *block = sbrk(BYTES);

	return stage_need(block == (void *)-1 ? NULL : block, "sbrk");
}

static void grow(const struct stage *stage, void *(*allocate)(void))
{
	stage_begin(stage);
	stage_touch(allocate(), BYTES);
	printf("touched %d\n", BYTES);
	stage_end(stage);
}

static void give_back(const struct stage *stage)
{
	void *block = map_block();

	stage_touch(block, BYTES);
	stage_begin(stage);
	munmap(block, BYTES);
	printf("touched %d\n", -BYTES);
	stage_end(stage);
}

static void idle(const struct stage *stage)
{
	stage_begin(stage);
	printf("touched 0\n");
	stage_end(stage);
}

int main(int argc, char **argv)
{
	struct stage stage = stage_open(argc, argv);
	/* With huge pages, touching the headers would touch all. */
	int status = prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0);
	const char *kind = stage.operand_count ? stage.operands[0] : "idle";

	stage_need_call(status, "prctl");
	if (!strcmp(kind, "arena"))
		grow_arena(&stage);
	else if (!strcmp(kind, "mmap"))
		grow(&stage, map_block);
	else if (!strcmp(kind, "brk"))
		grow(&stage, grow_heap);
	else if (!strcmp(kind, "give-back"))
		give_back(&stage);
	else
		idle(&stage);
	return 0;
}
