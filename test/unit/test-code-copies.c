// SPDX-License-Identifier: LGPL-2.1-or-later
#include <check.h>
#include <string.h>

#include "base/limits.h"
#include "support/suite.h"
#include "trace/sections/copies.h"
#include "trace/format/format.h"
#include "trace/sections/sections.h"

static const uint8_t first[] = {1, 2, 3, 4, 5, 6}, second[] = {7, 8, 9};

static void add(struct code_copies *copies, struct process_code *process, uint64_t start, const void *bytes,
		size_t size)
{
	size_t offset = copies->bytes.size;

	buffer_put(&copies->bytes, bytes, size);
	ck_assert(code_copies_add(process, start, size, offset));
}

/* Two runs of process 42, the first in three unordered pieces; none of process 43. */
static struct code_copies make_copies(void)
{
	struct code_copies copies = {0};
	struct process_code *process;

	buffer_init(&copies.bytes, 1024);
	process = vector_append(&copies.processes);
	ck_assert_ptr_nonnull(process);
	process->pid = 42;
	process->until_ns = UINT64_MAX;
	buffer_put(&copies.bytes, first + 5, 1);
	add(&copies, process, 0x1000, first, 4);
	add(&copies, process, 0x1004, first + 4, 1);
	ck_assert(code_copies_add(process, 0x1005, 1, 0));
	ck_assert_uint_eq(process->runs.count, 2);
	add(&copies, process, 0x2000, second, sizeof(second));
	process = vector_append(&copies.processes);
	ck_assert_ptr_nonnull(process);
	process->pid = 43;
	process->until_ns = UINT64_MAX;
	return copies;
}

static void encode(struct buffer *buffer)
{
	struct code_copies copies = make_copies();

	buffer_init(buffer, 4096);
	ck_assert_ptr_null(code_copies_encode(&copies, NULL, buffer));
	code_copies_deinit(&copies);
}

START_TEST(round_trip)
{
	struct code_copies copies = {0};
	const struct process_code *process;
	const uint8_t *code;
	struct buffer buffer;
	struct bytes bytes;

	encode(&buffer);
	bytes = bytes_over(buffer.data, buffer.size);
	ck_assert_ptr_null(code_copies_decode(&bytes, &(size_t){LIMIT_UNPACKED_BYTES}, &copies));
	ck_assert_uint_eq(copies.processes.count, 2);
	process = code_copies_find(&copies, 42, 0);
	ck_assert_ptr_nonnull(process);
	ck_assert_uint_eq(process->runs.count, 2);
	ck_assert_uint_eq(code_copies_find(&copies, 43, 0)->runs.count, 0);
	ck_assert_ptr_null(code_copies_find(&copies, 44, 0));

	ck_assert_uint_eq(code_copies_at(&copies, process, 0x1001, 100, &code), 5);
	ck_assert_mem_eq(code, first + 1, 5);
	ck_assert_uint_eq(code_copies_at(&copies, process, 0x2000, 2, &code), 2);
	ck_assert_mem_eq(code, second, 2);
	ck_assert_uint_eq(code_copies_at(&copies, process, 0x1006, 1, &code), 0);
	ck_assert_uint_eq(code_copies_at(&copies, process, 0xfff, 1, &code), 0);
	ck_assert_uint_eq(code_copies_at(&copies, process, 0x2003, 1, &code), 0);

	ck_assert_uint_eq(code_copies_before(&copies, process, 0x1006, 100, &code), 6);
	ck_assert_mem_eq(code, first, 6);
	ck_assert_uint_eq(code_copies_before(&copies, process, 0x2003, 2, &code), 2);
	ck_assert_mem_eq(code, second + 1, 2);
	ck_assert_uint_eq(code_copies_before(&copies, process, 0x1000, 1, &code), 0);
	ck_assert_uint_eq(code_copies_before(&copies, process, 0, 1, &code), 0);
	code_copies_deinit(&copies);
	buffer_deinit(&buffer);
}
END_TEST

