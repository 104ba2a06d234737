/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Writes a recording. Order of calls: create, add attributes and early sections, (write the head,) start, append and
 * end rounds, add late sections, finish; destroy at any time. */
#pragma once

#include "base/compression.h"
#include "base/vector.h"
#include "trace/format/format.h"
#include "trace/write/output-file.h"

#define RECORD_BYTES_MAX (UINT16_MAX & ~7u)
#define FRAME_RECORD_BYTES (RECORD_BYTES_MAX - RECORD_HEADER_BYTES - 16) /* payload of one record, with padding */
#define FRAME_BYTES_LEAST (256u << 10)

struct writer_attribute {
	struct perf_event_attr attr;
	char *name;
	VECTOR(uint64_t) ids;
};

struct writer_section {
	enum format_feature feature;
	uint8_t *data; /* NULL if it is in the preamble, already written */
	uint64_t offset, size;
};

struct writer {
	struct output_file file;
	bool has_head;
	bool plain; /* records are not compressed, for tools that cannot read such: set it before the head is written */
	VECTOR(struct writer_attribute) attributes;
	VECTOR(struct writer_section) sections;
	struct compressor compressor;
	struct buffer pending; /* complete records, not compressed yet */
	size_t frame_bytes;    /* current size of a frame */
	struct buffer scratch; /* one compressed frame */
	struct buffer output;  /* complete records of the file, not written yet */
	uint64_t attributes_offset, data_offset, compressed_offset;
	uint64_t file_bytes;	      /* bytes written; always ends with a complete record */
	uint64_t last_push_offset;    /* offset of the last write */
	uint64_t bytes_in, bytes_out; /* of compressed records */
	bool round_is_empty;
	bool removed; /* another process removed the file, or the reader of the pipe exited; already reported */
};

/* "-": the records go to standard output, in perf's pipe format; mmtrace-file(5) lists what it omits. Otherwise check
 * that `path` can be written and prepare a file beside it (0600, no symlink followed). Existing files are not changed
 * before writer_start(). */
struct mmt_error *writer_create(const char *path, struct writer **writer_ret) MMT_MUST_CHECK;

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

/* Closes; a file never started is removed. Accepts NULL. */
void writer_destroy(struct writer *writer);

/* Choose the size of the next frame, after one limited to `frame_bytes` held `size` bytes and took `compressed`. */
size_t writer_choose_frame_bytes(size_t frame_bytes, size_t size, size_t compressed);
