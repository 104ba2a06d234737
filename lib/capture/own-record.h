/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Records that the recorder itself puts among those of the kernel, of the kernel's form. */
#ifndef CAPTURE_OWN_RECORD_H
#define CAPTURE_OWN_RECORD_H

#include "base/buffer.h"
#include "base/error.h"
#include "capture/recorder.h"

/* Begins a record of the kernel's `type` in a buffer, whose content is forgotten. */
void own_record_begin(struct buffer *record, uint32_t type, uint16_t misc);

/* Ends it with what sample_id_all puts behind the content, and appends it to the recording. */
struct mmt_error *own_record_append(struct recorder *recorder, struct buffer *record, pid_t pid, pid_t tid,
				    uint64_t time_ns, uint64_t id) MMT_MUST_CHECK;

/*
 * The same in a buffer of its own for bytes of our own: PERF_RECORD_TEXT_POKE, of which perf makes nothing. What the
 * caller puts into the buffer between the two is the content; `id` tells its kind, NAME_PIECE_ID or NOTE_ID. The buffer
 * is done with in the end, also on failure: the content was too large, or there was no memory.
 */
void own_record_begin_bytes(struct buffer *record);
struct mmt_error *own_record_append_bytes(struct recorder *recorder, struct buffer *record, pid_t pid, uint64_t time_ns,
					  uint64_t id) MMT_MUST_CHECK;

#endif
