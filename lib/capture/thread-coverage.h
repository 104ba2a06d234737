/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Which threads are known to have the whole event set, opened or inherited. The kernel gives the numbers of threads
 * out again, on a small or busy system within a second: every word about a number has a time, and only a thread that
 * had begun by then is meant.
 */
#ifndef CAPTURE_THREAD_COVERAGE_H
#define CAPTURE_THREAD_COVERAGE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/map.h"

/* Zero initialisation makes an empty one. */
struct thread_coverage {
	struct map times;    /* by number: when the thread was known to have the set */
	struct map births;   /* by number: the latest FORK; while attaching */
	struct map ends;     /* by number: the latest EXIT of one that had it; while attaching */
	uint64_t whole_ns;   /* whoever is born later is born with the set; 0: not yet */
	bool births_missing; /* records were lost while attaching */
};

void thread_coverage_deinit(struct thread_coverage *coverage);

/* At this time the thread of this number had the set. False, here and below: out of memory. */
bool thread_coverage_put(struct thread_coverage *coverage, pid_t tid, uint64_t time_ns);

/* Has the thread of this number that began at `start_ns`? That may be early by a clock tick of /proc, in which no
 * number comes round. */
bool thread_coverage_has(const struct thread_coverage *coverage, pid_t tid, uint64_t start_ns);

/* A FORK record; several may tell of one birth. `new_ret`: the first word of a thread that was born with the set. */
bool thread_coverage_note_birth(struct thread_coverage *coverage, pid_t tid, uint64_t time_ns, bool *new_ret);

/* An EXIT record: called when every record older than it has been seen. */
bool thread_coverage_note_end(struct thread_coverage *coverage, pid_t tid, uint64_t time_ns);

/* Did a thread of this number that had the set end then or later? While attaching. */
bool thread_coverage_lasted_until(const struct thread_coverage *coverage, pid_t tid, uint64_t time_ns);

/*
 * Did one thread have this number at both times? It is asked of threads that are born with events, which a FORK record
 * tells. Where that cannot be said: no.
 */
bool thread_coverage_is_same(const struct thread_coverage *coverage, pid_t tid, uint64_t a_ns, uint64_t b_ns);

/* Every thread that lived at this time has the set. */
void thread_coverage_set_whole(struct thread_coverage *coverage, uint64_t time_ns);

#endif
