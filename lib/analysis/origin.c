// SPDX-License-Identifier: LGPL-2.1-or-later
#include "analysis/origin.h"

#include <string.h>

static bool starts_with(const char *text, const char *start)
{
	return !strncmp(text, start, strlen(start));
}

bool origin_is_loader(const struct mmt_frame *frame)
{
	return frame->module && (starts_with(frame->module, "ld-linux") || starts_with(frame->module, "ld-musl") ||
				 starts_with(frame->module, "ld-2."));
}

static bool is_library(const char *module)
{
	static const char *const starts[] = {"libc.so", "libc-2.", "libc.musl", "libpthread.so", "libpthread-2."};

	for (size_t i = 0; i < sizeof(starts) / sizeof(*starts); i++) {
		if (starts_with(module, starts[i]))
			return true;
	}
	return false;
}

static bool is_wrapper(const char *function)
{
	static const char *const wrappers[] = {"mmap", "mmap64", "munmap",   "mremap",	      "brk",
					       "sbrk", "shmat",	 "mprotect", "pkey_mprotect", "syscall"};

	if (!function)
		return false;
	function += strspn(function, "_");
	for (size_t i = 0; i < sizeof(wrappers) / sizeof(*wrappers); i++) {
		if (!strcmp(function, wrappers[i]))
			return true;
	}
	return false;
}

bool origin_is_c_library(const struct mmt_frame *frame)
{
	if (frame->kind != MMT_FRAME_NATIVE)
		return false;
	return (frame->module && is_library(frame->module)) || origin_is_loader(frame) || is_wrapper(frame->function);
}

size_t origin_find(const struct mmt_frame *const *frames, size_t frame_count)
{
	size_t place = 0;

	while (place < frame_count && origin_is_c_library(frames[place]))
		place++;
	return place;
}
