// SPDX-License-Identifier: LGPL-2.1-or-later
/* mmap and munmap of 64 KiB, COUNT times, called 24 frames deep; prints nanoseconds per pair. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>

#define BYTES 65536

static uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

__attribute__((noinline)) static void map_and_unmap(unsigned depth)
{
	if (depth) {
		map_and_unmap(depth - 1);
	} else {
		void *memory = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

		if (memory == MAP_FAILED)
			abort();
		munmap(memory, BYTES);
	}
	__asm__ volatile("" ::: "memory"); /* a call in tail position would be no frame */
}

int main(int argc, char **argv)
{
	unsigned count = argc > 1 ? (unsigned)atoi(argv[1]) : 100000;
	uint64_t start = now_ns();

	for (unsigned i = 0; i < count; i++)
		map_and_unmap(22);
	printf("%llu\n", (unsigned long long)((now_ns() - start) / count));
	return 0;
}
