// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The cost of one operation of the address space with 10^3 to 10^6 live mappings, in ns. Prints figures and never
 * fails:
 *
 *     cmake --build build --target bench-space && build/test/bench-space [OPERATIONS [MAPPINGS]]
 *
 * with this number of operations (200,000) and at most this number of mappings (1,000,000).
 */
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>

#include "model/space/space.h"

#define PAGE 4096ULL
#define FIRST (1ULL << 32)

static unsigned long operations = 200000;

struct bench {
	struct space *space;
	uint64_t mappings;
	uint64_t now_ns, random;
	uint32_t allocation;
};

/* Mappings of 4 pages, each followed by a hole of 4. */
static uint64_t place(uint64_t index)
{
	return FIRST + index * 8 * PAGE;
}

static uint64_t draw(struct bench *bench)
{
	bench->random = bench->random * 6364136223846793005 + 1442695040888963407;
	return place((bench->random >> 33) % bench->mappings);
}

static void require(struct mmt_error *error)
{
	if (!error)
		return;
	fputs("out of memory\n", stderr);
	exit(EXIT_FAILURE);
}

static void call(struct bench *bench, enum call kind, int64_t result, uint64_t address, uint64_t bytes, uint64_t third,
		 uint64_t fourth)
{
	const struct space_call made = {.kind = kind,
					.arguments = {address, bytes, third, fourth, UINT64_MAX},
					.result = result,
					.time_ns = bench->now_ns += 1000,
					.thread = 1,
					.allocation = ++bench->allocation,
					.commit = bench->allocation};

	require(space_apply(bench->space, &made));
}

static void map(struct bench *bench, uint64_t address)
{
	call(bench, CALL_MMAP, (int64_t)address, 0, 4 * PAGE, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS);
}

static void unmap_and_map(struct bench *bench)
{
	uint64_t address = draw(bench);

	call(bench, CALL_MUNMAP, 0, address, 4 * PAGE, 0, 0);
	map(bench, address);
}

static void split_and_merge(struct bench *bench)
{
	uint64_t address = draw(bench);

	call(bench, CALL_MPROTECT, 0, address + PAGE, PAGE, PROT_WRITE, 0);
	call(bench, CALL_MPROTECT, 0, address + PAGE, PAGE, PROT_READ, 0);
}

static void move_and_back(struct bench *bench)
{
	uint64_t address = draw(bench), hole = draw(bench) + 4 * PAGE;

	call(bench, CALL_MREMAP, (int64_t)hole, address, 4 * PAGE, 4 * PAGE, MREMAP_MAYMOVE);
	call(bench, CALL_MREMAP, (int64_t)address, hole, 4 * PAGE, 4 * PAGE, MREMAP_MAYMOVE);
}

static void find(struct bench *bench)
{
	if (!space_find(bench->space, draw(bench)))
		exit(EXIT_FAILURE);
}

static double elapsed_ns(const struct timespec *since)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)(now.tv_sec - since->tv_sec) * 1e9 + (double)(now.tv_nsec - since->tv_nsec);
}

static double measure(struct bench *bench, void (*operation)(struct bench *bench), unsigned int calls)
{
	struct timespec since;

	clock_gettime(CLOCK_MONOTONIC, &since);
	for (unsigned long i = 0; i < operations; i++)
		operation(bench);
	return elapsed_ns(&since) / (double)operations / calls;
}

static double measure_snapshot(struct bench *bench)
{
	const struct space_attributes attributes = {.protection = PROT_READ};
	struct timespec since;

	clock_gettime(CLOCK_MONOTONIC, &since);
	require(space_snapshot_begin(bench->space, SPACE_SNAPSHOT_CHECK, 0, bench->now_ns));
	for (uint64_t i = 0; i < bench->mappings; i++)
		require(space_snapshot_line(bench->space, bench->now_ns, place(i), place(i) + 4 * PAGE, &attributes));
	require(space_snapshot_end(bench->space, bench->now_ns));
	if (space_check_result(bench->space).mismatch_bytes)
		exit(EXIT_FAILURE);
	return elapsed_ns(&since) / (double)bench->mappings;
}

static void run(uint64_t mappings)
{
	struct bench bench = {.mappings = mappings, .random = 1, .allocation = ALLOCATION_FIRST};
	struct timespec since;
	double allocate, pair, protect, move, found, line;

	require(space_create(&(struct space_options){.page_bytes = PAGE}, &bench.space));
	space_exec(bench.space);
	clock_gettime(CLOCK_MONOTONIC, &since);
	for (uint64_t i = 0; i < mappings; i++)
		map(&bench, place(i));
	allocate = elapsed_ns(&since) / (double)mappings;
	pair = measure(&bench, unmap_and_map, 2);
	protect = measure(&bench, split_and_merge, 2);
	move = measure(&bench, move_and_back, 2);
	found = measure(&bench, find, 1);
	line = measure_snapshot(&bench);
	printf("%10llu %8.0f %12.0f %9.0f %7.0f %6.0f %14.0f\n", (unsigned long long)mappings, allocate, pair, protect,
	       move, found, line);
	space_destroy(bench.space);
}

int main(int argc, char **argv)
{
	unsigned long most = argc > 2 ? strtoul(argv[2], NULL, 10) : 1000000;

	if (argc > 1)
		operations = strtoul(argv[1], NULL, 10);
	printf("%10s %8s %12s %9s %7s %6s %14s   ns per call\n", "mappings", "mmap", "munmap+mmap", "mprotect",
	       "mremap", "find", "snapshot line");
	for (uint64_t mappings = 1000; mappings <= most; mappings *= 10)
		run(mappings);
	return EXIT_SUCCESS;
}
