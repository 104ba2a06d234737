/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Which processes are recorded: chosen threads, a control group, or all processes on the CPUs. */
#ifndef CAPTURE_PERF_SCOPE_H
#define CAPTURE_PERF_SCOPE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/errors.h"
#include "base/map.h"
#include "base/vector.h"
#include "capture/procfs/proc.h"
#include "capture/process/process-table.h"

/*
 * Which records are written. Per-thread events only produce records of the recorded threads. Per-CPU events produce
 * records of all processes, or of all in a control group; the reader discards records of other processes.
 *
 * The rings are read one after the other, so a child's first calls may be read before its FORK record. FORK records are
 * therefore searched in all rings first.
 */

enum scope_kind {
	SCOPE_THREADS,	     /* per-thread events */
	SCOPE_PROCESSES,     /* per-CPU events: the requested processes and their children */
	SCOPE_ALL_PROCESSES, /* per-CPU events: all processes, or all in a control group, except the recorder itself */
};

struct scope_fork {
	uint64_t time_ns;
	pid_t pid, parent;
};

/* Zero-initialise one with per-thread events. */
struct scope {
	enum scope_kind kind;
	bool no_inherit;
	pid_t recorder;
	struct map begins,
	    ends; /* by PID: from when until when the PID is a recorded process; no entry in `ends`: still recorded */
	VECTOR(struct scope_fork) forks; /* noted, not yet applied */
	uint64_t passed_over;		 /* calls of other processes */
};

void scope_deinit(struct scope *scope);

/* Do FORK records have to be searched before other records are read? */
bool scope_wants_forks(const struct scope *scope);

/* False, here and below: out of memory. */
bool scope_follow(struct scope *scope, pid_t pid, uint64_t time_ns);

bool scope_note_fork(struct scope *scope, pid_t pid, pid_t parent, uint64_t time_ns);

/*
 * Apply the noted forks, which may be in any order, sorted by time, up to a time before which all FORK records have
 * been noted. A later one may belong to a child whose parent's FORK arrived in a ring after that ring was searched; it
 * waits for the next call.
 */
bool scope_apply_forks(struct scope *scope, uint64_t until_ns);

/* Forget processes that were recorded by then and are no longer in the process table: they have ended. */
void scope_forget(struct scope *scope, const struct process_table *known, uint64_t before_ns);

/* Should the activity of the process at this time be recorded? */
bool scope_admits(const struct scope *scope, pid_t pid, uint64_t time_ns);

/* Control groups: their directories and processes. */

/* The directory of a group: `path` itself, or `path` under a control group mount that perf events use. `path` may be a
 * line of /proc/PID/cgroup. */
struct mmt_error *cgroup_open(const char *path, int *fd_ret) MMT_MUST_CHECK;

/* Can its processes be listed? Not in a threaded control group. */
bool cgroup_has_processes(int cgroup);

/* Append the processes of the group and of its descendants. False: cannot be read, or out of memory. */
bool cgroup_list_processes(int cgroup, proc_pids *pids);

#endif
