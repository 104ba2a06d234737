/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The recorder's scheduling priority. Records that are not read in time are lost, so the recorder runs at nice -20 if
 * permitted, and with a real-time policy while a ring is filling, for example because of thousands of runnable threads.
 * A real-time thread wakes on the CPU where it last slept and preempts the target there, even if another CPU is idle.
 * That costs the target about 300 ns for each call at full speed, so the policy is used no longer than needed. The
 * recorder works in slices with pauses in between, so that it does not delay a call of a target for long. The kernel
 * also limits real-time threads to kernel.sched_rt_runtime_us. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define PRIORITY_REALTIME 1 /* SCHED_RR priority: above all ordinary threads, below all other real-time threads */
#define PRIORITY_NICE (-20)
#define PRIORITY_WORK_NS 300000		    /* longest slice of work without a pause */
#define PRIORITY_PAUSE_NS 300000	    /* other threads get at least half of the recorder's CPU */
#define PRIORITY_REALTIME_NS 10000000000ULL /* how long the real-time policy lasts after a ring was filling */

/* Zero-initialise one with the priority not raised. */
struct priority {
	int policy_before;
	int nice_before;
	bool raised; /* has_nice or may_be_realtime is set */
	bool has_nice;
	bool may_be_realtime;
	bool is_realtime;
	uint64_t realtime_until_ns; /* when the real-time policy ends, if is_realtime is set */
	uint64_t work_began_ns;	    /* start of this slice of work; set after the recorder was idle, too */
};

/* Raise the priority of this thread as far as permitted. Child processes and new threads do not inherit it. A
 * real-time policy lasts until priority_leave_realtime(). Return the new priority as a text for messages. */
const char *priority_raise(struct priority *priority);
/* For other threads of the recorder, which call these themselves: nice -20 if permitted, or the highest priority that
 * the recorder's own thread may have. */
bool priority_raise_nice(void);
void priority_raise_same(const struct priority *priority);
/* Switch to the real-time policy, if permitted. UINT64_MAX: until priority_leave_realtime(). */
void priority_enter_realtime(struct priority *priority, uint64_t until_ns);
/* Switch from the real-time policy to nice -20. */
void priority_leave_realtime(struct priority *priority);
/* Switch to the real-time policy if a ring is filling, and back when no ring has been filling for
 * PRIORITY_REALTIME_NS. */
void priority_follow_rings(struct priority *priority, bool filling, uint64_t now_ns);
void priority_restore(struct priority *priority);

/* Has a recorder with raised priority worked for so long that a pause is due? */
bool priority_pause_is_due(const struct priority *priority, uint64_t now_ns);
/* Pauses, then begins a new slice. */
void priority_pause(struct priority *priority);
void priority_pause_if_due(struct priority *priority);
