/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Large stack dumps, in addition to the small ones, while the call rate is low. A large one costs its call up to 15
 * microseconds: negligible at a thousand calls a second, but twice the cost of recording at full speed. Switching them
 * off loses only the outer frames of deep stacks.
 */
#ifndef CAPTURE_PERF_LARGE_DUMPS_H
#define CAPTURE_PERF_LARGE_DUMPS_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/errors.h"
#include "base/vector.h"

struct attachment;
struct recorder;

#define LARGE_DUMPS_RATE 1000  /* calls a second with large dumps, sustained */
#define LARGE_DUMPS_BURST 2000 /* calls in a burst after a pause: a starting program makes hundreds */

/* The rule, pure: a leaky bucket that calls fill. Large dumps are off once it is full, and on again once it has drained
 * to a quarter. */
struct large_dumps_rule {
	uint64_t level_ns; /* fill level, as the time in which it drains */
	uint64_t time_ns;  /* when level_ns was computed */
	bool on;
};

void large_dumps_rule_init(struct large_dumps_rule *rule, uint64_t now_ns);
/* `calls` were made since the last update; returns whether large dumps should be on. */
bool large_dumps_rule_update(struct large_dumps_rule *rule, uint64_t calls, uint64_t now_ns);

struct large_dumps {
	struct large_dumps_rule rule;
	uint64_t calls;	      /* calls that can have large dumps, since the last update of the rule */
	bool too_late;	      /* discard the large dumps that wait in their rings, because other rings are filling up */
	bool on;	      /* the wanted state */
	unsigned passes_left; /* how often all events still have to be switched */
	uint64_t pass_ns;     /* earliest time of the next pass */
	bool switching;	      /* a pass is in progress */
	uint64_t off_ns;      /* when they were switched off */
	uint64_t off_total_ns;
	uint64_t switches;
};

void large_dumps_init(struct large_dumps *large, uint64_t now_ns);

/* Updates the rule and switches the events. Called between two readings of the rings. */
struct mmt_error *large_dumps_step(struct recorder *recorder) MMT_MUST_CHECK;

/* Called when the recording begins or ends: notes whether large dumps are off, and counts only time within the
 * recording. */
struct mmt_error *large_dumps_begin(struct recorder *recorder) MMT_MUST_CHECK;
void large_dumps_end(struct recorder *recorder);

/* A thread that switches the events of large dumps on or off. */
struct event_switch {
	VECTOR(int) fds;
	pthread_t thread;
	bool has_thread, on;
	/* Atomic. */
	bool is_complete; /* every event was switched */
	bool has_ended;	  /* the thread has ended, complete or not */
	bool must_end;
};

/* Stop switching early and wait for the thread; only some events are switched then. Required before descriptors are
 * closed. */
void attach_end_switch(struct attachment *attachment);

#endif
