/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* touch PAGES: the CPU time of touching a page for the first time, 24 frames deep, in nanoseconds; then it gives all
 * back, and repeats that. */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>

enum { FRAMES = 24, ROUNDS = 5 };

static double now_ns(void)
{
	struct timespec time;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
	return (double)time.tv_sec * 1e9 + (double)time.tv_nsec;
}

__attribute__((noinline)) static double measure(unsigned frames, char *area, size_t pages)
{
	double spent_ns = 0;

	if (frames) {
		spent_ns = measure(frames - 1, area, pages);
		__asm__ volatile("");
		return spent_ns;
	}
	for (unsigned round = 0; round < ROUNDS; round++) {
		double begin_ns = now_ns();

		for (size_t i = 0; i < pages; i++)
			area[i * 4096] = 1;
		spent_ns += now_ns() - begin_ns;
		madvise(area, pages * 4096, MADV_DONTNEED);
	}
	return spent_ns / (double)(ROUNDS * pages);
}

int main(int argc, char **argv)
{
	size_t pages = argc > 1 ? strtoul(argv[1], NULL, 10) : 100000;
	char *area = mmap(NULL, pages * 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (area == MAP_FAILED)
		return 1;
	madvise(area, pages * 4096, MADV_NOHUGEPAGE);
	fprintf(stderr, "%.0f ns per touch\n", measure(FRAMES, area, pages));
	return 0;
}
