// SPDX-License-Identifier: LGPL-2.1-or-later
#include "base/compression.h"

#include <stdlib.h>
#include <zlib.h>
#define ZSTD_STATIC_LINKING_ONLY /* ZSTD_c_literalCompressionMode */
#include <zstd.h>
#include <zstd_errors.h>

/* The fastest level: targets do not wait for the recorder, but share the CPUs with it. */
#define LEVEL 1

/* Records repeat long sequences with small differences, which this level compresses better at the same speed. Its
 * tables are reduced, so that the CPU caches stay with the target. */
#define LEVEL_OF_RECORDS 3
#define LONG_MATCHES_LOG 15
#define SHORT_MATCHES_LOG 13

struct mmt_error *compressor_init(struct compressor *compressor)
{
	compressor->context = ZSTD_createCCtx();
	if (!compressor->context)
		return &error_no_memory;
	(void)ZSTD_CCtx_setParameter(compressor->context, ZSTD_c_compressionLevel, LEVEL);
	(void)ZSTD_CCtx_setParameter(compressor->context, ZSTD_c_checksumFlag, 1);
	return NULL;
}

void compressor_expect_records(struct compressor *compressor)
{
	/* Parameters that the library does not know are ignored. */
	(void)ZSTD_CCtx_setParameter(compressor->context, ZSTD_c_compressionLevel, LEVEL_OF_RECORDS);
	(void)ZSTD_CCtx_setParameter(compressor->context, ZSTD_c_hashLog, LONG_MATCHES_LOG);
	(void)ZSTD_CCtx_setParameter(compressor->context, ZSTD_c_chainLog, SHORT_MATCHES_LOG);
	/* Times and addresses do not repeat: Huffman codes save little and cost time, here and in a report. */
	(void)ZSTD_CCtx_setParameter(compressor->context, ZSTD_c_literalCompressionMode, ZSTD_ps_disable);
}

void compressor_deinit(struct compressor *compressor)
{
	ZSTD_freeCCtx(compressor->context);
}

struct mmt_error *compressor_frame_within(struct compressor *compressor, const void *data, size_t size, size_t maximum,
					  struct buffer *buffer, bool *fits_ret)
{
	size_t before = buffer->size;
	size_t bound = ZSTD_compressBound(size);
	size_t capacity = bound < maximum ? bound : maximum;
	void *room = buffer_extend(buffer, capacity);
	size_t written;

	*fits_ret = false;
	if (!room)
		return buffer_finish(buffer);
	written = ZSTD_compress2(compressor->context, room, capacity, data, size);
	*fits_ret = !ZSTD_isError(written);
	buffer->size = before + (*fits_ret ? written : 0);
	if (*fits_ret || ZSTD_getErrorCode(written) == ZSTD_error_dstSize_tooSmall)
		return NULL;
	if (ZSTD_getErrorCode(written) == ZSTD_error_memory_allocation)
		return &error_no_memory;
	return error_create(MMT_ERROR_SYSTEM, "zstd: %s", ZSTD_getErrorName(written));
}

struct mmt_error *compressor_frame(struct compressor *compressor, const void *data, size_t size, struct buffer *buffer)
{
	bool fits;
	struct mmt_error *error = compressor_frame_within(compressor, data, size, SIZE_MAX, buffer, &fits);

	return error || fits ? error : error_create(MMT_ERROR_SYSTEM, "zstd: a frame is larger than its bound");
}

struct mmt_error *decompressor_init(struct decompressor *decompressor)
{
	*decompressor = (struct decompressor){.stream = ZSTD_createDStream()};
	return decompressor->stream ? NULL : &error_no_memory;
}

void decompressor_deinit(struct decompressor *decompressor)
{
	ZSTD_freeDStream(decompressor->stream);
}

struct mmt_error *decompressor_feed(struct decompressor *decompressor, const void *data, size_t size,
				    struct buffer *buffer)
{
	ZSTD_inBuffer input = {.src = data, .size = size};
	bool full = false; /* the output was full: there may be more output although the input is used up */
	bool whole = true; /* try to decompress a frame at once */

