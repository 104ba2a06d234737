/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Four stacks with different lifetimes, for 4 seconds, longer on a loaded machine: one mapping in 20 leaks, a cache
 * that is filled at the start, temporary memory, and a collector that frees everything four times a second.
 */
#include <stdint.h>
#include <sys/mman.h>
#include <time.h>

#include "support/stage.h"

enum { BLOCK_BYTES = 65536, TICKS = 2000, LEAK_EVERY = 20, CACHED = 30, COLLECT_TICKS = 125 };

#define TICK_NS 2000000
#define FILLING_TIMES 40 /* the whole lasts at least so many times as long as filling the cache */

static int64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * 1000000000LL + now.tv_nsec;
}

static void *map_block(void)
{
	void *block =
	    stage_need(mmap(NULL, BLOCK_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), "mmap");

	stage_touch(block, BLOCK_BYTES);
	return block;
}

/* Neighbours are mapped in turn, so that the kernel does not merge all mappings of one of these. */
VISIBLE void leak_some(int tick)
{
	void *block = map_block();

	if (tick % LEAK_EVERY)
		munmap(block, BLOCK_BYTES);
}

VISIBLE void fill_cache(int tick)
{
	if (tick < CACHED)
		map_block();
	KEEP_FRAME();
}

VISIBLE void serve_request(int tick)
{
	static void *last;

	(void)tick;
	if (last)
		munmap(last, BLOCK_BYTES);
	last = map_block();
}

VISIBLE void collect(int tick)
{
	static void *blocks[COLLECT_TICKS];
	int place = tick % COLLECT_TICKS;

	for (int i = 0; !place && tick && i < COLLECT_TICKS; i++)
		munmap(blocks[i], BLOCK_BYTES);
	blocks[place] = map_block();
}

int main(int argc, char **argv)
{
	struct stage stage = stage_open(argc, argv);
	int64_t start_ns, next_ns = 0, tick_ns = TICK_NS;

	stage_begin(&stage);
	start_ns = now_ns();
	for (int tick = 0; tick < TICKS; tick++) {
		leak_some(tick);
		fill_cache(tick);
		serve_request(tick);
		collect(tick);
		/* On a loaded machine, pauses would spread the filling of the cache over much of the recording. */
		if (tick < CACHED)
			continue;
		if (tick == CACHED) {
			next_ns = now_ns();
			if (FILLING_TIMES * (next_ns - start_ns) > TICKS * tick_ns)
				tick_ns = FILLING_TIMES * (next_ns - start_ns) / TICKS;
		}
		next_ns += tick_ns;
		clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME,
				&(struct timespec){.tv_sec = next_ns / 1000000000, .tv_nsec = next_ns % 1000000000},
				NULL);
	}
	stage_end(&stage);
	return 0;
}
