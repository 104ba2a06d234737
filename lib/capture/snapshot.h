/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Snapshots: reads /proc/PID/maps and writes each line into the recording, with the time of the read() that returned
 * it. */
#ifndef CAPTURE_SNAPSHOT_H
#define CAPTURE_SNAPSHOT_H

#include "capture/recorder/recorder.h"

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

#endif
