// SPDX-License-Identifier: LGPL-2.1-or-later
/* Growing memory: a buffer with its maximum, an arena, a vector; and their errors. */
#include <check.h>
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "base/bytes.h"
#include "base/vector.h"
#include "support/suite.h"

START_TEST(integers_are_little_endian_and_can_be_patched)
{
	static const uint8_t expected[] = {1, 0x03, 0x02, 0xd, 0xc, 0xb, 0xa, 0, 8, 7, 6, 5, 4, 3, 2, 1};
	struct buffer buffer;

	buffer_init(&buffer, 64);
	buffer_put_u8(&buffer, 1);
	buffer_put_u16(&buffer, 0);
	buffer_put_u32(&buffer, 0);
	buffer_align(&buffer, 8);
	buffer_put_u64(&buffer, 0x0102030405060708);
	buffer_patch(&buffer, 1, 0x0203, sizeof(uint16_t));
	buffer_patch(&buffer, 3, 0x0a0b0c0d, sizeof(uint32_t));
	ck_assert_ptr_null(buffer_finish(&buffer));
	ck_assert_uint_eq(buffer.size, sizeof(expected));
	ck_assert_mem_eq(buffer.data, expected, sizeof(expected));
	buffer_deinit(&buffer);
}
END_TEST

START_TEST(maximum_is_enforced_and_reported)
{
	struct buffer buffer;
	struct mmt_error *error;

	buffer_init(&buffer, 10);
	buffer_put(&buffer, "12345678", 8);
	buffer_put(&buffer, "123", 3);
	ck_assert_uint_eq(buffer.size, 8);
	ck_assert_ptr_null(buffer_extend(&buffer, 1));
	error = buffer_finish(&buffer);
	ck_assert_ptr_nonnull(error);
	ck_assert_str_eq(error->message, "more than 10 bytes");
	mmt_error_destroy(error);
	ck_assert_ptr_null(buffer_finish(&buffer));
	buffer_put(&buffer, "12", 2);
	ck_assert_uint_eq(buffer.size, 10);
	buffer_deinit(&buffer);
}
END_TEST

START_TEST(arena_pointers_stay_valid)
{
	struct arena arena = {0};
	char *texts[2000];
	uint64_t *large;

	for (unsigned i = 0; i < 2000; i++) {
		char text[128];

		snprintf(text, sizeof(text), "string number %u, long enough to fill several chunks in the end", i);
		texts[i] = arena_string(&arena, text);
		ck_assert_ptr_nonnull(texts[i]);
	}
	large = arena_alloc(&arena, 100000, sizeof(*large));
	ck_assert_ptr_nonnull(large);
	ck_assert_uint_eq((uintptr_t)large % _Alignof(max_align_t), 0);
	ck_assert_uint_eq(large[99999], 0);
	ck_assert_str_eq(texts[7], "string number 7, long enough to fill several chunks in the end");
	ck_assert_str_eq(texts[1999], "string number 1999, long enough to fill several chunks in the end");
	ck_assert_ptr_null(arena_alloc(&arena, SIZE_MAX / 2, 4));
	arena_deinit(&arena);
}
END_TEST

START_TEST(vector_grows)
{
	VECTOR(uint32_t) numbers = {0};

	for (uint32_t i = 0; i < 1000; i++)
		ck_assert(vector_push(&numbers, i * 3));
	*vector_append(&numbers) += 5;
	ck_assert_uint_eq(numbers.count, 1001);
	ck_assert_uint_eq(numbers.items[999], 2997);
	ck_assert_uint_eq(numbers.items[1000], 5);
	vector_deinit(&numbers);
	ck_assert_uint_eq(numbers.capacity, 0);
}
END_TEST

START_TEST(error_carries_context)
{
	struct mmt_error *error = error_system(EACCES, "cannot open %s", "file");

	error = error_context(error, "recording");
	ck_assert_str_eq(error->message, "recording: cannot open file: Permission denied");
	ck_assert_int_eq(error->code, MMT_ERROR_PERMISSION);
	ck_assert_int_eq(error->errno_value, EACCES);
	mmt_error_destroy(error);
	ck_assert_ptr_null(error_context(NULL, "nothing"));
	ck_assert_ptr_eq(error_context(&error_no_memory, "context"), &error_no_memory);
	ck_assert_str_eq(error_no_memory.message, "out of memory");
	mmt_error_destroy(&error_no_memory);
}
END_TEST

Suite *test_suite(void)
{
	Suite *suite = suite_create("buffer");
	TCase *tcase = add_tcase(suite, "buffer");

	tcase_add_tests(tcase, integers_are_little_endian_and_can_be_patched, maximum_is_enforced_and_reported,
			arena_pointers_stay_valid, vector_grows, error_carries_context);
	return suite;
}
