// SPDX-License-Identifier: LGPL-2.1-or-later
#include <check.h>

#include "base/bytes.h"
#include "support/suite.h"

static const uint8_t numbers[] = {0x01, 0x02, 0x03, 0x04, 0x05, 0x06, 0x07, 0x08,
				  0x09, 0x0a, 0x0b, 0x0c, 0x0d, 0x0e, 0x0f};

START_TEST(reads_little_endian_without_alignment)
{
	struct bytes bytes = bytes_over(numbers, sizeof(numbers));

	ck_assert_uint_eq(bytes_u8(&bytes), 0x01);
	ck_assert_uint_eq(bytes_u16(&bytes), 0x0302);
	ck_assert_uint_eq(bytes_u32(&bytes), 0x07060504);
	ck_assert_uint_eq(bytes_u64(&bytes), 0x0f0e0d0c0b0a0908);
	ck_assert_uint_eq(bytes_left(&bytes), 0);
	ck_assert(bytes_ok(&bytes));
}
END_TEST

START_TEST(first_error_is_kept_with_its_offset)
{
	struct bytes bytes = bytes_over(numbers, 6);
	struct mmt_error *error;

	ck_assert_uint_eq(bytes_u32(&bytes), 0x04030201);
	ck_assert_uint_eq(bytes_u32(&bytes), 0);
	ck_assert_uint_eq(bytes_u8(&bytes), 0);
	ck_assert_str_eq(bytes_string(&bytes), "");
	ck_assert_ptr_null(bytes_take(&bytes, 0));
	bytes_fail(&bytes, "something else");
	error = bytes_finish(&bytes, "thing");
	ck_assert_ptr_nonnull(error);
	ck_assert_str_eq(error->message, "thing: ends too early at byte 4");
	ck_assert_int_eq(error->code, MMT_ERROR_FORMAT);
	mmt_error_destroy(error);
}
END_TEST

START_TEST(unterminated_strings_are_errors)
{
	struct bytes bytes = bytes_over("ab\0cd", 5);

	ck_assert_str_eq(bytes_string(&bytes), "ab");
	ck_assert_uint_eq(bytes_left(&bytes), 2);
	ck_assert_str_eq(bytes_string(&bytes), "");
	ck_assert(!bytes_ok(&bytes));
}
END_TEST

START_TEST(sub_cursor_is_bounded)
{
	struct bytes bytes = bytes_over(numbers, 8);
	struct bytes inner = bytes_sub(&bytes, 3);

	ck_assert_uint_eq(bytes_u16(&inner), 0x0201);
	ck_assert_uint_eq(bytes_u16(&inner), 0);
	ck_assert(!bytes_ok(&inner));
	ck_assert(bytes_ok(&bytes));
	ck_assert_uint_eq(bytes_u8(&bytes), 0x04);
	inner = bytes_sub(&bytes, UINT64_MAX);
	ck_assert_uint_eq(bytes_left(&inner), 0);
	ck_assert(!bytes_ok(&bytes));
}
END_TEST

/* Others may point to a number, again and again. */
START_TEST(numbers_of_variable_length_are_bounded)
{
	uint8_t data[64];
	struct bytes bytes = bytes_over(data, sizeof(data));

	memset(data, 0x80, sizeof(data));
	data[31] = 1; /* padded as far as is allowed */
	ck_assert_uint_eq(bytes_uleb128(&bytes), 0);
	ck_assert(bytes_ok(&bytes));
	ck_assert_uint_eq(bytes_left(&bytes), sizeof(data) - 32);
	data[63] = 1;
	ck_assert_uint_eq(bytes_uleb128(&bytes), 0);
	ck_assert(bytes_ok(&bytes));
	bytes = bytes_over(data + 32, 32);
	data[63] = 0x80;
	(void)bytes_sleb128(&bytes);
	ck_assert(!bytes_ok(&bytes));
	bytes = bytes_over(data, sizeof(data));
	data[31] = 0x80;
	ck_assert_uint_eq(bytes_uleb128(&bytes), 0);
	ck_assert_str_eq(bytes.failure, "number too long");
}
END_TEST

START_TEST(counts_are_checked_against_limit_and_data)
{
	struct bytes bytes = bytes_over(numbers, 8);

	ck_assert_uint_eq(bytes_count(&bytes, 2, 4), 2);
	ck_assert(bytes_ok(&bytes));
	ck_assert_uint_eq(bytes_count(&bytes, 3, 4), 0);
	ck_assert(!bytes_ok(&bytes));
	bytes = bytes_over(numbers, 8);
	ck_assert_uint_eq(bytes_at_most(&bytes, bytes_count(&bytes, 3, 1), 2), 0);
	ck_assert(!bytes_ok(&bytes));
	bytes = bytes_over(numbers, 8);
	ck_assert_uint_eq(bytes_count(&bytes, UINT64_MAX, 8), 0);
	ck_assert(!bytes_ok(&bytes));
}
END_TEST

START_TEST(aligns_from_the_start_and_stops_at_the_end)
{
	struct bytes bytes = bytes_over(numbers + 1, 9);

	bytes_u8(&bytes);
	bytes_align(&bytes, 8);
	ck_assert_uint_eq(bytes_left(&bytes), 1);
	bytes_u8(&bytes);
	bytes_align(&bytes, 8);
	ck_assert_uint_eq(bytes_left(&bytes), 0);
	ck_assert(bytes_ok(&bytes));
}
END_TEST

Suite *test_suite(void)
{
	Suite *suite = suite_create("bytes");
	TCase *cases = add_tcase(suite, "cursor");

	tcase_add_tests(cases, numbers_of_variable_length_are_bounded, reads_little_endian_without_alignment,
			first_error_is_kept_with_its_offset, unterminated_strings_are_errors, sub_cursor_is_bounded,
			counts_are_checked_against_limit_and_data, aligns_from_the_start_and_stops_at_the_end);
	return suite;
}
