/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* For LD_PRELOAD: the program may read neither the maps of the process GUARDED nor the pagemap of NO_PAGEMAP. */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef int (*open_function)(const char *path, int flags, ...);

__attribute__((visibility("default"))) int open(const char *path, int flags, ...)
{
	const char *guarded = getenv("GUARDED"), *no_pagemap = getenv("NO_PAGEMAP");
	char guarded_path[64], pagemap_path[64];
	open_function real;
	va_list arguments;
	int descriptor;

	snprintf(guarded_path, sizeof(guarded_path), "/proc/%s/maps", guarded ? guarded : "");
	snprintf(pagemap_path, sizeof(pagemap_path), "/proc/%s/pagemap", no_pagemap ? no_pagemap : "");
	if (strcmp(path, guarded_path) == 0 || strcmp(path, pagemap_path) == 0) {
		errno = EACCES;
		return -1;
	}
	*(void **)&real = dlsym(RTLD_NEXT, "open");
	va_start(arguments, flags);
	descriptor = real(path, flags, flags & O_CREAT ? va_arg(arguments, mode_t) : 0);
	va_end(arguments);
	return descriptor;
}
