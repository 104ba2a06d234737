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

/*
 * Takes a snapshot of a process. Each line gets the time before the read() that returned it. If the process is gone,
 * the snapshot is empty or missing. Lets the ring reader work in between. *complete_ret, which may be NULL: the
 * snapshot is complete and usable; it is not if the process exited or called exec in the meantime.
 */
struct mmt_error *snapshot_take(struct recorder *recorder, struct traced_process *process, enum snapshot_kind kind,
				bool *complete_ret) MMT_MUST_CHECK;

/*
 * Writes the names of the threads as COMM records. Their identifier is not that of a real event: otherwise the reader
 * would treat them as the first record of that thread's events, and drop the thread's own records as duplicates.
 * *alive_ret: at least one thread has a name and does not exit.
 */
struct mmt_error *snapshot_name_threads(struct recorder *recorder, pid_t pid, bool *alive_ret) MMT_MUST_CHECK;
