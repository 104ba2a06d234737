/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Large stack dumps, taken in addition to the small ones while the call rate is low. A large dump costs its call up to
 * 15 microseconds: negligible at a thousand calls a second, but twice the cost of recording at full speed. While they
 * are off, only the outer frames of deep stacks are lost.
 */
#pragma once

#include <stdint.h>

#include "base/errors.h"

struct recorder;

#define LARGE_DUMPS_RATE 1000  /* sustained rate of calls a second up to which large dumps are on */
#define LARGE_DUMPS_BURST 2000 /* calls in a burst after a pause: a starting program makes hundreds of calls */

/* Decides whether large dumps are on. Pure. Calls fill a leaky bucket: large dumps go off when it is full, and on again
 * when it has drained to a quarter. */
struct large_dumps_rule {
	uint64_t level_ns; /* fill level, as the time in which it drains */
	uint64_t time_ns;  /* when level_ns was computed; at first, when it begins */
	bool on;	   /* true at first */
};

/* Add `calls` made since the last update. Return whether large dumps should be on. */
bool large_dumps_rule_update(struct large_dumps_rule *rule, uint64_t calls, uint64_t now_ns);

struct large_dumps {
	struct large_dumps_rule rule;
	uint64_t calls;	      /* calls since the last update of the rule, without those that never have a large dump */
	bool discard;	      /* discard the large dumps in the rings, because other rings are filling up */
	bool on;	      /* whether large dumps should be on */
	unsigned passes_left; /* how many times all events still have to be switched */
	uint64_t pass_ns;     /* do not begin the next pass before */
	bool switching;	      /* a pass is in progress */
	uint64_t off_ns;      /* when large dumps were switched off */
	uint64_t off_total_ns;
	uint64_t switches;
};

/* Update the rule and switch the events. The ring reader calls this between two readings of the rings. */
struct mmt_error *large_dumps_step(struct recorder *recorder) MMT_MUST_CHECK;

/* Note when the recording begins whether large dumps are off: only time within the recording counts. */
struct mmt_error *large_dumps_begin(struct recorder *recorder) MMT_MUST_CHECK;
