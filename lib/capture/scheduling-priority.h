/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The recorder's scheduling priority. Records that are not read in time are lost. So, if permitted, the recorder runs
 * at nice -20, and with a real-time policy while a ring fills up, as thousands of runnable threads can make it. A
 * real-time thread wakes on the CPU where it last slept and preempts the target there, even if another CPU is idle: it
 * costs the target some 300 ns for each call at full speed, so the policy lasts no longer than it is needed. The
 * recorder works in slices with pauses in between, so that it does not delay calls of a target for long; and the
 * kernel limits real-time threads to kernel.sched_rt_runtime_us.
 */
#ifndef CAPTURE_SCHEDULING_PRIORITY_H
#define CAPTURE_SCHEDULING_PRIORITY_H

#include <stdbool.h>
#include <stdint.h>

#define PRIORITY_REALTIME 1 /* of SCHED_RR: above all ordinary threads, below all other real-time threads */
#define PRIORITY_NICE (-20)
#define PRIORITY_WORK_NS 300000		    /* longest slice without a pause */
#define PRIORITY_PAUSE_NS 300000	    /* so that others get at least half of the recorder's CPU */
#define PRIORITY_REALTIME_NS 10000000000ULL /* the real-time policy lasts this long after a ring was filling */

/* Zero-initialise one with the priority not raised. */
struct priority {
	int policy_before;
	int nice_before;
	bool raised; /* nice_taken or may_be_realtime */
	bool nice_taken;
	bool may_be_realtime;
	bool is_realtime;
	uint64_t realtime_until_ns; /* if is_realtime */
	uint64_t work_began_ns;
};

/* Raise the priority of this thread as far as permitted; child processes and new threads do not inherit it. A real-time
 * policy lasts until priority_ease(). Returns the new priority as a text for messages. */
const char *priority_take(struct priority *priority);
/* For other threads of the recorder, which call this themselves: nice -20 if permitted, or the highest priority that
 * the recorder's own thread may take. */
void priority_take_nice(void);
void priority_take_same(const struct priority *priority);
/* Take the real-time policy, if permitted, until priority_ease(). */
void priority_hurry(struct priority *priority);
/* Switch from the real-time policy to nice -20. */
void priority_ease(struct priority *priority);
/* Take the real-time policy if a ring is filling, and leave it PRIORITY_REALTIME_NS after the last one was. */
void priority_follow_rings(struct priority *priority, bool filling, uint64_t now_ns);
/* Restore the original priority. */
void priority_give_up(struct priority *priority);

/* The recorder was idle until now. */
void priority_begin_work(struct priority *priority, uint64_t now_ns);
/* Has a recorder with raised priority worked long enough that others should run? */
bool priority_pause_is_due(const struct priority *priority, uint64_t now_ns);
/* Pause, then begin a new slice. */
void priority_pause(struct priority *priority);
/* Pause if a pause is due. */
void priority_pause_if_due(struct priority *priority);

#endif
