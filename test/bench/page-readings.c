// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Preloaded into mmtrace by residency-cost: appends a line to the file $PAGE_READINGS for each call that reads resident
 * pages or samples their contents, in whichever process of the recorder: the times at its begin and end and the
 * processor time that it took, all in ns. With $NO_PAGEMAP, pagemap cannot be opened.
 */
#define _GNU_SOURCE /* syscall */
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#define PAGEMAP_TYPE 'f' /* of PAGEMAP_SCAN */
#define PAGEMAP_NUMBER 16

struct call {
	uint64_t began_ns, processor_ns;
};

static uint64_t clock_ns(clockid_t clock)
{
	struct timespec now;

	clock_gettime(clock, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

static struct call begin_call(void)
{
	return (struct call){clock_ns(CLOCK_MONOTONIC), clock_ns(CLOCK_THREAD_CPUTIME_ID)};
}

static void end_call(struct call call)
{
	uint64_t ended_ns = clock_ns(CLOCK_MONOTONIC);
	uint64_t processor_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID) - call.processor_ns;
	const char *path = getenv("PAGE_READINGS");
	FILE *file = path ? fopen(path, "ae") : NULL;

	if (!file)
		return;
	fprintf(file, "%llu %llu %llu\n", (unsigned long long)call.began_ns, (unsigned long long)ended_ns,
		(unsigned long long)processor_ns);
	fclose(file);
}

int open(const char *path, int flags, ...)
{
	const char *name = strrchr(path, '/');
	va_list arguments;
	mode_t mode;

	va_start(arguments, flags);
	mode = flags & (O_CREAT | O_TMPFILE) ? va_arg(arguments, mode_t) : 0;
	va_end(arguments);
	if (name && strcmp(name, "/pagemap") == 0 && getenv("NO_PAGEMAP")) {
		errno = EACCES;
		return -1;
	}
	return (int)syscall(SYS_openat, AT_FDCWD, path, flags, mode);
}

int ioctl(int fd, unsigned long request, ...)
{
	bool scans = (request >> 8 & 0xff) == PAGEMAP_TYPE && (request & 0xff) == PAGEMAP_NUMBER;
	struct call call = begin_call();
	va_list arguments;
	int result;

	va_start(arguments, request);
	result = (int)syscall(SYS_ioctl, fd, request, va_arg(arguments, void *));
	va_end(arguments);
	if (scans)
		end_call(call);
	return result;
}

ssize_t process_vm_readv(pid_t pid, const struct iovec *local, unsigned long local_count, const struct iovec *remote,
			 unsigned long remote_count, unsigned long flags)
{
	struct call call = begin_call();
	ssize_t result = syscall(SYS_process_vm_readv, pid, local, local_count, remote, remote_count, flags);

	end_call(call);
	return result;
}
