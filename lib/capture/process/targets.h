/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Finds the processes and threads to record and attaches to them while they create others. */
#ifndef CAPTURE_PROCESS_TARGETS_H
#define CAPTURE_PROCESS_TARGETS_H

#include "base/errors.h"
#include "capture/recorder.h"

/* How the options are to be met: see scope.h. The command, if any, need not run yet. */
struct mmt_error *targets_choose_scope(struct recorder *recorder) MMT_MUST_CHECK;

/* Is the process in the control group that is recorded, or in one below it? */
struct mmt_error *targets_find_in_group(const struct recorder *recorder, pid_t pid, bool *found_ret) MMT_MUST_CHECK;

/*
 * Every thread of options->pids has the whole event set, opened or inherited, and so have the children that were born
 * meanwhile. The events are on; recorder->writing is unset, so that what comes before the start is dropped.
 */
struct mmt_error *targets_attach(struct recorder *recorder) MMT_MUST_CHECK;

/*
 * Before the end: count in the summary the threads of known processes of which no event told that they have the event
 * set. There must not be any. Where allocations may be among lost records nothing can be said. Applies process
 * events: no entry of the process table may be held.
 */
struct mmt_error *targets_count_missed(struct recorder *recorder) MMT_MUST_CHECK;

/* Open events on CPUs that have come online, and note that they were there unseen. */
struct mmt_error *targets_look_at_cpus(struct recorder *recorder) MMT_MUST_CHECK;

/* Look whether calls go unseen: on a CPU that came online, of a process that left the control group. */
struct mmt_error *targets_look_for_unseen(struct recorder *recorder) MMT_MUST_CHECK;

#endif
