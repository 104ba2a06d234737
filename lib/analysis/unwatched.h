/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Programs whose calls the kernel let nobody record. When a thread executes one that gives it the rights of another user,
 * the kernel ends the thread's events, whoever has opened them: an exec, then an EXIT, and no mapping of the program in
 * between. Events of CPUs go on, and show the mappings after that EXIT.
 */
#ifndef ANALYSIS_UNWATCHED_H
#define ANALYSIS_UNWATCHED_H

#include <stdbool.h>
#include <stdint.h>

#include "base/map.h"

struct unwatched {
	struct map programs; /* by TID: what it executes, of which nothing has been seen yet */
	uint64_t count;	     /* of those whose events have ended before anything was */
	uint32_t first_name; /* of one of them */
};

void unwatched_deinit(struct unwatched *unwatched);

/* What happened to the thread. `name`: index of the program's. False: out of memory. */
bool unwatched_executed(struct unwatched *unwatched, int32_t tid, uint32_t name);
void unwatched_exited(struct unwatched *unwatched, int32_t tid);
void unwatched_mapped(struct unwatched *unwatched, int32_t tid);
/* The number is another thread's from now on. */
void unwatched_forked(struct unwatched *unwatched, int32_t tid);

#endif
