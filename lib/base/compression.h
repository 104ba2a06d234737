/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Compression: zstd frames for recordings, and zlib for gzip files. */
#pragma once

#include <stdio.h>

#include "base/bytes.h"

/* Compresses records with zstd, in complete frames. Zeroed: may be deinitialised. */
struct compressor {
	struct ZSTD_CCtx_s *context;
};

struct decompressor {
	struct ZSTD_DCtx_s *stream;
	bool inside; /* inside a frame that continues in the next bytes */
};

struct mmt_error *compressor_init(struct compressor *compressor) MMT_MUST_CHECK;
/* From now on the input consists of records from a ring, not of text or modules. */
void compressor_expect_records(struct compressor *compressor);
void compressor_deinit(struct compressor *compressor);
/* Appends one complete zstd frame to `buffer`. */
struct mmt_error *compressor_frame(struct compressor *compressor, const void *data, size_t size,
				   struct buffer *buffer) MMT_MUST_CHECK;

/* The same in at most `maximum` bytes. *fits_ret is false if that is not enough; then nothing is appended. */
struct mmt_error *compressor_frame_within(struct compressor *compressor, const void *data, size_t size, size_t maximum,
					  struct buffer *buffer, bool *fits_ret) MMT_MUST_CHECK;

struct mmt_error *decompressor_init(struct decompressor *decompressor) MMT_MUST_CHECK;
void decompressor_deinit(struct decompressor *decompressor);
/* Decompresses the next bytes of a zstd stream: perf continues one stream over many records, mmtrace ends it in each.
 * Appends to `buffer`, whose maximum limits the size. */
struct mmt_error *decompressor_feed(struct decompressor *decompressor, const void *data, size_t size,
				    struct buffer *buffer) MMT_MUST_CHECK;

/* Decompresses one zstd frame that has exactly this size. False: it is damaged, or has another size. */
bool compress_expand_frame(const void *data, size_t size, void *expanded, size_t expanded_size);

/* The CRC-32 of zlib; `sum` is that of the bytes before, or 0. */
uint32_t compress_checksum(uint32_t sum, const void *data, size_t size);

/* A stream that compresses its content into `below`, which stays open when this stream is closed. The time in the
 * header is 0, so that equal contents give equal files. NULL: out of memory. An error of `below` is an error of this
 * stream; fclose() reports the last one. */
FILE *gzip_open(FILE *below);

const char *compress_library_version(void);
