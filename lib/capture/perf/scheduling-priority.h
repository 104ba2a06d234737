/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The recorder's scheduling priority. What is not read in time is lost, and thousands of runnable threads may fill the
 * rings: where permitted, the recorder runs before them. It works in pieces with pauses in between, so that no call of
 * a target waits for long, and the kernel limits real-time threads to kernel.sched_rt_runtime_us.
 */
#ifndef CAPTURE_PERF_SCHEDULING_PRIORITY_H
#define CAPTURE_PERF_SCHEDULING_PRIORITY_H

#include <stdbool.h>
#include <stdint.h>

#define PRIORITY_REALTIME 1 /* of SCHED_RR: above all ordinary threads, below all other real-time ones */
#define PRIORITY_NICE (-20)
#define PRIORITY_WORK_NS 300000	 /* without a pause */
#define PRIORITY_PAUSE_NS 300000 /* so others have at least half of the CPU that the recorder runs on */

/* Zero initialisation makes one that is not taken. */
struct priority {
	int policy_before;
	int nice_before;
	bool raised;
	uint64_t work_began_ns;
};

/* Raise the priority of this thread as far as permitted; child processes and new threads do not inherit it. Returns
 * what it is now, for messages. */
const char *priority_take(struct priority *priority);
/* For another thread of the recorder, called by it: nice -20 where permitted; or the same as the recorder's own. */
void priority_take_nice(void);
void priority_take_same(const struct priority *priority);
/* No ring can overflow any more: still before others, but within what ordinary threads share. */
void priority_ease(struct priority *priority);
/* Restore what it was. */
void priority_give_up(struct priority *priority);

/* The recorder has waited until now. */
void priority_begin_work(struct priority *priority, uint64_t now_ns);
/* Has a recorder with raised priority worked for so long that others should have their turn? */
bool priority_pause_is_due(const struct priority *priority, uint64_t now_ns);
/* Wait, then begin to work. */
void priority_pause(struct priority *priority);
/* Wait if that is due. */
void priority_pause_if_due(struct priority *priority);

#endif
