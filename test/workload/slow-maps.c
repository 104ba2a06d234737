/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* For LD_PRELOAD: the program opens /proc/PID/maps and reads it a while later. */
#include <dlfcn.h>
#include <fcntl.h>
#include <stdarg.h>
#include <string.h>
#include <time.h>

#define WHILE_NS 50000000

typedef int (*open_function)(const char *path, int flags, ...);

__attribute__((visibility("default"))) int open(const char *path, int flags, ...)
{
	const struct timespec pause = {.tv_nsec = WHILE_NS};
	const char *name = strrchr(path, '/');
	open_function real;
	va_list arguments;
	int descriptor;

	*(void **)&real = dlsym(RTLD_NEXT, "open");
	va_start(arguments, flags);
	descriptor = real(path, flags, flags & O_CREAT ? va_arg(arguments, mode_t) : 0);
	va_end(arguments);
	if (name && strcmp(name, "/maps") == 0)
		nanosleep(&pause, NULL);
	return descriptor;
}
