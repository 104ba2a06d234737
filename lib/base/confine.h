/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Takes rights from a thread that is about to parse what others wrote. */
#ifndef MMTRACE_BASE_CONFINE_H
#define MMTRACE_BASE_CONFINE_H

#include <stddef.h>

/*
 * From now on this thread, and the threads and processes that it creates, gain no privileges by executing programs and,
 * where the kernel has Landlock (since 5.13), write, create, rename and remove files only below these directories,
 * given by descriptors; negative ones are ignored. What is open already stays usable. Of capabilities only those remain
 * that reading files needs and, if there are directories, writing into those of other users.
 *
 * If memory runs out, the kernel ends this process before others.
 *
 * If debuginfod is configured ($DEBUGINFOD_URLS), files may be written as before: libdebuginfod has a cache.
 */
void confine_thread(const int *directories, size_t count);

#endif
