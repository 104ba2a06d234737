/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Censuses of the malloc heaps of recorded processes: when recording starts, at intervals that grow, and when it stops.
 * A helper process without rights reads a heap, so that a hostile one can neither hold up nor crash the recorder. The
 * target is not stopped. Pages that are not in memory are not read: that would bring them in.
 */
#pragma once

#include "base/helper-process.h"
#include "trace/sections/sections.h"

struct recorder;

/* Zero-initialise it. */
struct heap_jobs {
	struct heap_censuses done;
	size_t done_bytes;
	VECTOR(pid_t) waiting; /* processes of this round whose heaps have not been read yet */
	enum mmt_heap_time when;
	bool began;
	uint64_t next_ns;	 /* when the next round begins */
	uint64_t round_spent_ns; /* processor time of this one */
	uint64_t spent_ns;	 /* ... and of all */
	struct helper *helper;	 /* reads a heap */
	pid_t pid;		 /* of this process */
	enum mmt_heap_time helper_when;
	uint64_t since_ns;
	struct buffer answer;
};

void heap_jobs_deinit(struct heap_jobs *jobs);

/* Begin a round if one is due, and receive what the helper has read. Never wait. */
struct mmt_error *heap_census_continue(struct recorder *recorder) MMT_MUST_CHECK;

/* Begin the last round. */
struct mmt_error *heap_census_stop(struct recorder *recorder) MMT_MUST_CHECK;

/* Wait for the last round, and encode all censuses; nothing if there are none. */
struct mmt_error *heap_census_encode(struct recorder *recorder, struct buffer *buffer) MMT_MUST_CHECK;

/* The census of a process, as of now, by this process. `mem`: its open /proc/PID/mem. */
struct mmt_error *heap_census_take(pid_t pid, int mem, struct mmt_heap_census *census) MMT_MUST_CHECK;
