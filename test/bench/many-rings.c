// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Preloaded into mmtrace record --scope cpus -p PID: shows it as many CPUs as the target PROCESS has threads besides its
 * first one. The events of a CPU are those of one of these threads, wherever it runs. So each ring has records of its
 * own, in any order of time beside those of others, as on a machine with that many CPUs.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <linux/perf_event.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#define MOST 1024

static int threads[MOST];

static int count_threads(void)
{
	static int count;
	char path[64];
	struct dirent *entry;
	DIR *tasks;

	snprintf(path, sizeof(path), "/proc/%s/task", getenv("PROCESS"));
	tasks = count ? NULL : opendir(path);
	while (tasks && (entry = readdir(tasks)) && count < MOST) {
		if (entry->d_name[0] != '.' && strcmp(entry->d_name, getenv("PROCESS")) != 0)
			threads[count++] = atoi(entry->d_name);
	}
	if (tasks)
		closedir(tasks);
	return count;
}

int openat(int directory, const char *path, int flags, ...)
{
	mode_t mode = 0;
	va_list arguments;
	int fd;

	va_start(arguments, flags);
	if (flags & (O_CREAT | O_TMPFILE))
		mode = va_arg(arguments, mode_t);
	va_end(arguments);
	if (strcmp(path, "/sys/devices/system/cpu/online") != 0)
		return (int)syscall(SYS_openat, directory, path, flags, mode);
	fd = memfd_create("online", MFD_CLOEXEC);
	dprintf(fd, "0-%d\n", count_threads() - 1);
	lseek(fd, 0, SEEK_SET);
	return fd;
}

static long call(long number, long a, long b, long c, long d, long e, long f)
{
	static long (*next)(long, ...);

	if (!next)
		next = (long (*)(long, ...))dlsym(RTLD_NEXT, "syscall");
	return next(number, a, b, c, d, e, f);
}

long syscall(long number, ...)
{
	struct perf_event_attr attribute;
	long values[6];
	va_list arguments;

	va_start(arguments, number);
	for (int i = 0; i < 6; i++)
		values[i] = va_arg(arguments, long);
	va_end(arguments);
	if (number == SYS_perf_event_open && (int)values[2] >= 0) {
		memcpy(&attribute, (const void *)values[0], sizeof(attribute));
		attribute.inherit = attribute.inherit_thread = 0;
		values[0] = (long)&attribute;
		values[1] = count_threads() > (int)values[2] ? threads[values[2]] : -1;
		values[2] = -1;
	}
	return call(number, values[0], values[1], values[2], values[3], values[4], values[5]);
}
