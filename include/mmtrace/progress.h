/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Progress of long operations. */
#pragma once

#include <stdint.h>

/* The library calls this many times a second while it reads a recording, in the thread that called the library.
 * `total_bytes` is 0 if unknown, which is the case while the input is copied from a pipe. */
struct mmt_progress {
	void (*tell)(void *context, uint64_t done_bytes, uint64_t total_bytes);
	void *context;
};
