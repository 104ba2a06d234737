// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * stuck [FILE [exec | frames]]: a target of the tests with silent-files. Maps memory at intervals and prints "ready".
 * With FILE, whose contents never arrive: maps it; a child reads the mapping in /proc/PID/mem, which takes the
 * mmap_lock and keeps it; from then on this process is stuck in mmap(), and so are all processes that need the lock.
 * Prints "stuck" first. With "exec": opens FILE instead, and executes itself; the exec is stuck when it closes FILE.
 * With "frames": maps FILE as code, and makes its calls as if that code had called.
 */
#include <alloca.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#define PAGE_BYTES 4096
#define INTERVAL_MICROSECONDS 20000

/* Does the process sleep in pread()? */
static int is_reading(pid_t pid)
{
	char path[64], text[256] = "";
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/syscall", (int)pid);
	fd = open(path, O_RDONLY);
	if (fd < 0 || read(fd, text, sizeof(text) - 1) < 0)
		return 0;
	close(fd);
	return atoi(text) == SYS_pread64;
}

/* Opening it could have to wait for other calls in its directory later. */
static void *map_file(const char *name)
{
	int file = open(name, O_RDONLY);
	void *mapped = mmap(NULL, PAGE_BYTES, PROT_READ, MAP_PRIVATE, file, 0);

	if (mapped == MAP_FAILED) {
		fprintf(stderr, "stuck: %s: %s\n", name, strerror(errno));
		_exit(2);
	}
	return mapped;
}

static void hold_lock(const void *mapped)
{
	pid_t child, self = getpid();
	char path[64], byte;

	child = fork();
	if (child == 0) {
		int memory;

		prctl(PR_SET_PDEATHSIG, SIGKILL);
		snprintf(path, sizeof(path), "/proc/%d/mem", (int)self);
		memory = open(path, O_RDONLY);
		_exit(pread(memory, &byte, 1, (off_t)(uintptr_t)mapped) != 1);
	}
	while (!is_reading(child))
		usleep(1000);
	puts("stuck");
	fflush(stdout);
}

/* The name makes --ask-runtime ask this process. */
static void map_runtime(void)
{
	int file = open("libcoreclr.so", O_RDONLY);

	if (file >= 0)
		(void)mmap(NULL, PAGE_BYTES, PROT_READ | PROT_EXEC, MAP_PRIVATE, file, 0);
}

/* With memory from alloca(), compilers find the caller by the frame pointer. */
static void map_as_if_called_by(uint64_t caller, size_t size)
{
#ifdef __x86_64__
	volatile uint64_t *frame = alloca(size);
	register long flags __asm__("r10") = MAP_PRIVATE | MAP_ANONYMOUS;
	register long file __asm__("r8") = -1;
	register long offset __asm__("r9") = 0;
	long result;

	frame[0] = 0;
	frame[1] = caller;
	__asm__ volatile("mov %%rbp, %%rbx\n\tmov %[frame], %%rbp\n\tsyscall\n\tmov %%rbx, %%rbp"
			 : "=a"(result)
			 : "a"(SYS_mmap), "D"(0), "S"(PAGE_BYTES), "d"(PROT_READ), "r"(flags), "r"(file),
			   "r"(offset), [frame] "r"(frame)
			 : "rbx", "rcx", "r11", "memory");
#endif
}

int main(int argc, char **argv)
{
	const void *mapped = argc == 2 ? map_file(argv[1]) : NULL;

	int executes = argc == 3 && !strcmp(argv[2], "exec");
	int file = argc == 3 ? open(argv[1], O_RDONLY | O_CLOEXEC) : -1;
	const void *code = NULL;

	if (argc == 3 && !executes)
		code = mmap(NULL, PAGE_BYTES, PROT_READ | PROT_EXEC, MAP_PRIVATE, file, 0);
	map_runtime();
	puts("ready");
	fflush(stdout);
	if (argc > 1 && !code)
		(void)getchar();
	if (executes)
		execl("/proc/self/exe", argv[0], NULL);
	if (mapped)
		hold_lock(mapped);
	for (;;) {
		void *memory = mmap(NULL, PAGE_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

		if (memory != MAP_FAILED)
			*(volatile char *)memory = 1;
		if (code)
			map_as_if_called_by((uintptr_t)code + PAGE_BYTES / 2, 2 * sizeof(uint64_t));
		usleep(INTERVAL_MICROSECONDS);
	}
}
