/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What is not read in time is lost, and the targets that fill the rings want every processor: the recorder goes before
 * them, where it may. So that none of their calls waits for long, it works in pieces, with pauses in between.
 */
#ifndef CAPTURE_PERF_SCHEDULING_PRIORITY_H
#define CAPTURE_PERF_SCHEDULING_PRIORITY_H

#include <stdbool.h>
#include <stdint.h>

#define PRIORITY_NICE (-20)
#define PRIORITY_WORK_NS 300000	 /* at a stretch */
#define PRIORITY_PAUSE_NS 300000 /* after it: others have at least half of the processor that the recorder is on */

/* Zero initialisation makes one that is not taken. */
struct priority {
	bool taken;
	int nice_before;
	uint64_t work_began_ns;
};

/* Who may not is left where it is, and takes its turn with the others: it needs no pauses. */
void priority_take(struct priority *priority);
void priority_give_up(struct priority *priority);

/* The recorder has waited until now. */
void priority_begin_work(struct priority *priority, uint64_t now_ns);
/* Has it worked for so long that others should have their turn? */
bool priority_pause_is_due(const struct priority *priority, uint64_t now_ns);
/* Wait, then begin to work. */
void priority_pause(struct priority *priority);

#endif
