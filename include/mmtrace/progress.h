/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* For those who wait. */
#ifndef MMTRACE_PROGRESS_H
#define MMTRACE_PROGRESS_H

#include <stdint.h>

/*
 * Called again and again while a recording is read, many times a second: how many bytes are done of how many. 0 of them:
 * not known, a pipe is being kept.
 */
struct mmt_progress {
	void (*tell)(void *context, uint64_t done_bytes, uint64_t total_bytes);
	void *context;
};

#endif
