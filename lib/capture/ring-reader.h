/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The ring reader: reads the ring buffers into the file. It parses only what the recorder itself needs to know. */
#ifndef CAPTURE_RING_READER_H
#define CAPTURE_RING_READER_H

#include <pthread.h>

#include "base/errors.h"
#include "capture/recorder.h"

/*
 * Read every ring up to its present head. Nothing is written while recorder->writing is unset or for records before
 * start_ns; records after stop_ns are skipped. Process events (fork, exec, exit, mapping) are queued: the process
 * table, modules, jitdumps and JIT code do not change, and no job is called (test/lint/reentry.sh checks both). So a
 * job may read the rings at any point.
 */
struct mmt_error *ring_reader_read(struct recorder *recorder) MMT_MUST_CHECK;

/* Call this between the steps of slow work: it reads the rings when one is filling and pauses for the targets when a
 * pause is due. */
struct mmt_error *ring_reader_keep_up(struct recorder *recorder) MMT_MUST_CHECK;

/*
 * Call these around a system call that may take long, such as one that waits for the target's mmap_lock: threads that
 * hold the lock may get no CPU for seconds. A thread of the ring reader reads filling rings in the meantime. Between
 * the two calls, use only state that reading the rings does not touch: no writer, messages, events or rings. errno is
 * preserved.
 */
void ring_reader_begin_wait(struct recorder *recorder);
void ring_reader_end_wait(struct recorder *recorder);
/* Ends the thread. Its error goes to recorder_keep_failure(). */
void ring_reader_end(struct recorder *recorder);

/* Reads up to `size` bytes from the start of a file in steps, and keeps up with the rings. *size_ret: bytes read. A
 * read error counts as the end of the file. */
struct mmt_error *ring_reader_read_file(struct recorder *recorder, int fd, uint8_t *data, size_t size,
					size_t *size_ret) MMT_MUST_CHECK;

/* The parts of a sample behind the fixed fields. Pure, for tests. */
struct ring_reader_sample {
	uint64_t callchain_count;
	size_t registers_offset; /* into the record; 0: none */
	size_t stack_offset;	 /* into the record */
	uint64_t stack_bytes;	 /* reserved in the record; 0: none */
	uint64_t copied_bytes;	 /* bytes copied by the kernel */
};

/* False: the record does not have the layout that the attribute asks for. */
bool drain_parse_sample(const struct perf_event_attr *attribute, const void *record, size_t size,
			struct ring_reader_sample *sample_ret);

/*
 * Copies the sample with only the first `kept_bytes` of its stack dump, and a few zeros that mark the end of the stack:
 * most of the space that a large dump reserves is unused. `copy` has room for the complete record. Returns the new
 * size.
 */
size_t drain_cut_dump(const void *record, const struct ring_reader_sample *sample, size_t kept_bytes, uint8_t *copy);

#endif
