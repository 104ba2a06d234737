/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Progress of what takes long. */
#ifndef MMTRACE_PROGRESS_H
#define MMTRACE_PROGRESS_H

#include <stdint.h>

/*
 * Called many times a second while a recording is read, in the thread that called the library: how many bytes are done of
 * how many. A total of 0: not known, a pipe is being kept.
 */
struct mmt_progress {
	void (*tell)(void *context, uint64_t done_bytes, uint64_t total_bytes);
	void *context;
};

#endif
