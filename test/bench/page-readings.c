// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Preloaded into mmtrace by residency-cost: for each reading of a process's resident pages (from opening its pagemap to
 * closing it), appends a line to the file $PAGE_READINGS: elapsed and CPU time, the time of the longest call that reads
 * pages or samples their contents, all in ns, and the number of these calls. With $NO_PAGEMAP, pagemap cannot be
 * opened.
 */
#define _GNU_SOURCE /* syscall */
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

static _Thread_local struct {
	int fd; /* 0: none */
	uint64_t began_ns, processor_ns;
	uint64_t calls, longest_ns;
} reading;

static uint64_t clock_ns(clockid_t clock)
{
	struct timespec now;

	clock_gettime(clock, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

int open(const char *path, int flags, ...)
{
	const char *name = strrchr(path, '/');
	va_list arguments;
	mode_t mode;
	int fd;

	va_start(arguments, flags);
	mode = flags & (O_CREAT | O_TMPFILE) ? va_arg(arguments, mode_t) : 0;
	va_end(arguments);
	if (!name || strcmp(name, "/pagemap") != 0)
		return (int)syscall(SYS_openat, AT_FDCWD, path, flags, mode);
	if (getenv("NO_PAGEMAP")) {
		errno = EACCES;
		return -1;
	}
	fd = (int)syscall(SYS_openat, AT_FDCWD, path, flags, mode);
	if (fd > 0) {
		reading.fd = fd;
		reading.calls = reading.longest_ns = 0;
		reading.processor_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID);
		reading.began_ns = clock_ns(CLOCK_MONOTONIC);
	}
	return fd;
}

static void count_call(uint64_t began_ns)
{
	uint64_t took_ns = clock_ns(CLOCK_MONOTONIC) - began_ns;

	reading.calls++;
	reading.longest_ns = took_ns > reading.longest_ns ? took_ns : reading.longest_ns;
}

int ioctl(int fd, unsigned long request, ...)
{
	uint64_t began_ns = reading.fd && fd == reading.fd ? clock_ns(CLOCK_MONOTONIC) : 0;
	va_list arguments;
	int result;

	va_start(arguments, request);
	result = (int)syscall(SYS_ioctl, fd, request, va_arg(arguments, void *));
	va_end(arguments);
	if (began_ns)
		count_call(began_ns);
	return result;
}

ssize_t pread(int fd, void *bytes, size_t count, off_t offset)
{
	uint64_t began_ns = reading.fd && fd == reading.fd ? clock_ns(CLOCK_MONOTONIC) : 0;
	ssize_t result = syscall(SYS_pread64, fd, bytes, count, offset);

	if (began_ns)
		count_call(began_ns);
	return result;
}

ssize_t process_vm_readv(pid_t pid, const struct iovec *local, unsigned long local_count, const struct iovec *remote,
			 unsigned long remote_count, unsigned long flags)
{
	uint64_t began_ns = clock_ns(CLOCK_MONOTONIC);
	ssize_t result = syscall(SYS_process_vm_readv, pid, local, local_count, remote, remote_count, flags);

	count_call(began_ns);
	return result;
}

int close(int fd)
{
	if (reading.fd && fd == reading.fd) {
		uint64_t elapsed_ns = clock_ns(CLOCK_MONOTONIC) - reading.began_ns;
		uint64_t processor_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID) - reading.processor_ns;
		const char *path = getenv("PAGE_READINGS");
		FILE *file = path ? fopen(path, "ae") : NULL;

		reading.fd = 0;
		if (file) {
			fprintf(file, "%llu %llu %llu %llu\n", (unsigned long long)elapsed_ns,
				(unsigned long long)processor_ns, (unsigned long long)reading.longest_ns,
				(unsigned long long)reading.calls);
			fclose(file);
		}
	}
	return (int)syscall(SYS_close, fd);
}
