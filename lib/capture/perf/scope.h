/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The scope of a recording: chosen threads, a control group, or all processes on the CPUs. */
#pragma once

#include "capture/procfs/proc.h"
#include "capture/process/process-table.h"

/*
 * Decides which records are written. Per-thread events produce only records of the recorded threads. Per-CPU events
 * produce records of all processes, or of all in a control group, and the reader discards records of other processes.
 *
 * The rings are read one after the other, so a child's first calls may be read before its FORK record. Therefore all
 * rings are searched for FORK records before any other record is read.
 */

enum scope_kind {
	SCOPE_THREADS,	     /* per-thread events */
	SCOPE_PROCESSES,     /* per-CPU events: the requested processes and their children, perhaps by control groups */
	SCOPE_ALL_PROCESSES, /* per-CPU events: all processes, or all in a control group, except the recorder itself */
};

struct scope_fork {
	uint64_t time_ns;
	pid_t pid, parent;
};

/* Zero-initialise one for per-thread events. */
struct scope {
	enum scope_kind kind;
	pid_t recorder;
	struct map begins, ends; /* by PID: from when, and until when, it is recorded; not in `ends`: it still is */
	VECTOR(struct scope_fork) forks; /* noted from FORK records, not applied yet */
	VECTOR(int) cgroups; /* owned; directories of the control groups with per-CPU events; none: the whole machine */
	uint64_t passed_over; /* number of calls of other processes */
};

/* Are per-thread events cheap? For each mapping, the kernel walks all events of the thread, those of other CPUs too,
 * and it copies them for each new thread. `events`: of a thread on one CPU. */
bool scope_threads_are_cheap(size_t cpus, size_t events);

/* Estimate how much longer than on a small machine a pair of mmap() and munmap() takes with per-thread events. */
unsigned scope_threads_cost_us(size_t cpus, size_t events);

void scope_deinit(struct scope *scope);

/* Begin to record a process. This and the functions below return false if out of memory. */
bool scope_follow(struct scope *scope, pid_t pid, uint64_t time_ns);

/* Apply the noted forks in order of time, up to `until_ns`: all FORK records before that time must have been noted. A
 * later fork waits for the next call, because it may be of a child whose parent's FORK record arrived in a ring that
 * had already been searched. */
bool scope_apply_forks(struct scope *scope, uint64_t until_ns);

/* Forget processes that were recorded before this time and have left the process table, because they have ended. */
void scope_forget(struct scope *scope, const struct process_table *known, uint64_t before_ns);

/* Was this process to be recorded at this time? */
bool scope_follows(const struct scope *scope, pid_t pid, uint64_t time_ns);

/* Should activity of this process at this time be recorded? Per-thread events have only such activity. */
bool scope_admits(const struct scope *scope, pid_t pid, uint64_t time_ns);

/* Open the directory of a control group: `path` itself, or `path` below a mounted hierarchy that perf events can use.
 * `path` may be a line of /proc/PID/cgroup. `member`: the process that the path is of, which finds a path outside of this
 * cgroup namespace; 0: not known. */
struct mmt_error *cgroup_open(const char *path, pid_t member, int *fd_ret) MMT_MUST_CHECK;

/* Open the process's own control group in the hierarchy that perf events use. Refuses the root, which has every
 * process, and a group whose processes cannot be listed. */
struct mmt_error *cgroup_open_own(pid_t pid, int *fd_ret) MMT_MUST_CHECK;

/* Find the path of the group's directory, for messages and comparisons. False: not known. */
bool cgroup_path(int cgroup, char *path, size_t path_size);

/* Is this group another one's ancestor, or the same one? */
bool cgroup_contains(int cgroup, int other);

/* Can the processes of this group be listed? Those of a threaded control group cannot. */
bool cgroup_has_processes(int cgroup);

/* Will the group never have processes again? Not if it is -1. */
bool cgroup_is_removed(int cgroup);

/* Append the processes of the group and of its descendants. False: the group cannot be read, or out of memory. */
bool cgroup_list_processes(int cgroup, proc_pids *pids);
