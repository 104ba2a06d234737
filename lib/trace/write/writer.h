/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Writes a recording. Order of calls: create, add attributes and early sections, (write the head,) start, append and
 * end rounds, add late sections, finish; destroy at any time. */
#pragma once

#include "base/bytes.h"
#include "trace/format/format.h"
#include "trace/write/output-file.h"

#define RECORD_BYTES_MAX (UINT16_MAX & ~7u)
#define FRAME_RECORD_BYTES (RECORD_BYTES_MAX - RECORD_HEADER_BYTES - 16) /* payload of one record, with padding */
#define FRAME_BYTES_LEAST (256u << 10)

struct writer;

/* "-": the records go to standard output, in perf's pipe format; mmtrace-file(5) lists what it omits. Otherwise check
 * that `path` can be written and prepare a file beside it (0600, no symlink followed). Existing files are not changed
 * before writer_start(). */
struct mmt_error *writer_create(const char *path, struct writer **writer_ret) MMT_MUST_CHECK;

/* Write uncompressed records, for tools that cannot read compressed ones. Call this before the head is written. */
void writer_keep_plain(struct writer *writer);

/* `name` is for perf ("syscalls:sys_exit_mmap"); everything is copied. Call this before the head is written. */
struct mmt_error *writer_add_attribute(struct writer *writer, const struct perf_event_attr *attribute, const char *name,
				       const uint64_t *ids, size_t id_count) MMT_MUST_CHECK;

/* Add a feature section, copied. Before the head is written it goes into the preamble, later to the end. The writer
 * itself makes EVENT_DESC and COMPRESSED. */
struct mmt_error *writer_add_section(struct writer *writer, enum format_feature feature, const void *data,
				     size_t size) MMT_MUST_CHECK;

/* The same with the content of the buffer, which is moved: the buffer is empty afterwards. */
struct mmt_error *writer_take_section(struct writer *writer, enum format_feature feature,
				      struct buffer *buffer) MMT_MUST_CHECK;

/* Append a text in the format of perf's sections: its size, the text with its NUL, padding. */
void writer_put_text(struct buffer *buffer, const char *text);

/* Write the head into the unnamed file. */
struct mmt_error *writer_write_head(struct writer *writer) MMT_MUST_CHECK;

/* Write the head if that was not done yet; then an existing PATH becomes PATH.old and the new file takes its name. */
struct mmt_error *writer_start(struct writer *writer) MMT_MUST_CHECK;

/* Append one or more complete records, 8-aligned in size, of at most FRAME_BYTES. Buffered; compressed into frames. */
struct mmt_error *writer_append(struct writer *writer, const void *records, size_t size) MMT_MUST_CHECK;

/* End a round: all rings have been drained up to a head read in this round. The round is written as a unit unless it
 * is very large. If a killed recorder left only a part of it, rings that were read first would have later calls than
 * others. */
struct mmt_error *writer_end_round(struct writer *writer) MMT_MUST_CHECK;

/* Push buffered records to the kernel, for a killed recorder. Fails if the file has been removed. */
struct mmt_error *writer_flush(struct writer *writer) MMT_MUST_CHECK;

/* Flush, write the late sections and make the header valid. */
struct mmt_error *writer_finish(struct writer *writer) MMT_MUST_CHECK;

/* Current size of the file; 0: it has been removed. */
uint64_t writer_bytes(const struct writer *writer);

/* The file, for what output-file.h can do with it. */
struct output_file *writer_file(struct writer *writer);

/* Closes; a file never started is removed. Accepts NULL. */
void writer_destroy(struct writer *writer);

/* Choose the size of the next frame, after one limited to `frame_bytes` held `size` bytes and took `compressed`. */
size_t writer_choose_frame_bytes(size_t frame_bytes, size_t size, size_t compressed);
