// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * pss MIB ROUNDS: the CPU time that the kernel needs for a page of MIB MiB of memory in /proc/PID/smaps_rollup and in
 * /proc/PID/pagemap, the lowest of ROUNDS, and what a terabyte of such memory would need.
 */
#define _GNU_SOURCE /* MADV_HUGEPAGE */
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define HUGE_BYTES (2ul << 20)
#define ENTRIES 2048
#define TERABYTE 1099511627776.0

static const struct memory {
	const char *name;
	int flags, advice, sharers;
} memories[] = {
    {"private", MAP_PRIVATE, MADV_NOHUGEPAGE, 1},
    {"of a parent and 4 children", MAP_PRIVATE, MADV_NOHUGEPAGE, 5},
    {"shared memory of 5", MAP_SHARED, MADV_NOHUGEPAGE, 5},
    {"private, huge pages", MAP_PRIVATE, MADV_HUGEPAGE, 1},
};

static double now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
	return (double)now.tv_sec * 1e9 + (double)now.tv_nsec;
}

static void read_rollup(void)
{
	char text[4096];
	int fd = open("/proc/self/smaps_rollup", O_RDONLY);

	while (fd >= 0 && read(fd, text, sizeof(text)) > 0)
		;
	close(fd);
}

static void read_pagemap(const char *bytes, size_t size)
{
	size_t page_bytes = (size_t)sysconf(_SC_PAGESIZE);
	int fd = open("/proc/self/pagemap", O_RDONLY);
	uint64_t entries[ENTRIES];

	for (size_t i = 0; i < size / page_bytes; i += ENTRIES) {
		if (pread(fd, entries, sizeof(entries), (off_t)(((uintptr_t)bytes / page_bytes + i) * 8)) <= 0)
			break;
	}
	close(fd);
}

static void share(const char *bytes, size_t size, int ready)
{
	size_t page_bytes = (size_t)sysconf(_SC_PAGESIZE);
	char seen = 0;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	for (size_t i = 0; i < size; i += page_bytes)
		seen ^= *(const volatile char *)&bytes[i];
	if (write(ready, &seen, 1) == 1)
		pause();
	_exit(0);
}

static void measure(const struct memory *memory, size_t size, int rounds)
{
	char *mapped = mmap(NULL, size + HUGE_BYTES, PROT_READ | PROT_WRITE, memory->flags | MAP_ANONYMOUS, -1, 0);
	char *bytes = (char *)(((uintptr_t)mapped + HUGE_BYTES - 1) & ~(HUGE_BYTES - 1));
	double best[2] = {1e18, 1e18}, pages = (double)size / (double)sysconf(_SC_PAGESIZE);
	pid_t children[8];
	int ready[2];
	char byte;

	if (mapped == MAP_FAILED || pipe(ready) < 0)
		exit(EXIT_FAILURE);
	madvise(bytes, size, memory->advice);
	memset(bytes, 1, size);
	for (int i = 0; i < memory->sharers - 1; i++) {
		children[i] = fork();
		if (!children[i])
			share(bytes, size, ready[1]);
		if (children[i] < 0 || read(ready[0], &byte, 1) != 1)
			exit(EXIT_FAILURE);
	}
	for (int i = 0; i < rounds; i++) {
		double start = now_ns(), middle, end;

		read_rollup();
		middle = now_ns();
		read_pagemap(bytes, size);
		end = now_ns();
		best[0] = middle - start < best[0] ? middle - start : best[0];
		best[1] = end - middle < best[1] ? end - middle : best[1];
	}
	printf("%-28s %8.1f %8.1f %10.1f %10.1f\n", memory->name, best[0] / pages, best[1] / pages,
	       best[0] / (double)size * TERABYTE / 1e9, best[1] / (double)size * TERABYTE / 1e9);
	fflush(stdout);
	for (int i = 0; i < memory->sharers - 1; i++) {
		kill(children[i], SIGKILL);
		waitpid(children[i], NULL, 0);
	}
	close(ready[0]);
	close(ready[1]);
	munmap(mapped, size + HUGE_BYTES);
}

int main(int argc, char **argv)
{
	size_t size = (size_t)(argc > 1 ? atoi(argv[1]) : 1024) << 20;

	printf("%-28s %8s %8s %10s %10s\n%-28s %8s %8s %10s %10s\n", "", "ns/page", "ns/page", "s for 1 TiB",
	       "s for 1 TiB", "", "rollup", "pagemap", "rollup", "pagemap");
	fflush(stdout);
	for (size_t i = 0; i < sizeof(memories) / sizeof(memories[0]); i++)
		measure(&memories[i], size, argc > 2 ? atoi(argv[2]) : 5);
	return 0;
}
