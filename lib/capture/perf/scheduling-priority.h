/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What is not read in time is lost, and the targets that fill the rings want every processor: the recorder goes before
 * them, where it may. So that none of their calls waits for long, it works in pieces, with pauses in between.
 */
#ifndef CAPTURE_PERF_SCHEDULING_PRIORITY_H
#define CAPTURE_PERF_SCHEDULING_PRIORITY_H

#include <stdbool.h>
#include <stdint.h>

#define PRECEDENCE_NICE (-20)
#define PRECEDENCE_WORK_NS 300000  /* at a stretch */
#define PRECEDENCE_PAUSE_NS 300000 /* after it: others have at least half of the processor that the recorder is on */

/* Zero initialisation makes one that is not taken. */
struct precedence {
	bool taken;
	int nice_before;
	uint64_t work_began_ns;
};

/* Who may not is left where it is, and takes its turn with the others: it needs no pauses. */
void precedence_take(struct precedence *precedence);
void precedence_give_up(struct precedence *precedence);

/* The recorder has waited until now. */
void precedence_begin_work(struct precedence *precedence, uint64_t now_ns);
/* Has it worked for so long that others should have their turn? */
bool precedence_pause_is_due(const struct precedence *precedence, uint64_t now_ns);
/* Wait, then begin to work. */
void precedence_pause(struct precedence *precedence);

#endif
