/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Finds the processes and threads to record, with the children that they have, and attaches to them while they create
 * others. mmt_find_processes() finds processes by name. */
#ifndef CAPTURE_PROCESS_TARGETS_H
#define CAPTURE_PROCESS_TARGETS_H

#include "base/errors.h"
#include "capture/recorder.h"

/* Chooses the scope for the options: see scope.h. The command, if any, need not run yet. */
struct mmt_error *targets_choose_scope(struct recorder *recorder) MMT_MUST_CHECK;

/* Is the process in the recorded control group or in one of its descendants? */
struct mmt_error *targets_find_in_group(const struct recorder *recorder, pid_t pid, bool *found_ret) MMT_MUST_CHECK;

/*
 * Afterwards every thread of options->pids has the complete event set, opened or inherited, and so have children
 * created meanwhile. The events are enabled; recorder->writing is unset, so records from before the start are dropped.
 */
struct mmt_error *targets_attach(struct recorder *recorder) MMT_MUST_CHECK;

/*
 * Call this before the end: counts in the summary the threads of known processes that are not known to have the event
 * set. There should be none. If FORK records may have been lost, nothing is counted.
 */
struct mmt_error *targets_count_missed(struct recorder *recorder) MMT_MUST_CHECK;

/* Check whether calls are missed: on a CPU that came online, or in a process that left the control group. */
struct mmt_error *targets_look_for_unseen(struct recorder *recorder) MMT_MUST_CHECK;

/* Write into the recording, which has begun, how many children of targets are not recorded. */
struct mmt_error *children_note_unrecorded(struct recorder *recorder) MMT_MUST_CHECK;

#endif
