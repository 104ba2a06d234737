// SPDX-License-Identifier: LGPL-2.1-or-later
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "base/compression.h"
#include "base/limits.h"
#include "support/section.h"
#include "support/suite.h"
#include "trace/format/format.h"
#include "trace/sections/sections.h"

static const uint8_t first[] = {1, 2, 3, 4, 5, 6}, second[] = {7, 8, 9};

enum { PAGE_BYTES = 8 };

/* Compresses the bytes as a page. */
static struct jit_code_page make_page(uint64_t address, const void *bytes, size_t size)
{
	struct compressor compressor;
	uint8_t page[PAGE_BYTES] = {0};
	struct buffer frame;

	memcpy(page, bytes, size);
	buffer_init(&frame, 1024);
	ck_assert_ptr_null(compressor_init(&compressor));
	ck_assert_ptr_null(compressor_frame(&compressor, page, PAGE_BYTES, &frame));
	compressor_deinit(&compressor);
	return (struct jit_code_page){address, frame.data, frame.size};
}

static void put_program(struct section_packing *packing, int32_t pid, uint64_t until_ns, struct jit_code_page *pages,
			size_t count)
{
	ck_assert_ptr_null(jit_code_encode_program(packing, pid, until_ns, pages, count, PAGE_BYTES));
	for (size_t i = 0; i < count; i++)
		free((void *)(uintptr_t)pages[i].frame);
}

/* Two runs of process 42, the first of two pages; none of process 43. */
static void encode(struct buffer *buffer)
{
	struct jit_code_page pages[] = {make_page(0x1000, first, sizeof(first)),
					make_page(0x1000 + PAGE_BYTES, second, sizeof(second)),
					make_page(0x2000, second, sizeof(second))};
	struct section_packing packing;

	buffer_init(buffer, 4096);
	ck_assert_ptr_null(jit_code_encode(&packing, 2, buffer));
	put_program(&packing, 42, UINT64_MAX, pages, 3);
	put_program(&packing, 43, UINT64_MAX, NULL, 0);
	ck_assert_ptr_null(packing_end(&packing, NULL));
}

START_TEST(round_trip)
{
	struct jit_code code = {0};
	const struct jit_code_program *process;
	const uint8_t *bytes_at;
	struct buffer buffer;
	struct bytes bytes;

	encode(&buffer);
	bytes = bytes_over(buffer.data, buffer.size);
	ck_assert_ptr_null(section_read(&section_code, &bytes, &(size_t){LIMIT_UNPACKED_BYTES}, &code));
	ck_assert_uint_eq(code.programs.count, 2);
	process = jit_code_find(&code, 42, 0);
	ck_assert_ptr_nonnull(process);
	ck_assert_uint_eq(process->runs.count, 2);
	ck_assert_uint_eq(jit_code_find(&code, 43, 0)->runs.count, 0);
	ck_assert_ptr_null(jit_code_find(&code, 44, 0));

	ck_assert_uint_eq(jit_code_at(&code, process, 0x1001, 100, &bytes_at), 2 * PAGE_BYTES - 1);
	ck_assert_mem_eq(bytes_at, first + 1, 5);
	ck_assert_mem_eq(bytes_at + PAGE_BYTES - 1, second, 3);
	ck_assert_uint_eq(jit_code_at(&code, process, 0x2000, 2, &bytes_at), 2);
	ck_assert_mem_eq(bytes_at, second, 2);
	ck_assert_uint_eq(jit_code_at(&code, process, 0x1000 + 2 * PAGE_BYTES, 1, &bytes_at), 0);
	ck_assert_uint_eq(jit_code_at(&code, process, 0xfff, 1, &bytes_at), 0);
	ck_assert_uint_eq(jit_code_at(&code, process, 0x2000 + PAGE_BYTES, 1, &bytes_at), 0);

	ck_assert_uint_eq(jit_code_before(&code, process, 0x1006, 100, &bytes_at), 6);
	ck_assert_mem_eq(bytes_at, first, 6);
	ck_assert_uint_eq(jit_code_before(&code, process, 0x2003, 2, &bytes_at), 2);
	ck_assert_mem_eq(bytes_at, second + 1, 2);
	ck_assert_uint_eq(jit_code_before(&code, process, 0x1000, 1, &bytes_at), 0);
	ck_assert_uint_eq(jit_code_before(&code, process, 0, 1, &bytes_at), 0);
	section_code.deinit(&code);
	buffer_deinit(&buffer);
}
END_TEST

