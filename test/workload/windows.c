/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Maps and unmaps known amounts in phases, with a pause between them. Prints a timestamp in each pause, and what a
 * report of each window between two of them must show:
 *
 *     timestamp NUMBER NS
 *     window FROM TO allocated=BYTES freed=BYTES unfreed=BYTES count=N peak=BYTES
 *     young FROM TO LAST allocated=...      the same, only for mappings made before timestamp LAST
 */
#include <stdint.h>
#include <stdio.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "support/stage.h"

enum { PHASES = 5, BLOCKS_MAX = 64, PAUSE_US = 40000, BLOCK_PAGES = 4, KEPT = -1 };

struct block {
	void *start;
	int mapped, freed; /* phases */
};

/* What a phase maps, and how much of each earlier phase it unmaps first. */
static const struct {
	int maps, frees[PHASES];
} phases[PHASES] = {
    {.maps = 6},
    {.maps = 12, .frees = {3}},
    {.maps = 20},
    {.maps = 9, .frees = {1, 5, 7}},
    {.maps = 4, .frees = {2, 0, 6, 9}},
};

static struct block blocks[BLOCKS_MAX];
static int block_count;

VISIBLE void map_even(struct block *block)
{
	block->start = mmap(NULL, BLOCK_PAGES * stage_page_bytes(), PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	stage_need(block->start, "mmap");
}

VISIBLE void map_odd(struct block *block)
{
	block->start = mmap(NULL, BLOCK_PAGES * stage_page_bytes(), PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	stage_need(block->start, "mmap");
}

static void free_some(int mapped, int count, int phase)
{
	for (int i = 0; i < block_count && count > 0; i++) {
		if (blocks[i].mapped != mapped || blocks[i].freed != KEPT)
			continue;
		stage_need_call(munmap(blocks[i].start, BLOCK_PAGES * stage_page_bytes()), "munmap");
		blocks[i].freed = phase;
		count--;
	}
}

/* The releases come first: the peak of a phase is its final value. */
static void run_phase(int phase)
{
	for (int mapped = 0; mapped < phase; mapped++)
		free_some(mapped, phases[phase].frees[mapped], phase);
	for (int i = 0; i < phases[phase].maps; i++) {
		struct block *block = &blocks[block_count++];

		*block = (struct block){.mapped = phase, .freed = KEPT};
		(i & 1 ? map_odd : map_even)(block);
	}
}

static uint64_t now(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}

/* Of the phases [from, to): the mappings of [from, until) as they are after phase to - 1. */
static void print_window(const char *title, int from, int to, int until)
{
	size_t bytes = BLOCK_PAGES * stage_page_bytes();
	int allocated = 0, freed = 0, peak = 0;

	for (int i = 0; i < block_count; i++) {
		if (blocks[i].mapped < from || blocks[i].mapped >= until)
			continue;
		allocated++;
		freed += blocks[i].freed != KEPT && blocks[i].freed < to;
	}
	for (int end = from; end < to; end++) {
		int held = 0;

		for (int i = 0; i < block_count; i++)
			held += blocks[i].mapped >= from && blocks[i].mapped < until && blocks[i].mapped <= end &&
				(blocks[i].freed == KEPT || blocks[i].freed > end);
		peak = held > peak ? held : peak;
	}
	printf("%s allocated=%zu freed=%zu unfreed=%zu count=%d peak=%zu\n", title, allocated * bytes, freed * bytes,
	       (allocated - freed) * bytes, allocated - freed, peak * bytes);
}

int main(int argc, char **argv)
{
	struct stage stage = stage_open(argc, argv);
	uint64_t timestamps[PHASES + 1];
	char title[64];

	setvbuf(stdout, NULL, _IONBF, 0);
	stage_begin(&stage);
	usleep(PAUSE_US);
	timestamps[0] = now();
	for (int phase = 0; phase < PHASES; phase++) {
		usleep(PAUSE_US);
		run_phase(phase);
		usleep(PAUSE_US);
		timestamps[phase + 1] = now();
	}
	usleep(PAUSE_US);
	for (int i = 0; i <= PHASES; i++)
		printf("timestamp %d %llu\n", i, (unsigned long long)timestamps[i]);
	for (int from = 0; from < PHASES; from++) {
		for (int to = from + 1; to <= PHASES; to++) {
			snprintf(title, sizeof(title), "window %d %d", from, to);
			print_window(title, from, to, to);
			for (int until = from + 1; until < to; until++) {
				snprintf(title, sizeof(title), "young %d %d %d", from, to, until);
				print_window(title, from, to, until);
			}
		}
	}
	stage_end(&stage);
	return 0;
}