START_TEST(truncation_anywhere_is_refused)
{
	struct buffer buffer;

	encode(&buffer);
	for (size_t size = 0; size < buffer.size; size++) {
		struct bytes bytes = bytes_over(buffer.data, size);
		struct code_copies copies = {0};
		struct mmt_error *error = code_copies_decode(&bytes, &(size_t){LIMIT_UNPACKED_BYTES}, &copies);

		ck_assert_ptr_nonnull(error);
		ck_assert_uint_eq(copies.processes.count, 0);
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
	struct code_copies copies = {0};
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
	ck_assert_ptr_null(sections_pack(&plain, 1, &buffer));
	bytes = bytes_over(buffer.data, buffer.size);
	error = code_copies_decode(&bytes, &(size_t){LIMIT_UNPACKED_BYTES}, &copies);
	ck_assert_ptr_nonnull(error);
	ck_assert_int_eq(mmt_error_get_code(error), MMT_ERROR_FORMAT);
	ck_assert_uint_eq(copies.processes.count, 0);
	mmt_error_destroy(error);
	buffer_deinit(&buffer);
}
END_TEST

enum { LARGE = 200000 };

/* The bytes of the run at `offset`. */
static struct mmt_error *read_large(void *context, size_t offset, struct buffer *plain)
{
	int *calls = context;
	uint8_t *bytes = buffer_extend(plain, LARGE);

	(*calls)++;
	ck_assert_ptr_nonnull(bytes);
	/* Never all bytes. */
	ck_assert_uint_lt(plain->size, 3 * LARGE);
	memset(bytes, (int)offset, LARGE);
	return NULL;
}

START_TEST(runs_may_be_stored_elsewhere)
{
	int calls = 0;
	const struct code_source source = {&calls, read_large};
	struct code_copies copies = {0}, decoded = {0};
	struct process_code *process = vector_append(&copies.processes);
	struct buffer buffer;
	struct bytes bytes;

	ck_assert_ptr_nonnull(process);
	for (size_t i = 0; i < 6; i++) {
		const struct code_run run = {0x100000 + i * LARGE, LARGE, i + 1};

		ck_assert(vector_push(&process->runs, run));
	}
	buffer_init(&buffer, 1 << 20);
	ck_assert_ptr_null(code_copies_encode(&copies, &source, &buffer));
	ck_assert_int_eq(calls, 6);
	bytes = bytes_over(buffer.data, buffer.size);
	ck_assert_ptr_null(code_copies_decode(&bytes, &(size_t){LIMIT_UNPACKED_BYTES}, &decoded));
	process = &decoded.processes.items[0];
	ck_assert_uint_eq(process->runs.count, 1);
	ck_assert_uint_eq(process->runs.items[0].size, 6 * LARGE);
	for (size_t i = 0; i < 6; i++) {
		const uint8_t *code;

		ck_assert_uint_eq(code_copies_at(&decoded, process, 0x100000 + i * LARGE, LARGE, &code), LARGE);
		ck_assert_uint_eq(code[0], i + 1);
		ck_assert_uint_eq(code[LARGE - 1], i + 1);
	}
	code_copies_deinit(&decoded);
	code_copies_deinit(&copies);
	buffer_deinit(&buffer);
}
END_TEST

/* Mappings that were read twice because they moved. */
START_TEST(overlapping_runs_are_ignored)
{
	struct code_copies copies = make_copies();
	struct process_code *process = &copies.processes.items[0];

	ck_assert(code_copies_add(process, 0x2002, sizeof(second), 0));
	ck_assert(code_copies_add(process, 0x1000, sizeof(second), 0));
	ck_assert_uint_eq(process->runs.count, 3);
	code_copies_deinit(&copies);
}
END_TEST

/* After an exec, other code is at the same address: each sample gets the code of the last program that started
 * before it. */
START_TEST(programs_of_one_process_are_distinguished)
{
	static const uint64_t ends[] = {500, UINT64_MAX, 300};
	struct code_copies copies = {0}, decoded = {0};
	struct buffer buffer;
	struct bytes bytes;

	buffer_init(&copies.bytes, 1024);
	for (size_t i = 0; i < 3; i++) {
		struct process_code *process = vector_append(&copies.processes);

		ck_assert_ptr_nonnull(process);
		process->pid = 42;
		process->until_ns = ends[i];
		add(&copies, process, 0x1000 + i, first, 1);
	}
	buffer_init(&buffer, 4096);
	ck_assert_ptr_null(code_copies_encode(&copies, NULL, &buffer));
	bytes = bytes_over(buffer.data, buffer.size);
	ck_assert_ptr_null(code_copies_decode(&bytes, &(size_t){LIMIT_UNPACKED_BYTES}, &decoded));
	ck_assert_uint_eq(code_copies_find(&decoded, 42, 0)->runs.items[0].start, 0x1002);
	ck_assert_uint_eq(code_copies_find(&decoded, 42, 299)->runs.items[0].start, 0x1002);
	ck_assert_uint_eq(code_copies_find(&decoded, 42, 300)->runs.items[0].start, 0x1000);
	ck_assert_uint_eq(code_copies_find(&decoded, 42, 500)->runs.items[0].start, 0x1001);
	ck_assert_ptr_null(code_copies_find(&decoded, 43, 0));
	code_copies_deinit(&decoded);
	code_copies_deinit(&copies);
	buffer_deinit(&buffer);
}
END_TEST

/* One run of eight bytes and its changes, as in version 2. */
static void put_changes(struct buffer *plain, uint32_t count, const uint64_t (*changes)[3])
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
		buffer_put(plain, "vwxyz", changes[i][1] < 5 ? changes[i][1] : 5);
	}
}