START_TEST(truncation_anywhere_is_refused)
{
	struct buffer buffer;

	encode(&buffer);
	for (size_t size = 0; size < buffer.size; size++) {
		struct bytes bytes = bytes_over(buffer.data, size);
		struct jit_code code = {0};
		struct mmt_error *error = section_read(&section_code, &bytes, &(size_t){LIMIT_UNPACKED_BYTES}, &code);

		ck_assert_ptr_nonnull(error);
		ck_assert_uint_eq(code.programs.count, 0);
		mmt_error_destroy(error);
	}
	buffer_deinit(&buffer);
}
END_TEST

/* Entries that are out of order, or have a wrong size, are refused. */
START_TEST(false_fields_are_refused)
{
	static const uint64_t runs[][4] = {
	    {0x1000, 1, 0x1000, 1}, {0x2000, 1, 0x1000, 1},	     {0x1000, 1, UINT64_MAX, 1},
	    {0x1000, 1, 0x2000, 2}, {0x1000, 1, 0x2000, UINT64_MAX},
	};
	struct buffer plain, buffer;
	struct jit_code code = {0};
	struct mmt_error *error;
	struct bytes bytes;

	buffer_init(&plain, 4096);
	buffer_init(&buffer, 4096);
	buffer_put_u32(&plain, 1);
	buffer_put_u32(&plain, 42);
	buffer_put_u32(&plain, 2);
	buffer_put_u64(&plain, UINT64_MAX);
	buffer_put_u32(&plain, 0);
	for (int i = 0; i < 2; i++) {
		buffer_put_u64(&plain, runs[_i][2 * i]);
		buffer_put_u64(&plain, runs[_i][2 * i + 1]);
		buffer_put_u8(&plain, 0xc3);
	}
	ck_assert_ptr_null(pack_section(&plain, 3, &buffer));
	bytes = bytes_over(buffer.data, buffer.size);
	error = section_read(&section_code, &bytes, &(size_t){LIMIT_UNPACKED_BYTES}, &code);
	ck_assert_ptr_nonnull(error);
	ck_assert_int_eq(error->code, MMT_ERROR_FORMAT);
	ck_assert_uint_eq(code.programs.count, 0);
	mmt_error_destroy(error);
	buffer_deinit(&buffer);
}
END_TEST

/* After an exec, other code is at the same address: each sample gets the code of the last program that started
 * before it. */
START_TEST(programs_of_one_process_are_distinguished)
{
	static const uint64_t ends[] = {500, UINT64_MAX, 300};
	struct section_packing packing;
	struct jit_code decoded = {0};
	struct buffer buffer;
	struct bytes bytes;

	buffer_init(&buffer, 4096);
	ck_assert_ptr_null(jit_code_encode(&packing, 3, &buffer));
	for (size_t i = 0; i < 3; i++) {
		struct jit_code_page page = make_page(0x1000 + i, first, 1);

		put_program(&packing, 42, ends[i], &page, 1);
	}
	ck_assert_ptr_null(packing_end(&packing, NULL));
	bytes = bytes_over(buffer.data, buffer.size);
	ck_assert_ptr_null(section_read(&section_code, &bytes, &(size_t){LIMIT_UNPACKED_BYTES}, &decoded));
	ck_assert_uint_eq(jit_code_find(&decoded, 42, 0)->runs.items[0].start, 0x1002);
	ck_assert_uint_eq(jit_code_find(&decoded, 42, 299)->runs.items[0].start, 0x1002);
	ck_assert_uint_eq(jit_code_find(&decoded, 42, 300)->runs.items[0].start, 0x1000);
	ck_assert_uint_eq(jit_code_find(&decoded, 42, 500)->runs.items[0].start, 0x1001);
	ck_assert_ptr_null(jit_code_find(&decoded, 43, 0));
	section_code.deinit(&decoded);
	buffer_deinit(&buffer);
}
END_TEST

/* One run of eight bytes. Earlier versions counted code that was replaced. */
static void put_code(struct buffer *plain, uint32_t changes)
{
	buffer_put_u32(plain, 1);
	buffer_put_u32(plain, 42);
	buffer_put_u32(plain, 1);
	buffer_put_u64(plain, UINT64_MAX);
	buffer_put_u32(plain, changes);
	buffer_put_u64(plain, 0x1000);
	buffer_put_u64(plain, 8);
	buffer_put(plain, "abcdefgh", 8);
}

