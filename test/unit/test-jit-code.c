// SPDX-License-Identifier: LGPL-2.1-or-later
#include <check.h>
#include <string.h>

#include "base/limits.h"
#include "support/section.h"
#include "support/suite.h"
#include "trace/format/format.h"
#include "trace/sections/jit-code.h"
#include "trace/sections/sections.h"

static const uint8_t first[] = {1, 2, 3, 4, 5, 6}, second[] = {7, 8, 9};

static void add(struct jit_code *code, struct jit_code_program *process, uint64_t start, const void *bytes, size_t size)
{
	size_t offset = code->bytes.size;

	buffer_put(&code->bytes, bytes, size);
	ck_assert(jit_code_add(process, start, size, offset));
}

/* Two runs of process 42, the first in two pieces; none of process 43. */
static struct jit_code make_code(void)
{
	struct jit_code code = {0};
	struct jit_code_program *process;

	buffer_init(&code.bytes, 1024);
	process = vector_append(&code.programs);
	ck_assert_ptr_nonnull(process);
	process->pid = 42;
	process->until_ns = UINT64_MAX;
	add(&code, process, 0x1000, first, 4);
	add(&code, process, 0x1004, first + 4, 2);
	ck_assert_uint_eq(process->runs.count, 1);
	add(&code, process, 0x2000, second, sizeof(second));
	process = vector_append(&code.programs);
	ck_assert_ptr_nonnull(process);
	process->pid = 43;
	process->until_ns = UINT64_MAX;
	return code;
}

static void encode(struct buffer *buffer)
{
	struct jit_code code = make_code();

	buffer_init(buffer, 4096);
	ck_assert_ptr_null(jit_code_encode(&code, NULL, buffer));
	jit_code_deinit(&code);
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
	ck_assert_ptr_null(jit_code_decode(&bytes, &(size_t){LIMIT_UNPACKED_BYTES}, &code));
	ck_assert_uint_eq(code.programs.count, 2);
	process = jit_code_find(&code, 42, 0);
	ck_assert_ptr_nonnull(process);
	ck_assert_uint_eq(process->runs.count, 2);
	ck_assert_uint_eq(jit_code_find(&code, 43, 0)->runs.count, 0);
	ck_assert_ptr_null(jit_code_find(&code, 44, 0));

	ck_assert_uint_eq(jit_code_at(&code, process, 0x1001, 100, &bytes_at), 5);
	ck_assert_mem_eq(bytes_at, first + 1, 5);
	ck_assert_uint_eq(jit_code_at(&code, process, 0x2000, 2, &bytes_at), 2);
	ck_assert_mem_eq(bytes_at, second, 2);
	ck_assert_uint_eq(jit_code_at(&code, process, 0x1006, 1, &bytes_at), 0);
	ck_assert_uint_eq(jit_code_at(&code, process, 0xfff, 1, &bytes_at), 0);
	ck_assert_uint_eq(jit_code_at(&code, process, 0x2003, 1, &bytes_at), 0);

	ck_assert_uint_eq(jit_code_before(&code, process, 0x1006, 100, &bytes_at), 6);
	ck_assert_mem_eq(bytes_at, first, 6);
	ck_assert_uint_eq(jit_code_before(&code, process, 0x2003, 2, &bytes_at), 2);
	ck_assert_mem_eq(bytes_at, second + 1, 2);
	ck_assert_uint_eq(jit_code_before(&code, process, 0x1000, 1, &bytes_at), 0);
	ck_assert_uint_eq(jit_code_before(&code, process, 0, 1, &bytes_at), 0);
	jit_code_deinit(&code);
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
		struct mmt_error *error = jit_code_decode(&bytes, &(size_t){LIMIT_UNPACKED_BYTES}, &code);

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
	for (int i = 0; i < 2; i++) {
		buffer_put_u64(&plain, runs[_i][2 * i]);
		buffer_put_u64(&plain, runs[_i][2 * i + 1]);
		buffer_put_u8(&plain, 0xc3);
	}
	ck_assert_ptr_null(pack_section(&plain, 1, &buffer));
	bytes = bytes_over(buffer.data, buffer.size);
	error = jit_code_decode(&bytes, &(size_t){LIMIT_UNPACKED_BYTES}, &code);
	ck_assert_ptr_nonnull(error);
	ck_assert_int_eq(mmt_error_get_code(error), MMT_ERROR_FORMAT);
	ck_assert_uint_eq(code.programs.count, 0);
	mmt_error_destroy(error);
	buffer_deinit(&buffer);
}
END_TEST

