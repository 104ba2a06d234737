/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Snapshots: reads /proc/PID/maps and writes the lines, with the time of each read(), into the recording. */
#ifndef CAPTURE_PROC_SNAPSHOT_H
#define CAPTURE_PROC_SNAPSHOT_H

#include "base/errors.h"
#include "capture/recorder.h"

/*
 * Take a snapshot of a process; a process that is gone gives an empty one, or none. Each line has the time before
 * the read that delivered it. Keeps up with the rings. *complete_ret, which may be NULL: whether the
 * snapshot is complete and usable, which it is not if the process ended or executed a program meanwhile.
 */
struct mmt_error *snapshot_take(struct recorder *recorder, pid_t pid, enum snapshot_kind kind,
				bool *complete_ret) MMT_MUST_CHECK;

/*
 * Names of the threads, as COMM records. With the identifier of an event that was really opened
 * they would pass for the first record of that root, and the thread's own records for copies of another.
 */
struct mmt_error *snapshot_name_threads(struct recorder *recorder, pid_t pid) MMT_MUST_CHECK;

#endif
