/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Writing a recording. Order of use: create, add attributes and early sections, (write the head,) start, append and end
 * rounds, add late sections, finish; destroy at any time.
 */
#ifndef TRACE_WRITE_WRITER_H
#define TRACE_WRITE_WRITER_H

#include <linux/perf_event.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buffer.h"
#include "base/errors.h"
#include "trace/format/format.h"
#include "trace/write/output-file.h"

struct writer;

/*
 * "-": the records go to standard output, in perf's pipe format; mmtrace-file(5) says what that leaves out. Otherwise
 * check that `path` can be written and prepare a file beside it (0600, no symlink followed). Nothing that exists is
 * touched before writer_start().
 */
struct mmt_error *writer_create(const char *path, struct writer **writer_ret) MMT_MUST_CHECK;

/* Take the name of an existing file without keeping that as PATH.old. */
void writer_replace(struct writer *writer);

/* How long the reader of a stream is waited for: see output_file_limit_waiting(). */
void writer_limit_waiting(struct writer *writer, int stop_fd, uint64_t until_ns);

/* Records as they are, for tools that cannot read compressed ones. Before the head. */
void writer_keep_plain(struct writer *writer);

/* `name` for perf ("syscalls:sys_exit_mmap"); everything is copied. Before the head. */
struct mmt_error *writer_add_attribute(struct writer *writer, const struct perf_event_attr *attribute, const char *name,
				       const uint64_t *ids, size_t id_count) MMT_MUST_CHECK;

/* A feature section, copied: before the head it goes into the preamble, after it to the end. EVENT_DESC and
 * COMPRESSED are made by the writer. */
struct mmt_error *writer_add_section(struct writer *writer, enum format_feature feature, const void *data,
				     size_t size) MMT_MUST_CHECK;

/* The same with what the buffer holds, which is not copied: the buffer is empty afterwards. */
struct mmt_error *writer_take_section(struct writer *writer, enum format_feature feature,
				      struct buffer *buffer) MMT_MUST_CHECK;

/* A text as perf's sections have it: its size, the text with its NUL, padding. */
void writer_put_text(struct buffer *buffer, const char *text);

/* Write the head into the file that has no name yet. */
struct mmt_error *writer_write_head(struct writer *writer) MMT_MUST_CHECK;

/* Write the head, unless it is; then an existing PATH becomes PATH.old and the new file takes its name. */
struct mmt_error *writer_start(struct writer *writer) MMT_MUST_CHECK;

/*
 * Records lie in frames with others of their stream, in the order in which they come: next to one of the same event,
 * nothing of a record may be new but its time. Records of one event must not take turns between streams. STREAM_OTHERS:
 * what is no sample, and whatever is written in the order of time.
 */
enum { STREAM_OTHERS, STREAM_EVENTS, WRITER_STREAMS = 32 };

/* Of the samples of an event with this number; some share one where there are more than 31 events. */
unsigned writer_event_stream(size_t number);

/* Whole records, one or many, 8-aligned in size. Buffered; compressed into frames. */
struct mmt_error *writer_append(struct writer *writer, unsigned stream, const void *records,
				size_t size) MMT_MUST_CHECK;

/* One record, with zeros in place of `hidden_bytes` from `hidden_offset` on. */
struct mmt_error *writer_append_hiding(struct writer *writer, unsigned stream, const void *record, size_t size,
				       size_t hidden_offset, size_t hidden_bytes) MMT_MUST_CHECK;

/*
 * All rings have been drained up to a head read in this round. It is written as a whole, unless it is very large: of a
 * part, which a recorder that is killed leaves behind, rings that were read first would have later calls than others.
 */
struct mmt_error *writer_end_round(struct writer *writer) MMT_MUST_CHECK;

/* Push buffered records to the kernel, so that a killed recorder loses nothing before this. Fails when the file has
 * been removed meanwhile. */
struct mmt_error *writer_flush(struct writer *writer) MMT_MUST_CHECK;

/* Flush, write the late sections and make the header valid. */
struct mmt_error *writer_finish(struct writer *writer) MMT_MUST_CHECK;

/* Bytes of the file so far; 0: it has been removed. */
uint64_t writer_bytes(const struct writer *writer);

/* See output_file_find(). */
enum output_place writer_find(const struct writer *writer);

/* When it started: did an existing file become PATH.old, and did that take the place of another one? */
bool writer_has_kept_earlier(const struct writer *writer, bool *replaced_ret);

/* What is written survives a crash of the machine. After the end. */
struct mmt_error *writer_sync(struct writer *writer) MMT_MUST_CHECK;

/* Closes; a file never started is removed. Accepts NULL. */
void writer_destroy(struct writer *writer);

#endif