enum { LARGE = 200000 };

/* The bytes of the run at `offset`. */
static struct mmt_error *read_large(void *context, size_t offset, size_t size, struct buffer *plain)
{
	int *calls = context;
	uint8_t *bytes = buffer_extend(plain, LARGE);

	(*calls)++;
	ck_assert_uint_ge(size, LARGE);
	ck_assert_ptr_nonnull(bytes);
	/* Never all bytes. */
	ck_assert_uint_lt(plain->size, 3 * LARGE);
	memset(bytes, (int)(offset / LARGE), LARGE);
	return NULL;
}

START_TEST(runs_may_be_stored_elsewhere)
{
	int calls = 0;
	const struct jit_code_source source = {&calls, read_large};
	struct jit_code code = {0}, decoded = {0};
	struct jit_code_program *process = vector_append(&code.programs);
	struct buffer buffer;
	struct bytes bytes;

	ck_assert_ptr_nonnull(process);
	for (size_t i = 0; i < 6; i++)
		ck_assert(jit_code_add(process, 0x100000 + i * LARGE, LARGE, (i + 1) * LARGE));
	buffer_init(&buffer, 1 << 20);
	ck_assert_ptr_null(jit_code_encode(&code, &source, &buffer));
	ck_assert_int_eq(calls, 6);
	bytes = bytes_over(buffer.data, buffer.size);
	ck_assert_ptr_null(jit_code_decode(&bytes, &(size_t){LIMIT_UNPACKED_BYTES}, &decoded));
	process = &decoded.programs.items[0];
	ck_assert_uint_eq(process->runs.count, 1);
	ck_assert_uint_eq(process->runs.items[0].size, 6 * LARGE);
	for (size_t i = 0; i < 6; i++) {
		const uint8_t *bytes_at;

		ck_assert_uint_eq(jit_code_at(&decoded, process, 0x100000 + i * LARGE, LARGE, &bytes_at), LARGE);
		ck_assert_uint_eq(bytes_at[0], i + 1);
		ck_assert_uint_eq(bytes_at[LARGE - 1], i + 1);
	}
	jit_code_deinit(&decoded);
	jit_code_deinit(&code);
	buffer_deinit(&buffer);
}
END_TEST

/* Mappings that were read twice because they moved. */
START_TEST(overlapping_runs_are_ignored)
{
	struct jit_code code = make_code();
	struct jit_code_program *process = &code.programs.items[0];

	ck_assert(jit_code_add(process, 0x2002, sizeof(second), 0));
	ck_assert(jit_code_add(process, 0x1000, sizeof(second), 0));
	ck_assert_uint_eq(process->runs.count, 2);
	jit_code_deinit(&code);
}
END_TEST

/* After an exec, other code is at the same address: each sample gets the code of the last program that started
 * before it. */
