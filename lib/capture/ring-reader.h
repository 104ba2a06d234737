/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The ring reader: drains the ring buffers into the file. It parses only what the recorder itself needs to know. */
#ifndef CAPTURE_RING_READER_H
#define CAPTURE_RING_READER_H

#include <pthread.h>

#include "base/errors.h"
#include "capture/recorder.h"

/*
 * Read every ring up to its present head. While recorder->writing is unset, and for records before start_ns, nothing is
 * written; records after stop_ns are skipped. What records tell about processes goes into the queue of process events:
 * the process table, modules, jitdumps and JIT code do not change.
 */
struct mmt_error *ring_reader_drain(struct recorder *recorder) MMT_MUST_CHECK;

/* For slow work, between its pieces: read the rings when one is filling; pause for the targets when that is due. */
struct mmt_error *ring_reader_keep_up(struct recorder *recorder) MMT_MUST_CHECK;

/*
 * Around a system call that may take long, such as one that waits for the target's mmap_lock: threads that hold it may
 * get no CPU for seconds. Meanwhile a thread of the ring reader reads rings that are filling. Between the two, nothing
 * of the recorder may be used but what reading rings leaves alone: no writer, no messages, no events or rings. errno is
 * kept.
 */
void ring_reader_begin_wait(struct recorder *recorder);
void ring_reader_end_wait(struct recorder *recorder);
/* Ends the thread. What it could not do is left to recorder_keep_failure(). */
void ring_reader_end(struct recorder *recorder);

/* Reads up to `size` bytes from the start of a file, in pieces; *size_ret: how many. A read error counts as the end of
 * the file. Keeps up with the rings. */
struct mmt_error *ring_reader_read_file(struct recorder *recorder, int fd, uint8_t *data, size_t size,
					size_t *size_ret) MMT_MUST_CHECK;

/* What the sample's bytes behind the fixed fields hold. Pure, for tests. */
struct ring_reader_sample {
	uint64_t callchain_count;
	size_t registers_offset; /* into the record; 0: none */
	size_t stack_offset;	 /* into the record */
	uint64_t stack_bytes;	 /* reserved in the record; 0: none */
	uint64_t copied_bytes;	 /* of them copied by the kernel */
};

/* False: the record is not laid out as the attribute says. */
bool drain_parse_sample(const struct perf_event_attr *attribute, const void *record, size_t size,
			struct ring_reader_sample *sample_ret);

/*
 * Copies the sample with only the first `kept_bytes` of its stack dump, and a few zeros that mark the end of the stack:
 * most of the space that a large dump reserves is unused. `copy` has room for the complete record. Returns the new
 * size.
 */
size_t drain_cut_dump(const void *record, const struct ring_reader_sample *sample, size_t kept_bytes, uint8_t *copy);

#endif
