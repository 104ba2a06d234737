/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The state of the writer, shared by writer.c and writer-sections.c. */
#ifndef TRACE_WRITE_WRITER_STATE_H
#define TRACE_WRITE_WRITER_STATE_H

#include <stdbool.h>

#include "base/buffer.h"
#include "base/vector.h"
#include "trace/write/compress.h"
#include "trace/write/output-file.h"
#include "trace/write/writer.h"

#define RECORD_HEADER_BYTES sizeof(struct perf_event_header)
#define HEAD_BYTES_MAX (256u << 20) /* everything before the data */
#define RECORD_BYTES_MAX (UINT16_MAX & ~7u)
#define FRAME_RECORD_BYTES (RECORD_BYTES_MAX - RECORD_HEADER_BYTES - 16) /* what fits into one, with padding */
#define FRAME_BYTES_LEAST (256u << 10)
#define JOINED_BYTES (64u << 10) /* a stream with less shares a frame with others at the end of a round */
#define PENDING_BYTES (FRAME_BYTES + (2u << 20)) /* of all streams; then the fullest is emptied */
#define PUSH_BYTES (64u << 10)			 /* so much output is collected before whole rounds of it are written */
#define OUTPUT_BYTES (16u << 20)		 /* a round that is larger is written in parts */

/* Of the attribute as every perf that knows mmap2 with build-ids or later can read it (PERF_ATTR_SIZE_VER7): a longer
 * one is refused by older ones. */
#define ATTRIBUTE_BYTES 128
_Static_assert(sizeof(struct perf_event_attr) >= ATTRIBUTE_BYTES, "kernel headers too old");

struct attribute {
	struct perf_event_attr attr;
	char *name;
	VECTOR(uint64_t) ids;
};

struct section {
	enum format_feature feature;
	uint8_t *data; /* NULL when it lies in the preamble, already written */
	uint64_t offset, size;
};

struct compression_stream {
	struct buffer pending; /* whole records, not compressed yet */
	size_t frame_bytes;    /* so many make a frame, for now */
	bool joined;	       /* records of other streams are among them */
};

struct writer {
	struct output_file file;
	bool has_head;
	bool plain; /* records are not compressed */
	VECTOR(struct attribute) attributes;
	VECTOR(struct section) sections;
	struct compressor *compressor;
	struct compression_stream streams[WRITER_STREAMS];
	size_t pending_bytes;  /* of all streams */
	struct buffer scratch; /* one compressed frame */
	struct buffer output;  /* whole records of the file, not written yet */
	uint64_t attributes_offset, data_offset, compressed_offset;
	uint64_t file_bytes;	      /* written, always ends with a whole record */
	uint64_t last_push_offset;    /* where the last write began */
	uint64_t bytes_in, bytes_out; /* of compressed records */
	bool round_is_empty;
	bool removed; /* the file, by somebody else, or a pipe's reader: that was an error already */
};

/* The next frame is to hold so many bytes, where one of at most `frame_bytes` held `size` and took `compressed`. */
size_t writer_choose_frame_bytes(size_t frame_bytes, size_t size, size_t compressed);

void writer_put_record_header(struct buffer *buffer, uint32_t type, size_t size);

/* Where the file is a stream: see writer_write_head() and writer_finish(). */
struct mmt_error *writer_write_stream_head(struct writer *writer) MMT_MUST_CHECK;
struct mmt_error *writer_finish_stream(struct writer *writer) MMT_MUST_CHECK;

#endif
