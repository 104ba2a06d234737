/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A library to preload: the allocation with the number FAIL_ALLOCATION fails, counted from 1. The number of allocations
 * is written to the file COUNT_ALLOCATIONS.
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

void *__libc_malloc(size_t size);
void *__libc_calloc(size_t count, size_t size);
void *__libc_realloc(void *block, size_t size);

static atomic_ulong count;

/* Capstone crashes then, which the library makes as unlikely as it can. */
static int is_capstone(const void *caller)
{
	Dl_info info;

	return dladdr(caller, &info) && info.dli_fname && strstr(info.dli_fname, "/libcapstone.");
}

/* Names that it lacks for want of memory cost no more than themselves: see test-names-helper.c. */
static int is_names_helper(void)
{
	char name[16] = "";

	return prctl(PR_GET_NAME, name) == 0 && strcmp(name, "mmtrace-names") == 0;
}

/* The environment may not exist yet for the first ones, made by the dynamic linker. */
static int fails(const void *caller)
{
	const char *number = environ ? getenv("FAIL_ALLOCATION") : NULL;
	unsigned long this = is_capstone(caller) || is_names_helper() ? 0 : atomic_fetch_add(&count, 1) + 1;

	if (!number || !this || this != strtoul(number, NULL, 10))
		return 0;
	errno = ENOMEM;
	return 1;
}

void *malloc(size_t size)
{
	return fails(__builtin_return_address(0)) ? NULL : __libc_malloc(size);
}

void *calloc(size_t number, size_t size)
{
	return fails(__builtin_return_address(0)) ? NULL : __libc_calloc(number, size);
}

void *realloc(void *block, size_t size)
{
	return fails(__builtin_return_address(0)) ? NULL : __libc_realloc(block, size);
}

static int counts = -1;

/* A command that is confined cannot open it later. */
__attribute__((constructor)) static void open_count(void)
{
	const char *path = getenv("COUNT_ALLOCATIONS");

	counts = path ? open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600) : -1;
}

__attribute__((destructor)) static void write_count(void)
{
	if (counts >= 0)
		dprintf(counts, "%lu\n", atomic_load(&count));
}
