/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Opens the perf events of the recorded threads or CPUs, and attaches to every thread of a running process while the
 * process creates more.
 */
#ifndef CAPTURE_PERF_ATTACH_H
#define CAPTURE_PERF_ATTACH_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/errors.h"
#include "base/map.h"
#include "base/vector.h"
#include "capture/perf/cpu-hotplug.h"
#include "capture/perf/large-dumps.h"
#include "capture/perf/perf-events.h"
#include "capture/perf/ring-buffers.h"

/*
 * Which threads are known to have the complete event set, opened or inherited. The kernel reuses TIDs, on a small or
 * busy system within a second. So every statement about a TID has a time and applies only to a thread that had started
 * by then.
 */

/* Zero initialisation makes an empty one. */
struct thread_coverage {
	struct map times;     /* by TID: when the thread was known to have the set */
	struct map forks;     /* by TID: the latest FORK; while attaching */
	struct map ends;      /* by TID: the latest EXIT of a thread that had the set; while attaching */
	uint64_t complete_ns; /* threads created later inherit the set; 0: not yet */
	bool forks_missing;   /* records were lost while attaching */
};

void thread_coverage_deinit(struct thread_coverage *coverage);

/* The thread with this TID had the set at this time. False, here and below: out of memory. */
bool thread_coverage_put(struct thread_coverage *coverage, pid_t tid, uint64_t time_ns);

/* Does the thread with this TID that started at `start_ns` have the set? `start_ns` may be early by a clock tick of
 * /proc; a TID is not reused within one. */
bool thread_coverage_has(const struct thread_coverage *coverage, pid_t tid, uint64_t start_ns);

/* Adds a FORK record; there may be several for one thread. *new_ret: this is the first record of a thread that
 * inherited the set. */
bool thread_coverage_note_fork(struct thread_coverage *coverage, pid_t tid, uint64_t time_ns, bool *new_ret);

/* Adds an EXIT record. Call this when every older record has been added. */
bool thread_coverage_note_end(struct thread_coverage *coverage, pid_t tid, uint64_t time_ns);

/* Did a thread with this TID that had the set exit then or later? While attaching. */
bool thread_coverage_lasted_until(const struct thread_coverage *coverage, pid_t tid, uint64_t time_ns);

/*
 * Did one thread have this TID at both times? Used for threads that inherit events, which FORK records show. If it
 * cannot be determined: no.
 */
bool thread_coverage_is_same(const struct thread_coverage *coverage, pid_t tid, uint64_t a_ns, uint64_t b_ns);

/* Every thread that was alive at this time has the set. */
void thread_coverage_set_complete(struct thread_coverage *coverage, uint64_t time_ns);

/* Opens the event set for threads, on every CPU, and owns the descriptors. */

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

/* A thread that the set was opened for; threads that it creates later inherit the set. */
struct attached_root {
	pid_t pid, tid;
	uint64_t thread_start_ns; /* early by at most one clock tick */
	uint64_t begin_ns;	  /* before the first event was opened */
	uint64_t complete_ns;	  /* when the last event had been opened; 0: not yet, or closed again */
	/* The thread was seen outside of clone() since then: threads that it creates from now on inherit the complete
	 * set. Threads that it created before have inherited only part of the set, or none of it. */
	bool seen_outside;
};

/* A record about a thread, kept until all older records have been seen. */
struct thread_note {
	pid_t tid;
	uint64_t time_ns;
	uint64_t fence_id; /* the thread ran with this fence; 0: it exited */
};

struct attachment {
	const struct event_set *set;
	const struct rings *rings;
	bool on_exec;	      /* the events begin with the next exec */
	bool large_dumps_off; /* open new large-dump events disabled */
	int cgroup;	      /* directory of the control group that per-CPU events are limited to; -1: none */
	VECTOR(struct attached_root) roots;
	VECTOR(struct attached_event) events;
	VECTOR(struct attached_fence) fences;
	VECTOR(struct thread_note) notes;
	struct hotplug_events hotplug_events; /* for per-CPU events */
	VECTOR(uint64_t) first_ids;	      /* per-CPU events: the identifiers that the file knows, by event */
	VECTOR(uint64_t) lost_earlier;	      /* per-CPU events: lost by events that are closed again, by event */
	struct event_switch switching;
	VECTOR(int) kept_tracepoints; /* dummy users of the tracepoints; they never fire */
	struct map root_of_fence;     /* by identifier */
	struct map root_of_thread;    /* by TID: the latest */
	struct map event_of_id;
	struct map
	    id_in_file;	 /* of events opened after the head of the file was written: the identifier used instead */
	cpu_list absent; /* had no events when the per-CPU events were opened */
	struct thread_coverage coverage;
	size_t unseen_roots;	     /* not yet seen outside of clone(), as of attach_look_outside() */
	uint64_t unseen_since_ns;    /* for all of them */
	uint64_t descriptors_wanted; /* for messages */
};

