/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Programs whose calls the kernel let nobody record. When a thread executes one that gives it the rights of another user
 * or group, the kernel ends the thread's events, whoever has opened them: an exec, then an EXIT, and no mapping of the program in
 * between. Events of CPUs go on, and show the mappings after that EXIT.
 */
#ifndef ANALYSIS_UNWATCHED_H
#define ANALYSIS_UNWATCHED_H

#include <stdbool.h>
#include <stdint.h>

#include "base/map.h"

struct unwatched_count {
	uint64_t programs;
	uint32_t name; /* the first of theirs to occur in the recording; nothing where there are none */
};

struct unwatched {
	struct map programs;	     /* by TID: what it executes, of which nothing has been seen yet */
	struct unwatched_count gone; /* of those whose events have ended before, and whose TID is another's now */
};

void unwatched_deinit(struct unwatched *unwatched);

/* What happened to the thread. `name`: index of the program's. False: out of memory. */
bool unwatched_executed(struct unwatched *unwatched, int32_t tid, uint32_t name);
void unwatched_exited(struct unwatched *unwatched, int32_t tid);
void unwatched_mapped(struct unwatched *unwatched, int32_t tid);
/* The number is another thread's from now on. */
void unwatched_forked(struct unwatched *unwatched, int32_t tid);

/* Those whose events have ended before anything of them was seen. */
struct unwatched_count unwatched_count(const struct unwatched *unwatched);

#endif
