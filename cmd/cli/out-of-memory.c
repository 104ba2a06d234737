// SPDX-License-Identifier: LGPL-2.1-or-later
/* Replaces the allocation functions by those that end the tool. */
#include <dlfcn.h>
#include <errno.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#include "cmd.h"
#include "cli/terminal.h"
#include "cli/message.h"

/* Larger requests may come from a damaged file: they fail without ending the tool. */
#define PLAUSIBLE_BYTES ((size_t)256 << 20)

static _Atomic(const char *) last_words; /* NULL: callers get NULL */

void out_of_memory_ends(const char *text)
{
	atomic_store(&last_words, text);
}

#ifdef __has_feature
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define __SANITIZE_ADDRESS__ 1
#endif
#endif

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)

#ifdef MMTRACE_STATIC
/* The linker makes all other objects, also those of the libraries, call __wrap_malloc() instead of malloc(). */
#define REPLACEMENT(name) __wrap_##name
#define FIND_NEXT(name) ((void *)__real_##name)
__typeof__(malloc) __real_malloc, __wrap_malloc;
__typeof__(calloc) __real_calloc, __wrap_calloc;
__typeof__(realloc) __real_realloc, __wrap_realloc;
__typeof__(posix_memalign) __real_posix_memalign, __wrap_posix_memalign;
#else
/* Shared libraries call these too, because the dynamic linker searches the executable first. */
#define REPLACEMENT(name) name
#define FIND_NEXT(name) dlsym(RTLD_NEXT, #name)
#define VISIBLE __attribute__((visibility("default"), used))
VISIBLE __typeof__(malloc) malloc;
VISIBLE __typeof__(calloc) calloc;
VISIBLE __typeof__(realloc) realloc;
VISIBLE __typeof__(posix_memalign) posix_memalign;
#endif

/* glibc's own functions, for what the dynamic linker allocates while dlsym() looks up the functions to call. */
void *__libc_malloc(size_t size) __attribute__((weak));
void *__libc_calloc(size_t count, size_t size) __attribute__((weak));
void *__libc_realloc(void *block, size_t size) __attribute__((weak));

/* The functions that the ones here replace; NULL until they have been looked up. */
static struct {
	void *(*malloc)(size_t size);
	void *(*calloc)(size_t count, size_t size);
	void *(*realloc)(void *block, size_t size);
	int (*posix_memalign)(void **block_ret, size_t alignment, size_t size);
} next;

/* Needs no lock: the first allocation precedes the first thread. */
static bool find_next(void)
{
	static bool begun;

	if (begun)
		return next.posix_memalign;
	begun = true;
	*(void **)&next.malloc = FIND_NEXT(malloc);
	*(void **)&next.calloc = FIND_NEXT(calloc);
	*(void **)&next.realloc = FIND_NEXT(realloc);
	*(void **)&next.posix_memalign = FIND_NEXT(posix_memalign);
	return next.posix_memalign;
}

/* Ends the tool if the allocation failed. Must not allocate. If several threads get here, one writes and the others
 * wait for the exit. */
static void check(const void *block, size_t size)
{
	static atomic_flag ending = ATOMIC_FLAG_INIT;
	const char *text, *cause;

	if (block || !size || size > PLAUSIBLE_BYTES)
		return;
	text = atomic_load(&last_words);
	if (!text)
		return;
	while (atomic_flag_test_and_set(&ending))
		pause();
	pager_end();
	progress_wipe();
	cause = message_no_memory_cause();
	(void)!writev(STDERR_FILENO,
		      (struct iovec[]){{(char *)text, strlen(text)}, {(char *)cause, strlen(cause)}, {"\n", 1}}, 3);
	_exit(EXIT_UNUSABLE);
}

void *REPLACEMENT(malloc)(size_t size)
{
	void *block;

	if (!next.malloc && !find_next())
		return __libc_malloc ? __libc_malloc(size) : NULL;
	block = next.malloc(size);
	check(block, size);
	return block;
}

void *REPLACEMENT(calloc)(size_t count, size_t size)
{
	size_t bytes;
	void *block;

	if (!next.calloc && !find_next())
		return __libc_calloc ? __libc_calloc(count, size) : NULL;
	block = next.calloc(count, size);
	check(block, __builtin_mul_overflow(count, size, &bytes) ? SIZE_MAX : bytes);
	return block;
}

void *REPLACEMENT(realloc)(void *block, size_t size)
{
	void *larger;

	if (!next.realloc && !find_next())
		return __libc_realloc ? __libc_realloc(block, size) : NULL;
	larger = next.realloc(block, size);
	check(larger, size);
	return larger;
}

int REPLACEMENT(posix_memalign)(void **block_ret, size_t alignment, size_t size)
{
	int error;

	if (!next.posix_memalign && !find_next())
		return ENOMEM;
	error = next.posix_memalign(block_ret, alignment, size);
	check(error == ENOMEM ? NULL : block_ret, size);
	return error;
}

#endif
