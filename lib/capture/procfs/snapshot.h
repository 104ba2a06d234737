/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Snapshots: reads /proc/PID/maps and writes the lines, with the time of each read(), into the recording. */
#ifndef CAPTURE_PROCFS_SNAPSHOT_H
#define CAPTURE_PROCFS_SNAPSHOT_H

#include "base/errors.h"
#include "capture/recorder.h"

/*
 * Take a snapshot of a process. If the process is gone, the snapshot is empty or missing. Each line has the time before
 * the read() that returned it. Keeps up with the rings. *complete_ret, which may be NULL: whether the snapshot is
 * complete and usable, which it is not if the process exited or called exec meanwhile.
 */
struct mmt_error *snapshot_take(struct recorder *recorder, pid_t pid, enum snapshot_kind kind,
				bool *complete_ret) MMT_MUST_CHECK;

/*
 * Write the names of the threads as COMM records. If they had the identifier of a real event, the reader would take
 * them for the first record of that root and drop the thread's own records as copies.
 */
struct mmt_error *snapshot_name_threads(struct recorder *recorder, pid_t pid) MMT_MUST_CHECK;

#endif
