/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* As many threads as the operand says map and unmap a page all the time, at the same time, for up to two minutes. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "support/stage.h"

enum { STACK_KIBIBYTES = 64, PAGE = 4096, SECONDS_MAX = 120 };

static pthread_barrier_t all_there;

VISIBLE void map_and_unmap(void)
{
	munmap(stage_need(mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), "mmap"), PAGE);
	KEEP_FRAME();
}

static void *go_on(void *unused)
{
	pthread_barrier_wait(&all_there);
	for (;;)
		map_and_unmap();
	return unused;
}

int main(int argc, char **argv)
{
	unsigned count = argc > 1 ? (unsigned)atoi(argv[1]) : 100;
	pthread_attr_t small;

	alarm(SECONDS_MAX);
	pthread_barrier_init(&all_there, NULL, count + 1);
	pthread_attr_init(&small);
	pthread_attr_setstacksize(&small, STACK_KIBIBYTES << 10);
	for (unsigned i = 0; i < count; i++) {
		pthread_t thread;

		if (pthread_create(&thread, &small, go_on, NULL))
			return 1;
	}
	pthread_barrier_wait(&all_there);
	puts("ready");
	fflush(stdout);
	pause();
	return 0;
}