static struct mmt_error *decode_plain(struct buffer *plain, uint32_t version, struct jit_code *code)
{
	struct mmt_error *error;
	struct buffer buffer;
	struct bytes bytes;

	buffer_init(&buffer, 4096); /* as large as the plain bytes of any test */
	/* Takes the plain bytes. */
	ck_assert_ptr_null(pack_section(plain, version, &buffer));
	bytes = bytes_over(buffer.data, buffer.size);
	error = section_read(&section_code, &bytes, &(size_t){LIMIT_UNPACKED_BYTES}, code);
	buffer_deinit(&buffer);
	return error;
}

START_TEST(older_versions_are_refused)
{
	static const struct {
		uint32_t version, changes;
		enum mmt_error_code code;
	} cases[] = {{2, 0, MMT_ERROR_UNSUPPORTED}, {3, 1, MMT_ERROR_FORMAT}};
	struct jit_code code = {0};

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct mmt_error *error;
		struct buffer plain;

		buffer_init(&plain, 4096);
		put_code(&plain, cases[i].changes);
		error = decode_plain(&plain, cases[i].version, &code);
		ck_assert_ptr_nonnull(error);
		ck_assert_int_eq(error->code, cases[i].code);
		mmt_error_destroy(error);
	}
}
END_TEST

/* Any byte may change: what is decoded lies within the section. */
START_TEST(random_changes_are_safe)
{
	static const uint8_t values[] = {0, 1, 2, 0x7f, 0x80, 0xff};
	struct buffer plain;
	size_t size = 1;

	for (size_t i = 0; i < size * sizeof(values); i++) {
		struct jit_code code = {0};

		buffer_init(&plain, 4096);
		put_code(&plain, 0);
		size = plain.size;
		plain.data[i / sizeof(values)] = values[i % sizeof(values)];
		mmt_error_destroy(decode_plain(&plain, 3, &code));
		for (size_t j = 0; j < code.programs.count; j++) {
			for (size_t k = 0; k < code.programs.items[j].runs.count; k++) {
				const struct jit_code_run *run = &code.programs.items[j].runs.items[k];

				ck_assert_uint_le(run->offset, code.bytes.size);
				ck_assert_uint_le(run->size, code.bytes.size - run->offset);
			}
		}
		section_code.deinit(&code);
	}
}
END_TEST

START_TEST(newer_versions_are_refused)
{
	struct jit_code code = {0};
	struct buffer buffer;
	struct mmt_error *error;
	struct bytes bytes;

	encode(&buffer);
	buffer_patch(&buffer, 0, 99, sizeof(uint32_t));
	bytes = bytes_over(buffer.data, buffer.size);
	error = section_read(&section_code, &bytes, &(size_t){LIMIT_UNPACKED_BYTES}, &code);
	ck_assert_ptr_nonnull(error);
	ck_assert_int_eq(error->code, MMT_ERROR_UNSUPPORTED);
	mmt_error_destroy(error);
	buffer_deinit(&buffer);
}
END_TEST

START_TEST(modules_have_names)
{
	ck_assert(jit_code_is_path("//anon") && jit_code_is_wanted("//anon"));
	ck_assert(jit_code_is_path("/memfd:doublemapper (deleted)"));
	ck_assert(!jit_code_is_path("/lib/libc.so.6") && !jit_code_is_wanted("/lib/libc.so.6"));
	ck_assert(!jit_code_is_path("/app/A.dll") && jit_code_is_wanted("/app/A.dll"));
	ck_assert(!jit_code_is_wanted("/app.dll/program"));
}
END_TEST

Suite *test_suite(void)
{
	Suite *suite = suite_create("jit-code");
	TCase *tests = add_tcase(suite, "jit-code");

	tcase_add_tests(tests, round_trip, truncation_anywhere_is_refused);
	tcase_add_loop_test(tests, false_fields_are_refused, 0, 5);
	tcase_add_tests(tests, programs_of_one_process_are_distinguished);
	tcase_add_tests(tests, older_versions_are_refused, random_changes_are_safe, modules_have_names,
			newer_versions_are_refused);
	return suite;
}
