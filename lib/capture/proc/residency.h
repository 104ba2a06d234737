/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Which pages of a process are resident (PAGEMAP_SCAN, or pagemap). */
#ifndef CAPTURE_PROC_RESIDENCY_H
#define CAPTURE_PROC_RESIDENCY_H

#include <stdint.h>
#include <sys/types.h>

#include "base/errors.h"
#include "trace/sections/sections.h"

/* Per process. The last two: where every page must be looked at. */
#define RESIDENCY_RUNS_MAX (4u << 20)
#define RESIDENCY_BYTES_MAX (64ULL << 30)
#define RESIDENCY_NS_MAX 2000000000ULL
/* For the target's mmap_lock, in all: threads that hold it may get no CPU for seconds. */
#define RESIDENCY_WAIT_NS_MAX 5000000000ULL

struct mapped_range {
	uint64_t start, end;
};

/* An open /proc/PID/pagemap. */
struct residency_reader {
	int fd;
	bool scan;	   /* the kernel can tell by ioctl, without an entry per page */
	bool gave_up;	   /* it would take too long or too much: what was read is not all */
	uint64_t bytes;	   /* of address space looked at page by page */
	uint64_t begin_ns; /* of that; 0: not begun */
	uint64_t waited_ns;
};

/* False: it cannot be read. */
bool residency_open(struct residency_reader *reader, pid_t pid);
void residency_close(struct residency_reader *reader);

/*
 * Append the runs of pages present in START to END, which may overlap what was read before but must end after it. Reads
 * in bounded pieces, so that the process is not blocked for long. Does nothing when the reader has given up.
 */
struct mmt_error *residency_read(struct residency_reader *reader, uint64_t start, uint64_t end,
				 struct process_residency *residency) MMT_MUST_CHECK;

/*
 * The same for several ranges in ascending order, which may overlap. Ranges close to each other are read together: each
 * call of the kernel may wait for the target's mmap_lock.
 */
struct mmt_error *residency_read_ranges(struct residency_reader *reader, const struct mapped_range *ranges,
					size_t count, struct process_residency *residency) MMT_MUST_CHECK;

/* Of START to END a part, from START on, which may be nearly all that is empty: *end_ret, where it ends, lies behind
 * START. For those who have other things to do meanwhile. A reader that has given up: all, and nothing is appended. */
struct mmt_error *residency_step(struct residency_reader *reader, uint64_t start, uint64_t end,
				 struct process_residency *residency, uint64_t *end_ret) MMT_MUST_CHECK;

#endif
