// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * mmap and munmap of 64 KiB, called 24 frames deep:
 *
 *     churn COUNT [STACKS]              from STACKS different places (1); prints nanoseconds per pair
 *     churn --mappings MAPPINGS COUNT   beside so many mappings; prints the mean and the longest pair,
 *                                       and how many took more than a millisecond
 *     churn --threads THREADS           in so many threads, until it is killed
 *     churn --spin                      no calls, only a processor kept busy until it is killed
 */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#define BYTES 65536
#define DEPTH 22 /* under main() and above map_and_unmap() */

static uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

static void map_and_unmap(void)
{
	void *memory = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (memory == MAP_FAILED)
		abort();
	munmap(memory, BYTES);
}

/* A bit of `path` for each frame says from which of two places the next one is called. */
__attribute__((noinline)) static void go_deeper(unsigned depth, unsigned path)
{
	if (!depth)
		map_and_unmap();
	else if (path & 1)
		go_deeper(depth - 1, path >> 1);
	else
		go_deeper(depth - 1, path / 2);
	__asm__ volatile("" ::: "memory"); /* a call in tail position would be no frame */
}

static int time_pairs(unsigned count, unsigned stacks)
{
	uint64_t start = now_ns();

	for (unsigned i = 0; i < count; i++)
		go_deeper(DEPTH, i % stacks);
	printf("%llu\n", (unsigned long long)((now_ns() - start) / count));
	return 0;
}

static int time_among_mappings(unsigned mappings, unsigned count)
{
	uint64_t longest = 0, sum = 0, long_ones = 0;

	/* Protections in turn, so that the kernel does not merge them. */
	for (unsigned i = 0; i < mappings; i++) {
		if (mmap(NULL, 4096, i % 2 ? PROT_READ : PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) ==
		    MAP_FAILED)
			return 1;
	}
	for (unsigned i = 0; i < count; i++) {
		uint64_t start = now_ns(), length;

		go_deeper(DEPTH, 0);
		length = now_ns() - start;
		sum += length;
		longest = length > longest ? length : longest;
		long_ones += length > 1000000;
	}
	printf("%llu %llu %llu\n", (unsigned long long)(sum / count), (unsigned long long)longest,
	       (unsigned long long)long_ones);
	return 0;
}

static void *work(void *unused)
{
	for (;;)
		go_deeper(DEPTH, 0);
	return unused;
}

int main(int argc, char **argv)
{
	if (argc > 3 && !strcmp(argv[1], "--mappings"))
		return time_among_mappings((unsigned)atoi(argv[2]), (unsigned)atoi(argv[3]));
	if (argc > 2 && !strcmp(argv[1], "--threads")) {
		for (int i = 0; i < atoi(argv[2]); i++) {
			pthread_t thread;

			if (pthread_create(&thread, NULL, work, NULL))
				return 1;
		}
		for (;;)
			pause();
	}
	if (argc > 1 && !strcmp(argv[1], "--spin")) {
		for (volatile unsigned i = 0;; i++)
			;
	}
	return time_pairs(argc > 1 ? (unsigned)atoi(argv[1]) : 100000,
			  argc > 2 && atoi(argv[2]) > 0 ? (unsigned)atoi(argv[2]) : 1);
}
