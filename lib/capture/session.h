/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What the recorder writes around the records: the head of the file, its closing sections, marks and metadata that
 * is written while recording goes on.
 */
#ifndef CAPTURE_SESSION_H
#define CAPTURE_SESSION_H

#include "base/buffer.h"
#include "base/errors.h"
#include "capture/recorder.h"

/* The head of the file: event attributes and the sections that are known when recording starts. */

/* Gives them to the writer; recorder->start_ns is set. */
struct mmt_error *head_add(struct recorder *recorder) MMT_MUST_CHECK;

/* The tail of the file: what is read when recording has stopped, as sections behind the events. */

/*
 * `lost`: by event. Reads residency of the final mappings; perf maps and build-ids have been collected before. A
 * section that fails costs no other: it is warned of, or left to recorder_keep_failure().
 */
void tail_add(struct recorder *recorder, const uint64_t *lost);

/* Records that the recorder itself puts among those of the kernel, of the kernel's form. */

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

/* What the recorder itself has to say in the course of a recording: marks of the user, resident sizes, the
 * state of large stack dumps. */

/* A mark for each time that waits in options->mark_fd. */
struct mmt_error *notes_take_marks(struct recorder *recorder) MMT_MUST_CHECK;

/* The resident size of a process; all processes' sizes of one time have the same number of the reading. */
struct mmt_error *notes_add_resident(struct recorder *recorder, pid_t pid, uint64_t time_ns, uint64_t bytes,
				 uint64_t reading) MMT_MUST_CHECK;

/* How many children the process had, when recording began, that are not recorded. */
/* When the process started, in nanoseconds since the machine did. */
struct mmt_error *notes_add_started(struct recorder *recorder, pid_t pid, uint64_t time_ns,
				    uint64_t boot_ns) MMT_MUST_CHECK;
struct mmt_error *notes_add_unrecorded_children(struct recorder *recorder, pid_t pid, uint64_t count) MMT_MUST_CHECK;

/* Notes whether large stack dumps are on from now on. */
struct mmt_error *notes_large_dumps(struct recorder *recorder, uint64_t now_ns) MMT_MUST_CHECK;

/*
 * Perf maps, jitdumps and build-ids as they grow, in pieces among the records: of a recorder that is killed they are
 * the only ones. Every byte is written once, soon after it came, INCREMENTAL_METADATA_BYTES_MAX in all.
 */

#define INCREMENTAL_METADATA_TICK_BYTES (4u << 20) /* of all files together */

/* What has come since the last time, INCREMENTAL_METADATA_TICK_BYTES at most: the rest waits for the next. Keeps
 * up with the rings. Failures of writing are kept in the recorder; what cannot be read is left for the
 * end. Errors: those of reading the rings, and no memory. */
struct mmt_error *incremental_metadata_write(struct recorder *recorder) MMT_MUST_CHECK;

#endif
