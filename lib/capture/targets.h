/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Finds the processes and threads to record, including existing children, and attaches to them while they create
 * others. mmt_find_processes() finds processes by name. */
#ifndef CAPTURE_TARGETS_H
#define CAPTURE_TARGETS_H

#include "base/errors.h"
#include "capture/recorder/recorder.h"

/* Chooses the scope for the options: see scope.h. The command, if any, need not have been started. */
struct mmt_error *targets_choose_scope(struct recorder *recorder) MMT_MUST_CHECK;

/* Is the process in the recorded control group or in one of its descendants? */
struct mmt_error *targets_find_in_group(const struct recorder *recorder, pid_t pid, bool *found_ret) MMT_MUST_CHECK;

/*
 * Attaches to the requested processes. Afterwards every thread of options->pids, and every child created meanwhile, has
 * the complete event set, opened or inherited. The events are enabled; records are dropped until recorder->writing is
 * set.
 */
struct mmt_error *targets_attach(struct recorder *recorder) MMT_MUST_CHECK;

/*
 * Counts in the summary the threads of known processes that are not known to have the event set; there should be none.
 * Nothing is counted if FORK records may have been lost. Call this before the recording ends.
 */
struct mmt_error *targets_count_missed(struct recorder *recorder) MMT_MUST_CHECK;

/* Checks whether calls are missing: on a CPU that came online, or of a process that left the control group. */
struct mmt_error *targets_check_unrecorded(struct recorder *recorder) MMT_MUST_CHECK;

/* Writes into the recording how many children of targets are not recorded. Call this after the recording has begun. */
struct mmt_error *children_note_unrecorded(struct recorder *recorder) MMT_MUST_CHECK;

#endif
