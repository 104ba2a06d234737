/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What the recorder writes besides the kernel's records: the head of the file, its closing sections, marks and
 * incremental metadata.
 */
#ifndef CAPTURE_SESSION_H
#define CAPTURE_SESSION_H

#include "base/buffer.h"
#include "base/errors.h"
#include "capture/recorder.h"

/* The head of the file: event attributes and the sections that are known when recording starts. */

/* Hands the head to the writer. recorder->start_ns must be set. */
struct mmt_error *head_add(struct recorder *recorder) MMT_MUST_CHECK;

/* The tail of the file: sections behind the events, collected when recording has stopped. */

/*
 * `lost`: one count per event. Reads the residency of the final mappings; perf maps and build-ids must have been
 * collected. A section that fails does not affect the others: optional ones cause a warning, others call
 * recorder_keep_failure().
 */
void tail_add(struct recorder *recorder, const uint64_t *lost);

/* Records made by the recorder, in the format of kernel records. */

/* Begins a record of the kernel's `type` in the buffer, whose content is discarded. */
void own_record_begin(struct buffer *record, uint32_t type, uint16_t misc);

/* Ends the record with the sample_id_all trailer and appends it to the recording. */
struct mmt_error *own_record_append(struct recorder *recorder, struct buffer *record, pid_t pid, pid_t tid,
				    uint64_t time_ns, uint64_t id) MMT_MUST_CHECK;

/*
 * The same for mmtrace's own data, in a PERF_RECORD_TEXT_POKE record, which perf ignores in user space. The caller puts
 * the content into the buffer between the two calls; `id` is its kind, NAME_PIECE_ID or NOTE_ID.
 * own_record_append_bytes() always frees the buffer, even if it fails because the content is too large or memory is
 * short.
 */
void own_record_begin_bytes(struct buffer *record);

struct mmt_error *own_record_append_bytes(struct recorder *recorder, struct buffer *record, pid_t pid, uint64_t time_ns,
					  uint64_t id) MMT_MUST_CHECK;

/* Notes that the recorder makes during a recording: marks of the user, RSS readings, the state of large stack dumps. */

/* Add a mark for each timestamp that is waiting in options->mark_fd. */
struct mmt_error *notes_take_marks(struct recorder *recorder) MMT_MUST_CHECK;

/* The RSS of a process. All readings taken at the same time have the same number `reading`. */
struct mmt_error *notes_add_resident(struct recorder *recorder, pid_t pid, uint64_t time_ns, uint64_t bytes,
				 uint64_t reading) MMT_MUST_CHECK;

/* How many unrecorded children a process had when recording began: notes_add_unrecorded_children(). */
/* When a process started, in nanoseconds since boot. */
struct mmt_error *notes_add_started(struct recorder *recorder, pid_t pid, uint64_t time_ns,
				    uint64_t boot_ns) MMT_MUST_CHECK;
struct mmt_error *notes_add_unrecorded_children(struct recorder *recorder, pid_t pid, uint64_t count) MMT_MUST_CHECK;

/* Notes whether large stack dumps are on from now on. */
struct mmt_error *notes_large_dumps(struct recorder *recorder, uint64_t now_ns) MMT_MUST_CHECK;

/*
 * Incremental metadata: perf maps, jitdumps and build-ids are written between the records as they grow. If the recorder
 * is killed, the file has no other copy. Every byte is written once, soon after it appeared, up to
 * INCREMENTAL_METADATA_BYTES_MAX in total.
 */

#define INCREMENTAL_METADATA_TICK_BYTES (4u << 20) /* of all files together */

/* Write what was added since the last call, at most INCREMENTAL_METADATA_TICK_BYTES; the next call continues. Keeps up
 * with the rings. Write failures are kept in the recorder, and unreadable files are left for the end. Errors: reading
 * the rings failed, or out of memory. */
struct mmt_error *incremental_metadata_write(struct recorder *recorder) MMT_MUST_CHECK;

#endif
