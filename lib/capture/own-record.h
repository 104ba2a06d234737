/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Records of the recorder's own among those of the kernel: PERF_RECORD_TEXT_POKE, of which perf makes nothing. */
#ifndef CAPTURE_OWN_RECORD_H
#define CAPTURE_OWN_RECORD_H

#include "base/buffer.h"
#include "base/error.h"
#include "capture/recorder.h"

/* What the caller puts into the buffer from here on is the record's content. */
void own_record_begin(struct buffer *record);

/* Ends the record and appends it to the recording; `id` tells its kind, NAME_PIECE_ID or NOTE_ID. The buffer is done
 * with, also on failure: the content was too large, or there was no memory. */
struct mmt_error *own_record_append(struct recorder *recorder, struct buffer *record, uint64_t id, pid_t pid,
				    uint64_t time_ns) MMT_MUST_CHECK;

#endif
