/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A thread allocates from an arena of its own: 64 MiB are reserved, and the callers of malloc requested the accessible
 * part. The program reads the size of that part from the kernel's maps.
 */
#include <inttypes.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/stage.h"

#define ARENA_BYTES ((uintptr_t)64 << 20)
enum { PIECE_BYTES = 60000, PIECES = 150 };

static pthread_barrier_t begin, allocated, may_end;
static char *first_piece;

VISIBLE char *allocate_piece(void)
{
	char *piece = stage_need(malloc(PIECE_BYTES), "malloc");

	memset(piece, 1, PIECE_BYTES);
	return piece;
}

VISIBLE void fill_arena(void)
{
	for (int i = 0; i < PIECES; i++)
		first_piece = allocate_piece();
	KEEP_FRAME();
}

static void *run_thread(void *unused)
{
	pthread_barrier_wait(&begin);
	fill_arena();
	pthread_barrier_wait(&allocated);
	pthread_barrier_wait(&may_end);
	return unused;
}

/* Accessible bytes of the 64 MiB that start at `start`. */
static uintptr_t count_accessible(uintptr_t start)
{
	FILE *maps = stage_need(fopen("/proc/self/maps", "r"), "/proc/self/maps");
	uintptr_t from, to, accessible = 0;
	char protection[5], line[512];

	while (fgets(line, sizeof(line), maps)) {
		if (sscanf(line, "%" SCNxPTR "-%" SCNxPTR " %4s", &from, &to, protection) != 3)
			continue;
		from = from > start ? from : start;
		to = to < start + ARENA_BYTES ? to : start + ARENA_BYTES;
		if (from < to && protection[0] == 'r')
			accessible += to - from;
	}
	fclose(maps);
	return accessible;
}

int main(int argc, char **argv)
{
	struct stage stage = stage_open(argc, argv);
	uintptr_t accessible;
	pthread_t thread;

	pthread_barrier_init(&begin, NULL, 2);
	pthread_barrier_init(&allocated, NULL, 2);
	pthread_barrier_init(&may_end, NULL, 2);
	stage_need_call(-pthread_create(&thread, NULL, run_thread, NULL), "pthread_create");
	stage_begin(&stage);
	pthread_barrier_wait(&begin);
	pthread_barrier_wait(&allocated);
	accessible = count_accessible((uintptr_t)first_piece & ~(ARENA_BYTES - 1));
	stage_expect("bytes=%zu count=1 committed=0 reserved=%zu call=mmap through=fill_arena", (size_t)ARENA_BYTES,
		     (size_t)(ARENA_BYTES - accessible));
	stage_expect("bytes=0 committed=%zu committed_before=0 call=mprotect through=fill_arena", (size_t)accessible);
	stage_end(&stage);
	pthread_barrier_wait(&may_end);
	pthread_join(thread, NULL);
	return 0;
}
