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

/* Zero-initialise a series. */
struct resident_series {
	uint64_t readings;			  /* so far; each has a note for every process */
	uint64_t begin_ns;			  /* time of the first reading */
	uint64_t next_ns;			  /* when the next is due */
	VECTOR(struct mmt_resident_reading) sums; /* of all processes; some thousand readings a year */
};

void resident_series_deinit(struct resident_series *series);

/*
 * Takes a reading if one is due: every 50 ms at first, later after every 256th part of the time since the first. The
 * number of readings thus grows with the logarithm of that time. Readings of many or slow processes are rarer. The
 * kernel answers from counters, so the processes are not disturbed.
 */
struct mmt_error *resident_series_read(struct recorder *recorder) MMT_MUST_CHECK;

/* The current RSS of a process; false: it is gone. */
bool resident_series_size(pid_t pid, uint64_t *bytes_ret);

/* Takes the last reading, which is always due. */
struct mmt_error *resident_series_end(struct recorder *recorder) MMT_MUST_CHECK;

#endif
