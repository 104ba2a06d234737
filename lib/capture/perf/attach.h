/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Opens the perf events of the recorded threads or CPUs. Attaches to every thread of a running process while the
 * process creates more threads. */
#pragma once

#include <pthread.h>

#include "capture/perf/ring-buffers.h"

/* Which threads are known to have the complete event set, either opened for them or inherited. The kernel reuses TIDs,
 * on a small or busy system within a second. So every statement about a TID has a time, and applies only to a thread
 * that had started by then. Zero-initialise one without threads. */
struct thread_coverage {
	struct map times;     /* by TID: the latest time when the thread was known to have the set */
	struct map forks;     /* by TID: the latest FORK; while attaching */
	struct map ends;      /* by TID: the latest EXIT of a thread that had the set; while attaching */
	uint64_t complete_ns; /* threads created after this time inherit the set; 0: not complete yet */
	bool forks_missing;   /* FORK records were lost while attaching */
};

void thread_coverage_deinit(struct thread_coverage *coverage);

/* Note that the thread had the set at this time. This and the functions below return false if out of memory. */
bool thread_coverage_put(struct thread_coverage *coverage, pid_t tid, uint64_t time_ns);

/* Does the thread with this TID that started at `start_ns` have the set? `start_ns` may be too early by one clock tick
 * of /proc, because the kernel does not reuse a TID within one tick. */
bool thread_coverage_has(const struct thread_coverage *coverage, pid_t tid, uint64_t start_ns);

/* Add a FORK record; a thread can have several. *new_ret: this is the first record of a thread that inherited the
 * set. */
bool thread_coverage_note_fork(struct thread_coverage *coverage, pid_t tid, uint64_t time_ns, bool *new_ret);

/* Add an EXIT record. Call this only after all older records have been added. */
bool thread_coverage_note_end(struct thread_coverage *coverage, pid_t tid, uint64_t time_ns);

/* While attaching: did a thread with this TID that had the set exit at this time or later? */
bool thread_coverage_lasted_until(const struct thread_coverage *coverage, pid_t tid, uint64_t time_ns);

/* Did one thread have this TID at both times? FORK records show when a TID was reused. Return false if this cannot be
 * determined. Use this for threads that inherit events. */
bool thread_coverage_is_same(const struct thread_coverage *coverage, pid_t tid, uint64_t a_ns, uint64_t b_ns);

/* Note that every thread that was alive at this time has the set. */
void thread_coverage_set_complete(struct thread_coverage *coverage, uint64_t time_ns);

/* An open event: one of the event set of a thread, on one CPU. */
struct attached_event {
	int fd; /* owned by the attachment */
	uint32_t root;
	uint32_t event; /* index in the event set; UINT32_MAX: the coverage event */
	uint64_t id;
};

/* A root: a thread for which the event set was opened, and whose later threads inherit the set, or a place whose
 * processes have the set on every CPU. */
struct attached_root {
	pid_t pid, tid;		  /* -1: a place */
	int cgroup;		  /* the place: the directory of a control group, borrowed; -1: the machine */
	bool faults_only;	  /* it has the events of the set that are `on_cpus`, and no others */
	uint64_t thread_start_ns; /* too early by at most one clock tick */
	uint64_t begin_ns;	  /* before the first event was opened */
	uint64_t complete_ns;	  /* when the last event had been opened; 0: not yet, or the events were closed again */
	/* The thread has been outside of clone() since then, so threads that it creates from now on inherit the
	 * complete set. Threads that it created before inherited a part of the set, or nothing. */
	bool seen_outside;
};

/* A SWITCH or EXIT record of a thread, kept until all older records have been read. */
struct thread_note {
	pid_t tid;
	uint64_t time_ns;
	uint64_t coverage_event_id; /* the coverage event that reported the thread; 0: the thread exited */
};

enum switch_state { SWITCH_AT_WORK, SWITCH_COMPLETE, SWITCH_CUT_SHORT };

/* The thread that switches the events of large dumps on or off. */
struct event_switch {
	VECTOR(int) fds;
	pthread_t thread;
	bool has_thread, on;
	/* Both are read and written atomically while the thread runs. */
	enum switch_state state;
	bool must_end;
};

struct attachment {
	const struct event_set *set;
	const struct rings *rings;
	struct blocking_calls *calls;
	bool on_exec;	      /* the events are enabled by the next exec */
	bool large_dumps_off; /* open new large-dump events disabled */
	bool fault_dumps_off; /* page faults are sampled without dumps */
	VECTOR(struct attached_root) roots;
	VECTOR(struct attached_event) events;
	VECTOR(struct thread_note) notes;
	struct cpu_watch cpus;
	VECTOR(uint64_t) first_ids;    /* per-CPU events: the identifiers in the head of the file, by event */
	VECTOR(uint64_t) lost_earlier; /* per-CPU events: records lost by events that were closed, by event */
	struct event_switch switching;
	VECTOR(int) kept_tracepoints;	   /* dummy events that keep the tracepoints in use; they never fire */
	struct map oom_ids;		   /* identifiers of the events of attach_watch_oom() */
	struct map root_of_coverage_event; /* by identifier */
	struct map root_of_thread;	   /* by TID: the latest root */
	struct map event_of_id;
	struct map samples_of_id; /* number of samples that were read; only if the kernel does not count lost ones */
	/* For events opened after the head of the file was written: the identifier to write instead. */
	struct map id_in_file;
	struct thread_coverage coverage;
	size_t unseen_roots;	     /* roots not yet seen outside of clone(), as of attach_check_outside() */
	uint64_t unseen_since_ns;    /* when the last of these roots became complete */
	uint64_t descriptors_wanted; /* number of descriptors needed, for messages */
};

