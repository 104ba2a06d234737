// SPDX-License-Identifier: LGPL-2.1-or-later
#include <check.h>
#include <string.h>
#include <zstd.h>

#include "base/bytes.h"
#include "base/compression.h"
#include "support/suite.h"

#define CONTENT_BYTES 1000

static struct compressor compressor;
static struct decompressor decompressor;
static struct buffer frames, plain;
static uint8_t content[CONTENT_BYTES];

static void create(void)
{
	ck_assert_ptr_null(compressor_init(&compressor));
	ck_assert_ptr_null(decompressor_init(&decompressor));
	buffer_init(&frames, 1u << 20);
	buffer_init(&plain, 1u << 20);
	for (size_t i = 0; i < sizeof(content); i++)
		content[i] = (uint8_t)(i * i);
}

static void destroy(void)
{
	compressor_deinit(&compressor);
	decompressor_deinit(&decompressor);
	buffer_deinit(&frames);
	buffer_deinit(&plain);
}

static void put_padding(uint32_t size)
{
	buffer_put_u32(&frames, ZSTD_MAGIC_SKIPPABLE_START + 3);
	buffer_put_u32(&frames, size);
	buffer_put(&frames, "\0\0\0\0\0\0\0", size);
}

static void feed(void)
{
	ck_assert_ptr_null(decompressor_feed(&decompressor, frames.data, frames.size, &plain));
	ck_assert_uint_eq(plain.size, sizeof(content));
	ck_assert_int_eq(memcmp(plain.data, content, sizeof(content)), 0);
}

/* A stream gets memory for the largest block; a frame of known size only for that size. */
START_TEST(a_frame_after_padding_takes_one_call)
{
	put_padding(5);
	put_padding(0);
	ck_assert_ptr_null(compressor_frame(&compressor, content, sizeof(content), &frames));
	feed();
	ck_assert_uint_lt(plain.capacity, ZSTD_DStreamOutSize());
}
END_TEST

/* The second frame in two pieces: a stream. */
START_TEST(several_frames)
{
	size_t first;

	ck_assert_ptr_null(compressor_frame(&compressor, content, 300, &frames));
	put_padding(7);
	first = frames.size + 10;
	ck_assert_ptr_null(compressor_frame(&compressor, content + 300, sizeof(content) - 300, &frames));
	feed();
	buffer_clear(&plain);
	ck_assert_ptr_null(decompressor_feed(&decompressor, frames.data, first, &plain));
	ck_assert(decompressor.inside);
	ck_assert_ptr_null(decompressor_feed(&decompressor, frames.data + first, frames.size - first, &plain));
	ck_assert(!decompressor.inside);
	ck_assert_uint_eq(plain.size, sizeof(content));
	ck_assert_mem_eq(plain.data, content, sizeof(content));
}
END_TEST

START_TEST(padding_alone_holds_nothing)
{
	put_padding(5);
	ck_assert_ptr_null(decompressor_feed(&decompressor, frames.data, frames.size, &plain));
	ck_assert_uint_eq(plain.size, 0);
	buffer_clear(&frames);
	buffer_put_u32(&frames, ZSTD_MAGIC_SKIPPABLE_START);
	buffer_put_u32(&frames, 100);
	ck_assert_ptr_null(decompressor_feed(&decompressor, frames.data, frames.size, &plain));
	ck_assert_uint_eq(plain.size, 0);
}
END_TEST

Suite *test_suite(void)
{
	Suite *suite = suite_create("compress");
	TCase *cases = add_tcase(suite, "frames");

	tcase_add_checked_fixture(cases, create, destroy);
	tcase_add_tests(cases, a_frame_after_padding_takes_one_call, several_frames, padding_alone_holds_nothing);
	return suite;
}
