/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Control groups: their directories and processes. */
#ifndef CAPTURE_CGROUP_H
#define CAPTURE_CGROUP_H

#include <stdbool.h>

#include "base/error.h"
#include "capture/proc.h"

/* Its directory: `path` itself, or the path under a mount of control groups that perf events know. */
struct mmt_error *cgroup_open(const char *path, int *fd_ret) MMT_MUST_CHECK;

/* Does it tell its processes? One of threads does not. */
bool cgroup_has_processes(int cgroup);

/* Append the processes in it and in those below it. False: cannot be read, or out of memory. */
bool cgroup_list_processes(int cgroup, proc_pids *pids);

#endif