/* Accepts a zeroed value. */
void attach_deinit(struct attachment *attachment);

/* How many threads can be attached to in reasonable time. `large_dumps`: with events for large stack dumps. */
size_t attach_threads_max(const struct attachment *attachment, bool large_dumps);

/* Fails if the limit of open files is too low for the events of so many more threads. */
struct mmt_error *attach_reserve(struct attachment *attachment, size_t thread_count) MMT_MUST_CHECK;

/* Keep every tracepoint of the set in use until attach_deinit(). The kernel needs tens of milliseconds to disable a
 * tracepoint after its last event was closed, and the exit of any thread may close the last event. */
struct mmt_error *attach_keep_tracepoints(struct attachment *attachment) MMT_MUST_CHECK;

/* Opens the event of OOM kills on every CPU, for all processes: it fires in the thread that ran out of memory. Without
 * the permission, or the event, does nothing. The events are not in the set: the reader turns their samples into notes.
 */
struct mmt_error *attach_watch_oom(struct attachment *attachment,
				   const struct tracepoint_source *source) MMT_MUST_CHECK;

/* Open the complete set for a thread. `gone_ret`: the thread has exited, and nothing is open. A thread that inherits
 * the complete set is reported by SWITCH records until attach_close_coverage_events(). */
struct mmt_error *attach_thread(struct attachment *attachment, pid_t pid, pid_t tid, bool *gone_ret) MMT_MUST_CHECK;

/* Open the complete set for the command, which has not called exec yet. */
struct mmt_error *attach_command(struct attachment *attachment, pid_t pid, bool *gone_ret) MMT_MUST_CHECK;

/* Open the set on every CPU, for all processes or for those in a control group. `cgroup`: the group's directory,
 * borrowed; -1: all processes. After the first call, the head of the file does not contain the new identifiers: see
 * `id_in_file`. */
struct mmt_error *attach_cpus(struct attachment *attachment, int cgroup) MMT_MUST_CHECK;

/* Open the events of the set that are `on_cpus` on every CPU, for all processes. */
struct mmt_error *attach_faults(struct attachment *attachment) MMT_MUST_CHECK;

/* Sample page faults with stack dumps, or without them, on CPUs. */
void attach_switch_faults(struct attachment *attachment, bool dumps);

/* Close what attach_cpus() opened. Read the rings first. */
void attach_close_cpus(struct attachment *attachment);

/* Note a SWITCH record or, with `coverage_event_id` 0, an EXIT record about a thread, in any order. */
struct mmt_error *attach_note(struct attachment *attachment, pid_t tid, uint64_t time_ns,
			      uint64_t coverage_event_id) MMT_MUST_CHECK;

/* A sample of a coverage event shows that the thread was in user space. Other identifiers are ignored. */
struct mmt_error *attach_note_outside(struct attachment *attachment, pid_t tid, uint64_t time_ns,
				      uint64_t coverage_event_id) MMT_MUST_CHECK;

/* A FORK record shows that this thread has created another one. Return true if the clone() may have begun before the
 * events were opened, so that the new thread may have inherited only a part of the set. Threads created later inherit
 * all of it. */
bool attach_note_clone(struct attachment *attachment, pid_t parent_tid, uint64_t time_ns);

/* Check which threads have left the clone() that they may have been in when their events were opened. */
void attach_check_outside(struct attachment *attachment);

/* Resolve the first `count` notes; all older records must have been noted. If a thread with its own event set was
 * reported by the coverage event of another thread, it has also inherited a complete set. Its own events are then
 * closed, because they would report everything twice. */
struct mmt_error *attach_resolve(struct attachment *attachment, size_t count) MMT_MUST_CHECK;

/* Sample this thread in user space until attach_close_coverage_events(). The events have identifiers of their own.
 * `gone_ret`: the thread has exited. */
struct mmt_error *attach_sample_user_space(struct attachment *attachment, pid_t pid, pid_t tid,
					   bool *gone_ret) MMT_MUST_CHECK;

/* Close all coverage events, which stops the SWITCH records. Call this when all threads are attached to. */
void attach_close_coverage_events(struct attachment *attachment);

/* Disable some events, from index `next` on, including inherited ones. With many events this takes long, and the other
 * events keep recording. Return false after the last event. */
bool attach_disable_some(struct attachment *attachment, size_t *next);

/* Does the kernel count lost records (PERF_FORMAT_LOST)? */
bool attach_counts_lost(const struct attachment *attachment);

/* Count a sample that was read, if the kernel does not count lost ones. */
bool attach_note_sample(struct attachment *attachment, uint64_t id);

/* Add the lost counts by event, including inherited events, to `lost`, which has one element per event of the set. If
 * the kernel has no such counts, these are the samples that were made and not read: call it when all rings have been
 * read, and the events have been disabled. Events without samples count 0 then. */
void attach_add_lost(const struct attachment *attachment, uint64_t *lost);

/* Return the kernel's lost count of one event of the set, over all threads and CPUs. */
uint64_t attach_lost_of(const struct attachment *attachment, size_t event);

/* Switch large stack dumps on or off, including inherited events. A separate thread does this, because the kernel
 * takes a tenth of a second if thousands of threads have inherited an event. */
struct mmt_error *attach_begin_switch(struct attachment *attachment, bool on) MMT_MUST_CHECK;

enum switch_state attach_switch_state(const struct attachment *attachment);

/* Ask the thread to end early, without waiting for it. Return true if it has ended, or if there is none. */
bool attach_stop_switch(struct attachment *attachment);

/* Stop switching early and wait for the thread. Call this before closing descriptors. */
void attach_end_switch(struct attachment *attachment);
