/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Memory that is mapped in one recording and still there in later ones. Each line on stdin is a round, and prints
 * "round N"; the line "exec" replaces the program by itself. With the operand "race", a thread also maps, moves and
 * frees blocks all the time, of which the last ones stay.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <signal.h>
#include <unistd.h>

#include "support/stage.h"

enum { RACING = 64, RESERVED_PAGES = 256 };

static atomic_bool ends;

VISIBLE char *map_pages(size_t pages, int protection)
{
	char *block = mmap(NULL, pages * stage_page_bytes(), protection, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	return stage_need(block, "mmap");
}

VISIBLE void leak(void)
{
	stage_touch(map_pages(16, PROT_READ | PROT_WRITE), 16 * stage_page_bytes());
	KEEP_FRAME();
}

VISIBLE char *hold(void)
{
	char *block = map_pages(8, PROT_READ | PROT_WRITE);

	KEEP_FRAME();
	return block;
}

VISIBLE char *move_far(char *block)
{
	size_t bytes = 32 * stage_page_bytes();
	char *target = map_pages(32, PROT_NONE);

	return stage_need(mremap(block, bytes, bytes, MREMAP_MAYMOVE | MREMAP_FIXED, target), "mremap");
}

VISIBLE char *map_to_move(void)
{
	char *block = map_pages(32, PROT_READ | PROT_WRITE);

	KEEP_FRAME();
	return block;
}

VISIBLE char *map_to_cut(void)
{
	char *block = map_pages(64, PROT_READ | PROT_WRITE);

	KEEP_FRAME();
	return block;
}

VISIBLE char *reserve(void)
{
	char *block = map_pages(RESERVED_PAGES, PROT_NONE);

	KEEP_FRAME();
	return block;
}

VISIBLE void commit(char *block)
{
	stage_need_call(mprotect(block, 4 * stage_page_bytes(), PROT_READ | PROT_WRITE), "mprotect");
	stage_touch(block, 4 * stage_page_bytes());
}

VISIBLE char *race_map(size_t pages)
{
	char *block = map_pages(pages, PROT_READ | PROT_WRITE);

	KEEP_FRAME();
	return block;
}

static void *race(void *argument)
{
	char *blocks[RACING] = {0};
	size_t page = stage_page_bytes();

	for (unsigned i = 0; !atomic_load(&ends); i++) {
		char **block = &blocks[i * 2654435761u % RACING];

		if (!*block) {
			*block = race_map(4);
		} else if (i % 3) {
			stage_need_call(munmap(*block, 4 * page), "munmap");
			*block = NULL;
		} else {
			char *target = race_map(4);

			*block = stage_need(mremap(*block, 4 * page, 4 * page, MREMAP_MAYMOVE | MREMAP_FIXED, target),
					    "mremap");
		}
		if (i % 16 == 0)
			usleep(1000);
	}
	return argument;
}

VISIBLE void leak_in_child(void)
{
	(void)map_pages(24, PROT_READ | PROT_WRITE);
	KEEP_FRAME();
}

static void fork_child(void)
{
	if (fork() == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		leak_in_child();
		pause();
	}
}

int main(int argc, char **argv)
{
	char line[16], *held = NULL, *moved = NULL, *cut = NULL, *reserved = NULL;
	size_t page = stage_page_bytes();
	pthread_t racer;
	bool races = argc > 1 && !strcmp(argv[1], "race");

	puts("ready");
	fflush(stdout);
	for (unsigned round = 1; fgets(line, sizeof(line), stdin); round++) {
		if (!strcmp(line, "exec\n"))
			execv("/proc/self/exe", argv);
		if (!strcmp(line, "rest\n")) {
			atomic_store(&ends, true);
			if (races)
				pthread_join(racer, NULL);
			races = false;
		}
		leak();
		if (held)
			munmap(held, 8 * page);
		held = hold();
		moved = move_far(moved ? moved : map_to_move());
		if (!cut)
			cut = map_to_cut();
		else if (round < 8)
			munmap(cut + 8 * round * page, 4 * page);
		if (!reserved)
			reserved = reserve();
		if (round < 60)
			commit(reserved + 4 * round * page);
		if (round == 1 && races)
			pthread_create(&racer, NULL, race, NULL);
		if (round == 2)
			fork_child();
		printf("round %u\n", round);
		fflush(stdout);
	}
	return 0;
}
