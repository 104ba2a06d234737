/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The state of the writer, for writer.c and its tests. */
#ifndef TRACE_WRITE_WRITER_STATE_H
#define TRACE_WRITE_WRITER_STATE_H

#include "base/bytes.h"
#include "base/compression.h"
#include "base/vector.h"
#include "trace/write/output-file.h"
#include "trace/write/writer.h"

#define RECORD_BYTES_MAX (UINT16_MAX & ~7u)
#define FRAME_RECORD_BYTES (RECORD_BYTES_MAX - RECORD_HEADER_BYTES - 16) /* payload of one record, with padding */
#define FRAME_BYTES_LEAST (256u << 10)
#define PUSH_BYTES (64u << 10)	 /* output collected before complete rounds of it are written */
#define OUTPUT_BYTES (16u << 20) /* a larger round is written in parts */

/* PERF_ATTR_SIZE_VER7, which every perf since MMAP2 with build-ids can read; older versions refuse a longer one. */
#define ATTRIBUTE_BYTES 128
_Static_assert(sizeof(struct perf_event_attr) >= ATTRIBUTE_BYTES, "kernel headers too old");

struct attribute {
	struct perf_event_attr attr;
	char *name;
	VECTOR(uint64_t) ids;
};

struct section {
	enum format_feature feature;
	uint8_t *data; /* NULL if it is in the preamble, already written */
	uint64_t offset, size;
};

struct writer {
	struct output_file file;
	bool has_head;
	bool plain; /* records are not compressed */
	VECTOR(struct attribute) attributes;
	VECTOR(struct section) sections;
	struct compressor *compressor;
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

/* Choose the size of the next frame, after one limited to `frame_bytes` held `size` bytes and took `compressed`. */
size_t writer_choose_frame_bytes(size_t frame_bytes, size_t size, size_t compressed);

#endif
