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
#include "capture/proc/proc.h"
#include "capture/process/process-table.h"

/*
 * Which records are written. Events of threads have records of those threads only. Events on CPUs have records of all
 * processes, or of all in a control group; records of other processes are discarded while draining.
 *
 * The rings are read one after the other, and a child's first calls may be in an earlier one than its allocation. So
 * allocations are looked for in all rings first.
 */

enum scope_kind {
	SCOPE_THREADS,	     /* events of threads */
	SCOPE_PROCESSES,     /* events on processors: processes asked for and their children */
	SCOPE_ALL_PROCESSES, /* the same, of all processes, or all in a control group; but not the recorder itself */
};

struct scope_fork {
	uint64_t time_ns;
	pid_t pid, parent;
};

/* Zero initialisation makes one of threads. */
struct scope {
	enum scope_kind kind;
	bool no_inherit;
	pid_t recorder;
	struct map begins,
	    ends; /* by process: from when until when (not in it: still) the number is that of one followed */
	VECTOR(struct scope_fork) forks; /* noted, not yet applied */
	uint64_t passed_over;		 /* calls of others */
};

void scope_deinit(struct scope *scope);

/* Is it needed to look for allocations before anything else is read? */
bool scope_wants_forks(const struct scope *scope);

/* False, here and below: out of memory. */
bool scope_follow(struct scope *scope, pid_t pid, uint64_t time_ns);

bool scope_note_fork(struct scope *scope, pid_t pid, pid_t parent, uint64_t time_ns);

/*
 * Of those noted, which may come in any order, in that of time, up to a moment before which every allocation has been
 * noted: a later one may be of a child whose own allocation came into a ring that had been looked at already. It waits
 * for the next time.
 */
bool scope_apply_forks(struct scope *scope, uint64_t until_ns);

/* Those that were followed by then and are not known any more: forgotten as ended. */
void scope_forget(struct scope *scope, const struct process_table *known, uint64_t before_ns);

/* Is what the process did then to be recorded? */
bool scope_admits(const struct scope *scope, pid_t pid, uint64_t time_ns);

/* Control groups: their directories and processes. */

/* Its directory: `path` itself, or the path under a mount of control groups that perf events know. */
struct mmt_error *cgroup_open(const char *path, int *fd_ret) MMT_MUST_CHECK;

/* Does it tell its processes? One of threads does not. */
bool cgroup_has_processes(int cgroup);

/* Append the processes in it and in those below it. False: cannot be read, or out of memory. */
bool cgroup_list_processes(int cgroup, proc_pids *pids);

#endif
