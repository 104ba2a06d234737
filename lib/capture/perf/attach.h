/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Opens the perf events of the recorded threads or CPUs and attaches to every thread of a running process, while it
 * creates others. Also switches the events of large stack dumps (attach-switch.c).
 */
#ifndef CAPTURE_PERF_ATTACH_H
#define CAPTURE_PERF_ATTACH_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/errors.h"
#include "base/map.h"
#include "base/vector.h"
#include "capture/perf/cpu-hotplug.h"
#include "capture/perf/perf-events.h"
#include "capture/perf/rings.h"

/*
 * Which threads are known to have the whole event set, opened or inherited. The kernel gives the numbers of threads
 * out again, on a small or busy system within a second: every word about a number has a time, and only a thread that
 * had begun by then is meant.
 */

/* Zero initialisation makes an empty one. */
struct thread_coverage {
	struct map times;   /* by number: when the thread was known to have the set */
	struct map forks;   /* by number: the latest FORK; while attaching */
	struct map ends;    /* by number: the latest EXIT of one that had it; while attaching */
	uint64_t whole_ns;  /* whoever is born later is born with the set; 0: not yet */
	bool forks_missing; /* records were lost while attaching */
};

void thread_coverage_deinit(struct thread_coverage *coverage);

/* At this time the thread of this number had the set. False, here and below: out of memory. */
bool thread_coverage_put(struct thread_coverage *coverage, pid_t tid, uint64_t time_ns);

/* Has the thread of this number that began at `start_ns`? That may be early by a clock tick of /proc, in which no
 * number comes round. */
bool thread_coverage_has(const struct thread_coverage *coverage, pid_t tid, uint64_t start_ns);

/* A FORK record; several may tell of one allocation. `new_ret`: the first word of a thread that was born with the set.
 */
bool thread_coverage_note_fork(struct thread_coverage *coverage, pid_t tid, uint64_t time_ns, bool *new_ret);

/* An EXIT record: called when every record older than it has been seen. */
bool thread_coverage_note_end(struct thread_coverage *coverage, pid_t tid, uint64_t time_ns);

/* Did a thread of this number that had the set end then or later? While attaching. */
bool thread_coverage_lasted_until(const struct thread_coverage *coverage, pid_t tid, uint64_t time_ns);

/*
 * Did one thread have this number at both times? It is asked of threads that are born with events, which a FORK record
 * tells. Where that cannot be said: no.
 */
bool thread_coverage_is_same(const struct thread_coverage *coverage, pid_t tid, uint64_t a_ns, uint64_t b_ns);

/* Every thread that lived at this time has the set. */
void thread_coverage_set_whole(struct thread_coverage *coverage, uint64_t time_ns);

/* Opening the event set for threads, on every CPU, and the descriptors that come of it. */

struct attached_event {
	int fd;
	int cpu;
	uint32_t root;
	uint32_t event; /* index in the event set */
	uint64_t id;
};

struct attached_fence {
	int fd;
	uint32_t root;
	uint64_t id;
};

/* A thread for which the set was opened; later ones inherit from it. */
struct attached_root {
	pid_t pid, tid;
	uint64_t thread_start_ns; /* early by a clock tick at most */
	uint64_t begin_ns;	  /* before the first event was opened */
	uint64_t whole_ns;	  /* after the last one was; 0: not yet, or closed again */
	/* It has been seen outside of clone() since then: who it starts is born with the set. What it started before is
	   born with a part of it, or none. */
	bool seen_outside;
};

/* See attach_begin_switch(). */
struct event_switch {
	VECTOR(int) fds;
	pthread_t thread;
	bool has_thread, on;
	/* Atomic. */
	bool is_complete; /* every event was switched */
	bool has_ended;	  /* the thread, complete or not */
	bool must_end;
};

/* A record about a thread, kept until all that is older has been seen. */
struct thread_note {
	pid_t tid;
	uint64_t time_ns;
	uint64_t fence_id; /* it ran with this fence; 0: it ended */
};

struct attachment {
	const struct event_set *set;
	const struct rings *rings;
	bool on_exec;	      /* the events begin with the next exec */
	bool large_dumps_off; /* open new large-dump events disabled */
	int cgroup;	      /* directory of the control group that the events on processors are for; -1: none */
	VECTOR(struct attached_root) roots;
	VECTOR(struct attached_event) events;
	VECTOR(struct attached_fence) fences;
	VECTOR(struct thread_note) notes;
	struct hotplug_events hotplug_events; /* of events on CPUs */
	VECTOR(uint64_t) first_ids;	      /* likewise, by event: those that the file knows */
	VECTOR(uint64_t) lost_earlier;	      /* likewise: by events that are closed again */
	struct event_switch switching;
	VECTOR(int) kept_tracepoints; /* events of our own that never fire */
	struct map root_of_fence;     /* by identifier */
	struct map root_of_thread;    /* by number: the latest */
	struct map event_of_id;
	struct map
	    id_in_file;	 /* of events that were opened when the file had its beginning: the one that stands for them */
	cpu_list absent; /* had no events when those on CPUs were opened */
	struct thread_coverage coverage;
	size_t unseen_roots;	     /* not seen outside of clone(), as of attach_look_outside() */
	uint64_t unseen_since_ns;    /* all of them */
	uint64_t descriptors_wanted; /* for messages */
};

