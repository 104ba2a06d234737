/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What the recorder itself has to say in the course of a recording: marks of the user, resident sizes, the
 * state of large stack dumps. */
#ifndef CAPTURE_NOTES_H
#define CAPTURE_NOTES_H

#include "base/error.h"
#include "capture/recorder.h"

/* A mark for each time that waits in options->mark_fd. */
struct mmt_error *notes_take_marks(struct recorder *recorder) MMT_MUST_CHECK;

/* How much of each process is in memory, together one reading. */
struct mmt_error *notes_read_resident(struct recorder *recorder) MMT_MUST_CHECK;

/* Notes whether large stack dumps are on from now on. */
struct mmt_error *notes_large_dumps(struct recorder *recorder, uint64_t now_ns) MMT_MUST_CHECK;

#endif
