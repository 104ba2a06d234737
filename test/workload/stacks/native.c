/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Called by programs in other languages: maps blocks that are never unmapped, and calls back. */
#include <stddef.h>
#include <stdint.h>
#include <sys/mman.h>

#include "support/stage.h"

int native_leak(size_t bytes);
int native_call(int (*callback)(int), int number);
int Java_Program_leak(void *environment, void *class, int64_t bytes);

EXPORTED int native_leak(size_t bytes)
{
	if (mmap(NULL, bytes, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) == MAP_FAILED)
		return -1;
	KEEP_FRAME();
	return 0;
}

EXPORTED int native_call(int (*callback)(int), int number)
{
	int result = callback(number);

	KEEP_FRAME();
	return result;
}

/* As the Java Native Interface names and calls it. */
EXPORTED int Java_Program_leak(void *environment, void *class, int64_t bytes)
{
	int result = native_leak((size_t)bytes);

	(void)environment;
	(void)class;
	KEEP_FRAME();
	return result;
}