static struct mmt_error *decode_plain(struct buffer *plain, struct code_copies *copies)
{
	struct mmt_error *error;
	struct buffer buffer;
	struct bytes bytes;

	buffer_init(&buffer, 1 << 20); /* as large as the plain bytes of any test */
	/* Takes the plain bytes. */
	ck_assert_ptr_null(sections_pack(plain, 2, &buffer));
	bytes = bytes_over(buffer.data, buffer.size);
	error = code_copies_decode(&bytes, &(size_t){LIMIT_UNPACKED_BYTES}, copies);
	buffer_deinit(&buffer);
	return error;
}

static const uint64_t true_changes[][3] = {{0x1000, 3, 7}, {0x1006, 2, 7}};

START_TEST(changes_round_trip)
{
	struct code_copies copies = {0}, again = {0};
	const struct process_code *process;
	struct buffer plain, buffer;
	struct bytes bytes;

	buffer_init(&plain, 4096);
	put_changes(&plain, 2, true_changes);
	ck_assert_ptr_null(decode_plain(&plain, &copies));
	buffer_init(&buffer, 4096);
	ck_assert_ptr_null(code_copies_encode(&copies, NULL, &buffer));
	bytes = bytes_over(buffer.data, buffer.size);
	ck_assert_ptr_null(code_copies_decode(&bytes, &(size_t){LIMIT_UNPACKED_BYTES}, &again));
	process = code_copies_find(&again, 42, 0);
	ck_assert_uint_eq(process->changes.count, 2);
	for (size_t i = 0; i < 2; i++) {
		const struct code_change *change = &process->changes.items[i];

		ck_assert_uint_eq(change->start, true_changes[i][0]);
		ck_assert_uint_eq(change->size, true_changes[i][1]);
		ck_assert_uint_eq(change->until_ns, true_changes[i][2]);
		ck_assert_mem_eq(again.bytes.data + change->offset, "vwxyz", change->size);
	}
	buffer_deinit(&buffer);
	code_copies_deinit(&again);
	code_copies_deinit(&copies);
}
END_TEST

/* Outside all code, beyond its end, longer than all of it, out of order, more than there are. */
START_TEST(false_changes_are_refused)
{
	static const uint64_t changes[][2][3] = {
	    {{0x1000, 1, 7}, {0xfff, 1, 7}},	       {{0x1000, 1, 7}, {0x1008, 1, 7}},
	    {{0x1000, 1, 7}, {0x1006, 3, 7}},	       {{0x1000, 1, 7}, {UINT64_MAX, 2, 7}},
	    {{0x1000, 1, 7}, {0x1000, UINT64_MAX, 7}}, {{0x1000, 1, 7}, {0x1000, 1, 6}},
	    {{0x1000, 1, 7}, {0x1000, 0, 7}},	       {{0x1000, 1, 7}, {0x1000, 1, 7}},
	};
	struct code_copies copies = {0};
	struct buffer plain;
	struct mmt_error *error;

	buffer_init(&plain, 4096);
	put_changes(&plain, _i < 7 ? 2 : UINT32_MAX, changes[_i]);
	error = decode_plain(&plain, &copies);
	/* An empty change is ignored. */
	ck_assert((error == NULL) == (_i == 6));
	ck_assert_uint_eq(copies.processes.count, _i == 6);
	mmt_error_destroy(error);
	code_copies_deinit(&copies);
}
END_TEST

