/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Which pages of a process are resident (PAGEMAP_SCAN, or pagemap). */
#ifndef CAPTURE_PROCFS_RESIDENCY_H
#define CAPTURE_PROCFS_RESIDENCY_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include <mmtrace/record.h>

#include "base/errors.h"
#include "base/vector.h"
#include "trace/sections/sections.h"

/* Limits per process. The last two apply if every page must be checked. */
#define RESIDENCY_RUNS_MAX (4u << 20)
#define RESIDENCY_BYTES_MAX (64ULL << 30)
#define RESIDENCY_NS_MAX 2000000000ULL
/* Limit for all waits for the target's mmap_lock: threads that hold it may get no CPU for seconds. */
#define RESIDENCY_WAIT_NS_MAX 5000000000ULL

struct mapped_range {
	uint64_t start, end;
	bool anonymous; /* private, and of no file */
};

/* An open /proc/PID/pagemap. */
struct residency_reader {
	int fd;
	bool scan;	   /* the kernel supports PAGEMAP_SCAN, which needs no entry per page */
	bool gave_up;	   /* a limit of time or size was reached: the result is incomplete */
	uint64_t bytes;	   /* address space checked page by page */
	uint64_t begin_ns; /* when that began; 0: not yet */
	uint64_t waited_ns;
	uint64_t slice_ns, paused_ns;	       /* since the last pause, and all pauses */
	bool wants_huge;		       /* also find huge pages, which needs `scan`; set by the caller */
	struct process_residency scanned_huge; /* in what was scanned last, of any mapping */
	struct process_residency huge;	       /* in the anonymous ranges of residency_read_ranges() */
};

/* False: pagemap cannot be read. */
bool residency_open(struct residency_reader *reader, pid_t pid);
void residency_close(struct residency_reader *reader);

/*
 * Append the runs of resident pages in START to END, which may overlap the ranges read before but must end above them.
 * Reads in bounded steps, so that the process is not blocked for long. Does nothing if the reader has given up.
 */
struct mmt_error *residency_read(struct residency_reader *reader, uint64_t start, uint64_t end,
				 struct process_residency *residency) MMT_MUST_CHECK;

/*
 * The same for several ranges in ascending order, which may overlap. Ranges close to each other are read together,
 * because each call may wait for the target's mmap_lock.
 */
struct mmt_error *residency_read_ranges(struct residency_reader *reader, const struct mapped_range *ranges,
					size_t count, struct process_residency *residency) MMT_MUST_CHECK;

/* Reads one step of START to END, from START on. A step may cover nearly all of a sparse range. *end_ret, above START:
 * where it ended. For callers that do other work between steps. A reader that has given up skips the complete range and
 * appends nothing. */
struct mmt_error *residency_step(struct residency_reader *reader, uint64_t start, uint64_t end,
				 struct process_residency *residency, uint64_t *end_ret) MMT_MUST_CHECK;

/* VmSwap in the text of /proc/PID/status, in bytes; 0: the process has none. */
uint64_t residency_swapped(const char *status);

/* The resident sizes of all recorded processes over time, read from /proc/PID/statm and noted in the recording. */

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

/* Takes the last reading, which is always due. */
struct mmt_error *resident_series_end(struct recorder *recorder) MMT_MUST_CHECK;

/* Reads which pages of the recorded processes are resident: when recording starts, at each interval snapshot, and when
 * it has stopped. */

/*
 * Reads the residency of the ranges of the START snapshots into start_residency and discards these ranges. The rings
 * are drained when they fill. A process whose pages cannot be read, or are too many, is left out.
 */
struct mmt_error *read_start_residency(struct recorder *recorder) MMT_MUST_CHECK;

/* Reads the residency of the ranges of the latest INTERVAL snapshot, appends it to the recording and discards the
 * ranges. The rings are drained when they fill. */
struct mmt_error *record_residency(struct recorder *recorder) MMT_MUST_CHECK;

/* Reads the residency of the final ranges, their huge pages, and a sample of these. Events are disabled. */
struct mmt_error *read_final_residency(struct recorder *recorder, process_residencies *processes,
				       struct recording_huge_pages *huge) MMT_MUST_CHECK;

/*
 * Huge pages: how much of them contains only zeros. The kernel counts each as 2 MiB of RSS although the program may
 * have written a few bytes of it.
 *
 * Reads a sample: some pages of some huge pages, evenly spread. The target does not stop: process_vm_readv(2) holds its
 * mmap_lock for reading, and for one page at a time. What it must not do is cause page faults: it would swap pages in,
 * map the zero page where nothing was, and wait for the handler of a userfaultfd(2), maybe forever. So a huge page is
 * read only if it is resident at that moment, which leaves a race with a call that discards it, and no process that has
 * a userfaultfd is read. Unlike /proc/PID/mem, process_vm_readv(2) fails where the target itself may not read, and
 * where a device is mapped. The contents are compared with zero and overwritten.
 */

#define HUGE_SAMPLED_BYTES_MIN (8ull << 20) /* less in huge pages is not worth reading */
#define HUGE_SAMPLES_MAX 256		    /* of a process */
#define HUGE_PAGES_PER_SAMPLE 32
#define HUGE_SAMPLES_NS_MAX 500000000ULL /* for all processes, with pauses */

/* Of this system. */
enum huge_setting huge_pages_setting(void);

/* Sets huge->sampling and huge->samples from huge->runs. `end_ns`: when to give up. */
struct mmt_error *huge_pages_sample(struct residency_reader *reader, pid_t pid, uint64_t end_ns,
				    struct process_huge_pages *huge) MMT_MUST_CHECK;

#endif