/* Borrows both, which must outlive the attachment. */
void attach_init(struct attachment *attachment, const struct event_set *set, const struct rings *rings);

/* Closes every descriptor. Accepts a zeroed value. */
void attach_deinit(struct attachment *attachment);

/* How many threads can be attached to in reasonable time, with events for large stack dumps or without. */
size_t attach_threads_max(const struct attachment *attachment, bool large_dumps);

/* Raise the soft limit of open files to the hard one; fail when it cannot hold the events of so many threads. */
struct mmt_error *attach_reserve(struct attachment *attachment, size_t thread_count) MMT_MUST_CHECK;

/*
 * Keep every tracepoint of the set in use until attach_deinit(): the kernel takes tens of milliseconds to switch one
 * off with its last event, and a thread may be gone with that.
 */
struct mmt_error *attach_keep_tracepoints(struct attachment *attachment) MMT_MUST_CHECK;

/*
 * Open the whole set for a thread. `gone_ret`: it has ended, and nothing is open. Later threads that inherit the whole
 * set report it with SWITCH records until the fences are closed.
 */
struct mmt_error *attach_thread(struct attachment *attachment, pid_t pid, pid_t tid, bool *gone_ret) MMT_MUST_CHECK;

/* The same for the command, which stands still. */
struct mmt_error *attach_command(struct attachment *attachment, pid_t pid, bool *gone_ret) MMT_MUST_CHECK;

/* Open it on every CPU, with a hotplug event, for all processes, or all in the control group whose directory this is
 * (borrowed; -1: none).
 */
struct mmt_error *attach_cpus(struct attachment *attachment, int cgroup) MMT_MUST_CHECK;

/* The same on a CPU that has come online since: what it had before is closed. The file knows only the identifiers that
 * there were when it began: see attach_id_in_file(). `gone_ret`: it is offline again. */
struct mmt_error *attach_cpu_later(struct attachment *attachment, int cpu, bool *gone_ret) MMT_MUST_CHECK;

/* Close what was opened for it; inherited events end with the one they come from. */
void attach_close_root(struct attachment *attachment, uint32_t root);

/* The identifier by which the file knows the event. */
uint64_t attach_id_in_file(const struct attachment *attachment, uint64_t id);

/* Records about threads, in any order; of a FORK `new_ret` tells whether this is the first word about that thread. */
struct mmt_error *attach_note_run(struct attachment *attachment, pid_t tid, uint64_t time_ns,
				  uint64_t fence_id) MMT_MUST_CHECK;

struct mmt_error *attach_note_end(struct attachment *attachment, pid_t tid, uint64_t time_ns) MMT_MUST_CHECK;

/* A sample of a fence: the thread was outside the kernel. Of other identifiers nothing comes. */
struct mmt_error *attach_note_outside(struct attachment *attachment, pid_t tid, uint64_t time_ns,
				      uint64_t fence_id) MMT_MUST_CHECK;

struct mmt_error *attach_note_fork(struct attachment *attachment, pid_t tid, uint64_t time_ns,
				   bool *new_ret) MMT_MUST_CHECK;

/*
 * A FORK record tells that this thread started one. True: perhaps it was about to when the events were opened, so that
 * the new one has not got them all. What it starts next has.
 */
bool attach_note_start(struct attachment *attachment, pid_t parent_tid, uint64_t time_ns);

/* Look where the threads are that have not been seen outside of clone() yet. */
void attach_look_outside(struct attachment *attachment);

/*
 * The first `count` notes: whatever is older than they are has been noted. A thread that ran with the fence of another
 * was born with the whole set, and what was opened for it is closed again: it would report everything twice.
 */
struct mmt_error *attach_resolve(struct attachment *attachment, size_t count) MMT_MUST_CHECK;

/* Until attach_close_fences() this thread is sampled while it is outside the kernel, with identifiers that are nothing
 * else's. `gone_ret`: it has ended. */
struct mmt_error *attach_watch_outside(struct attachment *attachment, pid_t tid, bool *gone_ret) MMT_MUST_CHECK;

/* Attaching is over: no more SWITCH records. */
void attach_close_fences(struct attachment *attachment);

/* Switch off some events from the index `next` on, inherited ones too: it takes long where there are many, and the
   others go on. False: that was the last. */
bool attach_disable_some(struct attachment *attachment, size_t *next);

/*
 * Switch large stack dumps on or off, including inherited events, in another thread: if thousands of threads have
 * inherited an event, the kernel takes a tenth of a second for it.
 */
struct mmt_error *attach_begin_switch(struct attachment *attachment, bool on) MMT_MUST_CHECK;

enum switch_state { SWITCH_AT_WORK, SWITCH_COMPLETE, SWITCH_CUT_SHORT };

enum switch_state attach_switch_state(const struct attachment *attachment);

/* Ask the thread to end early, without waiting for it. True: it has ended, or there is none. */
bool attach_stop_switch(struct attachment *attachment);

/* Stop switching early and wait for the thread, which must be done before closing descriptors; only some events are
 * switched then. */
void attach_end_switch(struct attachment *attachment);

/* Add what the kernel counted as lost, by event, inherited events included. `lost` has an element per event of the set.
 */
void attach_add_lost(const struct attachment *attachment, uint64_t *lost);

/* Of one event. */
uint64_t attach_lost_of(const struct attachment *attachment, size_t event);

#endif