START_TEST(number_of_changes_is_limited)
{
	struct code_copies copies = {0};
	struct mmt_error *error;
	struct buffer plain;

	buffer_init(&plain, 1 << 20);
	put_changes(&plain, LIMIT_CODE_CHANGES + _i, true_changes);
	for (int i = 2; i < LIMIT_CODE_CHANGES + _i; i++) {
		buffer_put_u64(&plain, 0x1000);
		buffer_put_u64(&plain, 1);
		buffer_put_u64(&plain, 7);
		buffer_put_u8(&plain, 0xc3);
	}
	error = decode_plain(&plain, &copies);
	ck_assert((error != NULL) == _i);
	mmt_error_destroy(error);
	code_copies_deinit(&copies);
}
END_TEST

/* Any byte may change: what is decoded lies within code. */
START_TEST(random_changes_are_safe)
{
	static const uint8_t values[] = {0, 1, 2, 0x7f, 0x80, 0xff};
	struct buffer plain;
	size_t size = 1;

	for (size_t i = 0; i < size * sizeof(values); i++) {
		struct code_copies copies = {0};
		struct mmt_error *error;

		buffer_init(&plain, 4096);
		put_changes(&plain, 2, true_changes);
		size = plain.size;
		plain.data[i / sizeof(values)] = values[i % sizeof(values)];
		error = decode_plain(&plain, &copies);
		for (size_t j = 0; j < copies.processes.count; j++) {
			const struct process_code *process = &copies.processes.items[j];

			for (size_t k = 0; k < process->changes.count; k++) {
				const struct code_change *change = &process->changes.items[k];
				const uint8_t *code;

				ck_assert_uint_eq(code_copies_at(&copies, process, change->start, change->size, &code),
						  change->size);
				ck_assert_uint_le(change->offset + change->size, copies.bytes.size);
			}
		}
		mmt_error_destroy(error);
		code_copies_deinit(&copies);
	}
}
END_TEST

START_TEST(newer_versions_are_refused)
{
	struct code_copies copies = {0};
	struct buffer buffer;
	struct mmt_error *error;
	struct bytes bytes;

	encode(&buffer);
	buffer_patch_u32(&buffer, 0, 99);
	bytes = bytes_over(buffer.data, buffer.size);
	error = code_copies_decode(&bytes, &(size_t){LIMIT_UNPACKED_BYTES}, &copies);
	ck_assert_ptr_nonnull(error);
	ck_assert_int_eq(mmt_error_get_code(error), MMT_ERROR_UNSUPPORTED);
	mmt_error_destroy(error);
	buffer_deinit(&buffer);
}
END_TEST

START_TEST(modules_have_names)
{
	ck_assert(code_copies_is_jit("//anon") && code_copies_is_wanted("//anon"));
	ck_assert(code_copies_is_jit("/memfd:doublemapper (deleted)"));
	ck_assert(!code_copies_is_jit("/lib/libc.so.6") && !code_copies_is_wanted("/lib/libc.so.6"));
	ck_assert(!code_copies_is_jit("/app/A.dll") && code_copies_is_wanted("/app/A.dll"));
	ck_assert(!code_copies_is_wanted("/app.dll/program"));
}
END_TEST

Suite *test_suite(void)
{
	Suite *suite = suite_create("code-copies");
	TCase *tests = add_tcase(suite, "code-copies");

	tcase_add_tests(tests, round_trip, truncation_anywhere_is_refused);
	tcase_add_loop_test(tests, false_fields_are_refused, 0, 5);
	tcase_add_tests(tests, runs_may_be_stored_elsewhere, overlapping_runs_are_ignored,
			programs_of_one_process_are_distinguished, changes_round_trip);
	tcase_add_loop_test(tests, false_changes_are_refused, 0, 8);
	tcase_add_loop_test(tests, number_of_changes_is_limited, 0, 2);
	tcase_add_tests(tests, random_changes_are_safe, modules_have_names, newer_versions_are_refused);
	return suite;
}