	while (input.pos < input.size || full) {
		size_t before = buffer->size, left = buffer->maximum - before, result;
		size_t step = left < ZSTD_DStreamOutSize() ? left : ZSTD_DStreamOutSize();
		unsigned long long content = ZSTD_CONTENTSIZE_UNKNOWN; /* larger than any room */
		ZSTD_outBuffer output = {0};

		if (full && step == 0)
			return error_create(MMT_ERROR_FORMAT, "zstd: more than %zu bytes", buffer->maximum);
		/* With room for a whole frame the library needs no buffers. */
		if (whole && !decompressor->inside)
			content = ZSTD_getFrameContentSize((const uint8_t *)data + input.pos, size - input.pos);
		if (content < left)
			step = (size_t)content + 1;
		output.size = step;
		output.dst = buffer_extend(buffer, step);
		if (!output.dst)
			return buffer_finish(buffer);
		result = ZSTD_decompressStream(decompressor->stream, &output, &input);
		buffer->size = before + output.pos;
		if (ZSTD_isError(result) && step > content) {
			/* Take what is before the damage. */
			(void)ZSTD_DCtx_reset(decompressor->stream, ZSTD_reset_session_only);
			whole = false;
			continue;
		}
		if (ZSTD_isError(result))
			return ZSTD_getErrorCode(result) == ZSTD_error_memory_allocation
				   ? &error_no_memory
				   : error_create(MMT_ERROR_FORMAT, "zstd: %s", ZSTD_getErrorName(result));
		decompressor->inside = result != 0;
		full = output.pos == step && result != 0;
	}
	return NULL;
}

#define GZIP_WINDOW (MAX_WBITS + 16) /* 16: a gzip header instead of zlib's */
#define GZIP_MEMORY 8
#define OUTPUT_BYTES 65536
#define INPUT_BYTES (1u << 30) /* at a time: zlib counts in unsigned int */

bool compress_expand_frame(const void *data, size_t size, void *expanded, size_t expanded_size)
{
	return ZSTD_decompress(expanded, expanded_size, data, size) == expanded_size;
}

uint32_t compress_checksum(uint32_t sum, const void *data, size_t size)
{
	return (uint32_t)crc32_z(sum, data, size);
}

struct gzip {
	z_stream stream;
	FILE *below;
	uint8_t output[OUTPUT_BYTES];
};

static int deflate_all(struct gzip *gzip, int flush)
{
	do {
		size_t made;
		int status;

		gzip->stream.next_out = gzip->output;
		gzip->stream.avail_out = OUTPUT_BYTES;
		status = deflate(&gzip->stream, flush);
		if (status != Z_OK && status != Z_STREAM_END && status != Z_BUF_ERROR)
			return -1;
		made = OUTPUT_BYTES - gzip->stream.avail_out;
		if (made && fwrite(gzip->output, 1, made, gzip->below) != made)
			return -1;
	} while (!gzip->stream.avail_out);
	return 0;
}

static ssize_t write_gzip(void *cookie, const char *data, size_t size)
{
	struct gzip *gzip = cookie;
	size_t done = 0;

	/* All of it: glibc drops what a short write leaves. */
	while (done < size) {
		size_t piece = size - done < INPUT_BYTES ? size - done : INPUT_BYTES;

		gzip->stream.next_in = (Bytef *)data + done;
		gzip->stream.avail_in = (uInt)piece;
		if (deflate_all(gzip, Z_NO_FLUSH) < 0)
			return 0;
		done += piece;
	}
	return (ssize_t)size;
}

static int close_gzip(void *cookie)
{
	struct gzip *gzip = cookie;
	int status;

	gzip->stream.avail_in = 0;
	status = ferror(gzip->below) ? -1 : deflate_all(gzip, Z_FINISH);
	(void)deflateEnd(&gzip->stream);
	free(gzip);
	return status;
}

FILE *gzip_open(FILE *below)
{
	const cookie_io_functions_t functions = {.write = write_gzip, .close = close_gzip};
	struct gzip *gzip = calloc(1, sizeof(*gzip));
	FILE *stream;

	if (!gzip)
		return NULL;
	gzip->below = below;
	if (deflateInit2(&gzip->stream, Z_BEST_SPEED, Z_DEFLATED, GZIP_WINDOW, GZIP_MEMORY, Z_DEFAULT_STRATEGY) !=
	    Z_OK) {
		free(gzip);
		return NULL;
	}
	stream = fopencookie(gzip, "w", functions);
	if (!stream) {
		(void)deflateEnd(&gzip->stream);
		free(gzip);
	}
	return stream;
}

const char *compress_library_version(void)
{
	return ZSTD_versionString();
}