START_TEST(programs_of_one_process_are_distinguished)
{
	static const uint64_t ends[] = {500, UINT64_MAX, 300};
	struct jit_code code = {0}, decoded = {0};
	struct buffer buffer;
	struct bytes bytes;

	buffer_init(&code.bytes, 1024);
	for (size_t i = 0; i < 3; i++) {
		struct jit_code_program *process = vector_append(&code.programs);

		ck_assert_ptr_nonnull(process);
		process->pid = 42;
		process->until_ns = ends[i];
		add(&code, process, 0x1000 + i, first, 1);
	}
	buffer_init(&buffer, 4096);
	ck_assert_ptr_null(jit_code_encode(&code, NULL, &buffer));
	bytes = bytes_over(buffer.data, buffer.size);
	ck_assert_ptr_null(jit_code_decode(&bytes, &(size_t){LIMIT_UNPACKED_BYTES}, &decoded));
	ck_assert_uint_eq(jit_code_find(&decoded, 42, 0)->runs.items[0].start, 0x1002);
	ck_assert_uint_eq(jit_code_find(&decoded, 42, 299)->runs.items[0].start, 0x1002);
	ck_assert_uint_eq(jit_code_find(&decoded, 42, 300)->runs.items[0].start, 0x1000);
	ck_assert_uint_eq(jit_code_find(&decoded, 42, 500)->runs.items[0].start, 0x1001);
	ck_assert_ptr_null(jit_code_find(&decoded, 43, 0));
	jit_code_deinit(&decoded);
	jit_code_deinit(&code);
	buffer_deinit(&buffer);
}
END_TEST

/* One run of eight bytes and two changes. In version 2 a change had the bytes of the replaced code. */
static void put_changes(struct buffer *plain, uint32_t version, uint32_t count, const uint64_t (*changes)[3])
{
	buffer_put_u32(plain, 1);
	buffer_put_u32(plain, 42);
	buffer_put_u32(plain, 1);
	buffer_put_u64(plain, UINT64_MAX);
	buffer_put_u32(plain, count);
	buffer_put_u64(plain, 0x1000);
	buffer_put_u64(plain, 8);
	buffer_put(plain, "abcdefgh", 8);
	for (uint32_t i = 0; i < 2; i++) {
		for (size_t j = 0; j < 3; j++)
			buffer_put_u64(plain, changes[i][j]);
		if (version == 2)
			buffer_put(plain, "vwxyz", changes[i][1] < 5 ? changes[i][1] : 5);
	}
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
	error = jit_code_decode(&bytes, &(size_t){LIMIT_UNPACKED_BYTES}, code);
	buffer_deinit(&buffer);
	return error;
}

/* The latest bytes of recordings of both versions are the same. */
START_TEST(changes_round_trip)
{
	static const uint64_t changes[][3] = {{0x1006, 2, 8}, {0x1000, 3, 7}};
	struct jit_code code = {0}, again = {0};
	const struct jit_code_program *program;
	const uint8_t *bytes_at;
	struct buffer plain, buffer;
	struct bytes bytes;

	buffer_init(&plain, 4096);
	put_changes(&plain, (uint32_t)_i, 2, changes);
	ck_assert_ptr_null(decode_plain(&plain, (uint32_t)_i, &code));
	buffer_init(&buffer, 4096);
	ck_assert_ptr_null(jit_code_encode(&code, NULL, &buffer));
	bytes = bytes_over(buffer.data, buffer.size);
	ck_assert_ptr_null(jit_code_decode(&bytes, &(size_t){LIMIT_UNPACKED_BYTES}, &again));
	program = jit_code_find(&again, 42, 0);
	ck_assert_uint_eq(jit_code_at(&again, program, 0x1000, 8, &bytes_at), 8);
	ck_assert_mem_eq(bytes_at, "abcdefgh", 8);
	ck_assert_uint_eq(program->changes.count, 2);
	for (uint64_t i = 0; i < 8; i++)
		ck_assert_uint_eq(jit_code_replaced_ns(program, 0x1000 + i), i < 3 ? 7 : i < 6 ? 0 : 8);
	ck_assert_uint_eq(jit_code_replaced_ns(program, 0xfff), 0);
	ck_assert_uint_eq(jit_code_replaced_ns(program, 0x1008), 0);
	buffer_deinit(&buffer);
	jit_code_deinit(&again);
	jit_code_deinit(&code);
}
END_TEST

