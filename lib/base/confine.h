/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Takes rights from a thread that is about to parse what others wrote. */
#pragma once

#include <stddef.h>

/*
 * From now on this thread, and the threads and processes that it creates, cannot execute programs, connect to others,
 * trace them, or mount file systems, and open files only for reading. With `places`, they may create, write, rename and
 * remove files: where the kernel has Landlock (since 5.13), only at these places, which are given by descriptors of
 * directories or files; negative ones are ignored. What is open already stays usable. Of capabilities only those remain
 * that reading files needs and, with places, writing files of other users.
 *
 * If memory runs out, the kernel ends this process before others.
 *
 * If debuginfod is configured ($DEBUGINFOD_URLS), connections are possible as before, and its cache can be written;
 * without Landlock, other files, too. Builds with a sanitizer, and other architectures than x86-64 and aarch64, have
 * Landlock and capabilities alone.
 */
void confine_thread(const int *places, size_t count);

/* What the kernel does not have, or refuses, for confine_thread(): "Landlock", "seccomp" or both. NULL: nothing. */
const char *confine_missing(void);