/* Borrows both, which must outlive the attachment. */
void attach_init(struct attachment *attachment, const struct event_set *set, const struct rings *rings);

/* Closes every descriptor. Accepts a zeroed value. */
void attach_deinit(struct attachment *attachment);

/* How many threads can be attached to in reasonable time, with or without events for large stack dumps. */
size_t attach_threads_max(const struct attachment *attachment, bool large_dumps);

/* Raise the soft limit of open files to the hard limit; fail if that is too low for the events of so many threads. */
struct mmt_error *attach_reserve(struct attachment *attachment, size_t thread_count) MMT_MUST_CHECK;

/*
 * Keep every tracepoint of the set in use until attach_deinit(): the kernel needs tens of milliseconds to disable a
 * tracepoint with its last event, and the last event may go away with any thread.
 */
struct mmt_error *attach_keep_tracepoints(struct attachment *attachment) MMT_MUST_CHECK;

/*
 * Open the complete set for a thread. `gone_ret`: the thread has exited, and nothing is open. Threads that inherit the
 * complete set later report it with SWITCH records until the fences are closed.
 */
struct mmt_error *attach_thread(struct attachment *attachment, pid_t pid, pid_t tid, bool *gone_ret) MMT_MUST_CHECK;

/* The same for the command, which has not called exec yet. */
struct mmt_error *attach_command(struct attachment *attachment, pid_t pid, bool *gone_ret) MMT_MUST_CHECK;

/* Open the set on every CPU, with a hotplug event, for all processes, or for all in the control group with this
 * directory (borrowed; -1: none). */
struct mmt_error *attach_cpus(struct attachment *attachment, int cgroup) MMT_MUST_CHECK;

/* The same on a CPU that has come online since; its previous events are closed. The file knows only the identifiers
 * from when its head was written: see attach_id_in_file(). `gone_ret`: the CPU is offline again. */
struct mmt_error *attach_cpu_later(struct attachment *attachment, int cpu, bool *gone_ret) MMT_MUST_CHECK;

/* Close what was opened for the thread; inherited events end with the event that they were inherited from. */
void attach_close_root(struct attachment *attachment, uint32_t root);

/* The identifier of the event in the file. */
uint64_t attach_id_in_file(const struct attachment *attachment, uint64_t id);

/* Records about threads, in any order. For a FORK, *new_ret: this is the first record about that thread. */
struct mmt_error *attach_note_run(struct attachment *attachment, pid_t tid, uint64_t time_ns,
				  uint64_t fence_id) MMT_MUST_CHECK;

struct mmt_error *attach_note_end(struct attachment *attachment, pid_t tid, uint64_t time_ns) MMT_MUST_CHECK;

/* A sample of a fence shows that the thread was outside the kernel. Other identifiers are ignored. */
struct mmt_error *attach_note_outside(struct attachment *attachment, pid_t tid, uint64_t time_ns,
				      uint64_t fence_id) MMT_MUST_CHECK;

struct mmt_error *attach_note_fork(struct attachment *attachment, pid_t tid, uint64_t time_ns,
				   bool *new_ret) MMT_MUST_CHECK;

/*
 * A FORK record shows that this thread created another. True: the clone() may have begun before the events were opened,
 * so the new thread may not have inherited all of them. Threads created later have.
 */
bool attach_note_start(struct attachment *attachment, pid_t parent_tid, uint64_t time_ns);

/* Check where the threads are that have not been seen outside of clone() yet. */
void attach_look_outside(struct attachment *attachment);

/*
 * Resolve the first `count` notes: all older records have been noted. A thread that ran with the fence of another one
 * has inherited the complete set, so the events opened for it are closed: they would report everything twice.
 */
struct mmt_error *attach_resolve(struct attachment *attachment, size_t count) MMT_MUST_CHECK;

/* Sample this thread in user space until attach_close_fences(), with identifiers that no other event has. `gone_ret`:
 * the thread has exited. */
struct mmt_error *attach_watch_outside(struct attachment *attachment, pid_t tid, bool *gone_ret) MMT_MUST_CHECK;

/* Attaching is complete: stop the SWITCH records. */
void attach_close_fences(struct attachment *attachment);

/* Disable some events from index `next` on, including inherited ones. With many events this takes long, and the others
 * keep recording. False: these were the last. */
bool attach_disable_some(struct attachment *attachment, size_t *next);

/* Add the kernel's lost counts by event, including inherited events. `lost` has an element per event of the set. */
void attach_add_lost(const struct attachment *attachment, uint64_t *lost);

/* The same for one event. */
uint64_t attach_lost_of(const struct attachment *attachment, size_t event);

#endif