/* What was replaced twice was replaced until the last time. */
START_TEST(changes_may_overlap)
{
	static const uint64_t changes[][2][3] = {
	    {{0x1000, 6, 9}, {0x1002, 2, 7}}, {{0x1002, 4, 7}, {0x1000, 3, 9}}, {{0x1000, 2, 9}, {0x1001, 5, 7}}};
	struct jit_code code = {0};
	struct buffer plain;

	buffer_init(&plain, 4096);
	put_changes(&plain, 3, 2, changes[_i]);
	ck_assert_ptr_null(decode_plain(&plain, 3, &code));
	ck_assert_uint_eq(code.programs.items[0].changes.count, 1);
	for (uint64_t i = 0; i < 8; i++)
		ck_assert_uint_eq(jit_code_replaced_ns(code.programs.items, 0x1000 + i), i < 6 ? 9 : 0);
	jit_code_deinit(&code);
}
END_TEST

/* Outside all code, beyond its end, longer than all of it, more than there are. */
START_TEST(false_changes_are_refused)
{
	static const uint64_t changes[][2][3] = {
	    {{0x1000, 1, 7}, {0xfff, 1, 7}},	       {{0x1000, 1, 7}, {0x1008, 1, 7}},
	    {{0x1000, 1, 7}, {0x1006, 3, 7}},	       {{0x1000, 1, 7}, {UINT64_MAX, 2, 7}},
	    {{0x1000, 1, 7}, {0x1000, UINT64_MAX, 7}}, {{0x1000, 1, 7}, {0x1000, 1, 7}},
	    {{0x1000, 1, 7}, {0x1000, 0, 7}},
	};
	struct jit_code code = {0};
	struct buffer plain;
	struct mmt_error *error;

	buffer_init(&plain, 4096);
	put_changes(&plain, 2 + _i % 2, _i / 2 == 5 ? UINT32_MAX : 2, changes[_i / 2]);
	error = decode_plain(&plain, 2 + _i % 2, &code);
	/* An empty change is ignored. */
	ck_assert((error == NULL) == (_i / 2 == 6));
	ck_assert_uint_eq(code.programs.count, _i / 2 == 6);
	mmt_error_destroy(error);
	jit_code_deinit(&code);
}
END_TEST

/* Any byte may change: what is decoded lies within code. */
START_TEST(random_changes_are_safe)
{
	static const uint64_t changes[][3] = {{0x1000, 3, 7}, {0x1006, 2, 7}};
	static const uint8_t values[] = {0, 1, 2, 0x7f, 0x80, 0xff};
	struct buffer plain;
	size_t size = 1;

	for (size_t i = 0; i < size * sizeof(values); i++) {
		struct jit_code code = {0};

		buffer_init(&plain, 4096);
		put_changes(&plain, (uint32_t)_i, 2, changes);
		size = plain.size;
		plain.data[i / sizeof(values)] = values[i % sizeof(values)];
		mmt_error_destroy(decode_plain(&plain, (uint32_t)_i, &code));
		for (size_t j = 0; j < code.programs.count; j++) {
			const struct jit_code_program *program = &code.programs.items[j];

			for (size_t k = 0; k < program->changes.count; k++) {
				const struct jit_code_change *change = &program->changes.items[k];
				const uint8_t *bytes_at;

				ck_assert_uint_eq(jit_code_at(&code, program, change->start, change->size, &bytes_at),
						  change->size);
				ck_assert(!k || change->start >= change[-1].start + change[-1].size);
			}
		}
		jit_code_deinit(&code);
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
	buffer_patch_u32(&buffer, 0, 99);
	bytes = bytes_over(buffer.data, buffer.size);
	error = jit_code_decode(&bytes, &(size_t){LIMIT_UNPACKED_BYTES}, &code);
	ck_assert_ptr_nonnull(error);
	ck_assert_int_eq(mmt_error_get_code(error), MMT_ERROR_UNSUPPORTED);
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
	tcase_add_tests(tests, runs_may_be_stored_elsewhere, overlapping_runs_are_ignored,
			programs_of_one_process_are_distinguished);
	tcase_add_loop_test(tests, changes_round_trip, 2, 4);
	tcase_add_loop_test(tests, changes_may_overlap, 0, 3);
	tcase_add_loop_test(tests, false_changes_are_refused, 0, 14);
	tcase_add_loop_test(tests, random_changes_are_safe, 2, 4);
	tcase_add_tests(tests, modules_have_names, newer_versions_are_refused);
	return suite;
}
