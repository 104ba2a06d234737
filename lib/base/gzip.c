// SPDX-License-Identifier: LGPL-2.1-or-later
#include "base/gzip.h"

#include <stdint.h>
#include <stdlib.h>
#include <zlib.h>

#define GZIP_WINDOW (MAX_WBITS + 16) /* 16: a gzip header instead of zlib's */
#define GZIP_MEMORY 8
#define OUTPUT_BYTES 65536
#define INPUT_BYTES (1u << 30) /* at a time: zlib counts in unsigned int */

struct inflater {
	z_stream stream;
};

struct inflater *inflater_create(void)
{
	struct inflater *inflater = calloc(1, sizeof(*inflater));

	if (inflater && inflateInit(&inflater->stream) == Z_OK)
		return inflater;
	free(inflater);
	return NULL;
}

void inflater_destroy(struct inflater *inflater)
{
	if (!inflater)
		return;
	(void)inflateEnd(&inflater->stream);
	free(inflater);
}

bool inflater_is_hungry(const struct inflater *inflater)
{
	return !inflater->stream.avail_in;
}

void inflater_feed(struct inflater *inflater, const void *data, unsigned size)
{
	inflater->stream.next_in = (Bytef *)data;
	inflater->stream.avail_in = size;
}

bool inflater_next(struct inflater *inflater, void *output, unsigned size, size_t *made_ret, bool *end_ret)
{
	int status;

	inflater->stream.next_out = output;
	inflater->stream.avail_out = size;
	status = inflate(&inflater->stream, Z_NO_FLUSH);
	*made_ret = size - inflater->stream.avail_out;
	*end_ret = status == Z_STREAM_END;
	return status == Z_OK || *end_ret;
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
