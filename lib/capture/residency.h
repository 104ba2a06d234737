/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Which pages of a process are in memory. */
#ifndef CAPTURE_RESIDENCY_H
#define CAPTURE_RESIDENCY_H

#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"
#include "trace/sections.h"

#define RESIDENCY_RUNS_MAX (4u << 20) /* per process */

/* An open /proc/PID/pagemap. */
struct residency_reader {
	int fd;
	bool scan; /* the kernel can tell by ioctl, without an entry per page */
};

/* False: it cannot be read. */
bool residency_open(struct residency_reader *reader, pid_t pid);
void residency_close(struct residency_reader *reader);

/*
 * Append the runs of pages present in START to END, which lies behind what was read before. In bounded pieces: the
 * process is not held up for long.
 */
struct mmt_error *residency_read(struct residency_reader *reader, uint64_t start, uint64_t end,
				 struct process_residency *residency) MMT_MUST_CHECK;

#endif
