/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Large stack dumps beside the small ones while calls are few: a large one costs its call up to 15 microseconds, which
 * nobody notices a thousand times a second, and which would double the cost of recording at full speed. Switching them
 * loses nothing but depth.
 */
#ifndef CAPTURE_LARGE_DUMPS_H
#define CAPTURE_LARGE_DUMPS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

struct recorder;

#define LARGE_DUMPS_RATE 1000  /* calls a second that may all have one, for as long as they come */
#define LARGE_DUMPS_BURST 2000 /* calls at once after a pause: a program that starts makes hundreds */

/* The rule, pure: a bucket that calls fill and time empties. Off when it is full, on again when a quarter is left. */
struct large_dumps_rule {
	uint64_t level_ns; /* the time that LARGE_DUMPS_RATE takes for the calls in it */
	uint64_t time_ns;  /* as of */
	bool on;
};

void large_dumps_rule_init(struct large_dumps_rule *rule, uint64_t now_ns);
/* So many calls came since the last time; returns whether large dumps are to be on. */
bool large_dumps_rule_update(struct large_dumps_rule *rule, uint64_t calls, uint64_t now_ns);

struct large_dumps {
	struct large_dumps_rule rule;
	uint64_t calls;	      /* that may have a large dump, since the rule was asked last */
	bool too_late;	      /* those that wait in their rings now are left out: other rings are filling meanwhile */
	bool on;	      /* switched, or about to be */
	unsigned passes_left; /* over all events */
	uint64_t pass_ns;     /* the next one not before this */
	bool switching;	      /* a pass is under way */
	uint64_t off_ns;      /* since when they are off */
	uint64_t off_total_ns;
	uint64_t switches;
};

void large_dumps_init(struct large_dumps *large, uint64_t now_ns);

/* Ask the rule, and have events switched. Between two readings of the rings. */
struct mmt_error *large_dumps_step(struct recorder *recorder) MMT_MUST_CHECK;

/* The recording begins or ends now: says in it that they are off, if they are; counts no time beyond its ends. */
struct mmt_error *large_dumps_begin(struct recorder *recorder) MMT_MUST_CHECK;
void large_dumps_end(struct recorder *recorder);

#endif
