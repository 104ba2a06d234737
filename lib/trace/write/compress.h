/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Compresses records with zstd, in complete frames. */
#ifndef TRACE_WRITE_COMPRESS_H
#define TRACE_WRITE_COMPRESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buffer.h"
#include "base/errors.h"

struct compressor;
struct decompressor;

struct mmt_error *compressor_create(struct compressor **compressor_ret) MMT_MUST_CHECK;
/* From now on what is compressed are records of a kernel's ring, not text or programs. */
void compressor_expect_records(struct compressor *compressor);
void compressor_destroy(struct compressor *compressor);
/* One complete zstd frame, appended to `buffer`. */
struct mmt_error *compressor_frame(struct compressor *compressor, const void *data, size_t size,
				   struct buffer *buffer) MMT_MUST_CHECK;

/* The same in at most `maximum` bytes. False in `fits_ret`: it takes more, and nothing is appended. */
struct mmt_error *compressor_frame_within(struct compressor *compressor, const void *data, size_t size, size_t maximum,
					  struct buffer *buffer, bool *fits_ret) MMT_MUST_CHECK;

struct mmt_error *decompressor_create(struct decompressor **decompressor_ret) MMT_MUST_CHECK;
void decompressor_destroy(struct decompressor *decompressor);
/* How much a frame that is to be fed says that it holds; 0: it does not say, or more than `maximum`. */
size_t compress_expect_content(const void *data, size_t size, size_t maximum);
/* The next bytes of a zstd stream: perf continues one stream over many records, we end it in each. Appends to `buffer`,
 * whose maximum bounds it. */
struct mmt_error *decompressor_feed(struct decompressor *decompressor, const void *data, size_t size,
				    struct buffer *buffer) MMT_MUST_CHECK;
/* In the middle of a frame, which the next bytes continue. */
bool decompressor_is_inside(const struct decompressor *decompressor);
/* One frame that says how much it holds, and nothing behind it. False: it is none such, or damaged, or there is no
 * memory; then nothing is appended, and decompressor_feed() will return the error. Not inside of a frame. */
bool decompressor_frame(struct decompressor *decompressor, const void *data, size_t size, struct buffer *buffer);

const char *compress_library_version(void);

#endif
