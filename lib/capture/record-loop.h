/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The record loop: drains the rings, follows processes and reads snapshots, until recording stops. */
#ifndef CAPTURE_RECORD_LOOP_H
#define CAPTURE_RECORD_LOOP_H

#include "base/errors.h"
#include "capture/recorder.h"

/* Record until a stop condition is met, which is stored in summary.end. Write errors are kept in
 * recorder->write_error. */
struct mmt_error *loop_run(struct recorder *recorder) MMT_MUST_CHECK;

/* Takes the last snapshots with the events enabled, then disables the events and drains the last records, up to
 * recorder->stop_ns. Failures go to recorder_keep_failure(). */
void loop_stop(struct recorder *recorder);

/* Take the snapshots and build-ids that drained records asked for, and look after processes that ended. */
struct mmt_error *loop_serve(struct recorder *recorder) MMT_MUST_CHECK;

#endif
