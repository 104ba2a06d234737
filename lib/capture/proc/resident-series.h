/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The resident sizes of all recorded processes over time, read from /proc/PID/statm and noted in the recording. */
#ifndef CAPTURE_PROC_RESIDENT_SERIES_H
#define CAPTURE_PROC_RESIDENT_SERIES_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include <mmtrace/record.h>

#include "base/errors.h"
#include "base/vector.h"

struct recorder;

/* Zero initialisation begins a series. */
struct resident_series {
	uint64_t readings;			  /* so far; each has a note for every process */
	uint64_t begin_ns;			  /* of the first */
	uint64_t next_ns;			  /* when the next is due */
	VECTOR(struct mmt_resident_reading) sums; /* of all processes; some thousand in a year */
};

void resident_series_deinit(struct resident_series *series);

/*
 * A reading, if one is due: every 50 ms at first, later every 256th part of the time since the first. So the number of
 * readings grows with the logarithm of that time. Many processes, or slow ones, make readings rarer. The kernel answers
 * from counters: the processes do not notice.
 */
struct mmt_error *resident_series_read(struct recorder *recorder) MMT_MUST_CHECK;

/* Of a process, now; false: it is gone. */
bool resident_series_size(pid_t pid, uint64_t *bytes_ret);

/* The last reading, which is due. */
struct mmt_error *resident_series_end(struct recorder *recorder) MMT_MUST_CHECK;

#endif
