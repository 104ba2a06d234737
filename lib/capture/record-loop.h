/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The record loop: reads the rings, follows processes, and runs the jobs until the recording stops. */
#pragma once

#include "capture/recorder/recorder.h"

/* Records until a stop condition is met, which is stored in summary.end. Write errors are kept in
 * recorder->write_error. */
struct mmt_error *loop_run(struct recorder *recorder) MMT_MUST_CHECK;

/* Takes the last snapshots while the events are enabled, then disables the events and reads the last records, up to
 * recorder->stop_ns. Failures are passed to recorder_keep_failure(). */
void loop_stop(struct recorder *recorder);

/* Applies the queued process events to the process table, and empties the queue. A forked child is added to the
 * recording here. Pointers to existing entries of the process table stay valid. */
struct mmt_error *loop_apply_events(struct recorder *recorder) MMT_MUST_CHECK;

/* Drains the rings: reads them and applies the events found. Only the loop calls this, between two jobs. */
struct mmt_error *loop_drain(struct recorder *recorder) MMT_MUST_CHECK;

/* Takes a snapshot of a process. Each line gets the time before the read() that returned it. If the process is gone,
 * the snapshot is empty or missing. Lets the ring reader work in between. *complete_ret, which may be NULL: the
 * snapshot is complete and usable; it is not if the process exited or called exec in the meantime. */
struct mmt_error *snapshot_take(struct recorder *recorder, struct traced_process *process, enum snapshot_kind kind,
				bool *complete_ret) MMT_MUST_CHECK;

/*
 * Writes the names of the threads as COMM records. Their identifier is not that of a real event: otherwise the reader
 * would treat them as the first record of that thread's events, and drop the thread's own records as duplicates.
 * *alive_ret: at least one thread has a name and does not exit.
 */
struct mmt_error *snapshot_name_threads(struct recorder *recorder, pid_t pid, bool *alive_ret) MMT_MUST_CHECK;

/* Finds the processes and threads to record, including existing children, and attaches to them while they create
 * others. mmt_find_processes() finds processes by name. */

/* Chooses the scope for the options, opens the control groups in which events will be opened, and describes it in the
 * summary: see scope.h. The command, if any, need not have been started. */
struct mmt_error *targets_choose_scope(struct recorder *recorder) MMT_MUST_CHECK;

/* 0: the process is gone. */
size_t targets_count_threads(pid_t pid);

/* Is the process in a control group in which events are opened? */
struct mmt_error *targets_find_in_group(const struct recorder *recorder, pid_t pid, bool *found_ret) MMT_MUST_CHECK;

/* Attaches to the requested processes. Afterwards every thread of options->pids, and every child created meanwhile, has
 * the complete event set, opened or inherited. The events are enabled; records are dropped until recorder->writing is
 * set. */
struct mmt_error *targets_attach(struct recorder *recorder) MMT_MUST_CHECK;

/* Begins to record the processes that exist now. Later ones are added by their FORK records. */
struct mmt_error *targets_follow(struct recorder *recorder) MMT_MUST_CHECK;

/* With options->wait_name: waits for the process, and adds it. *exec_ns_ret: when it executed its program. Its records
 * since then are in the rings. */
struct mmt_error *targets_wait(struct recorder *recorder, uint64_t *exec_ns_ret) MMT_MUST_CHECK;

/* Counts in the summary the threads of known processes that are not known to have the event set; there should be none.
 * Nothing is counted if FORK records may have been lost. Call this before the recording ends. */
struct mmt_error *targets_count_missed(struct recorder *recorder) MMT_MUST_CHECK;

/* Checks whether calls are missing: on a CPU that came online, or of a process that left the control group. Opens
 * events in the new group of a target, or on every CPU. */
struct mmt_error *targets_check_unrecorded(struct recorder *recorder) MMT_MUST_CHECK;

/* Appends the descendants of these processes, without the processes themselves and without mmtrace. Descendants of an
 * exited process have another parent and are not found. */
struct mmt_error *children_list_below(const pid_t *roots, size_t root_count, proc_pids *below) MMT_MUST_CHECK;

/* Counts the living children of targets that are not recorded, writes that into the recording, which has begun, and
 * warns the user. */
struct mmt_error *children_note_unrecorded(struct recorder *recorder) MMT_MUST_CHECK;
