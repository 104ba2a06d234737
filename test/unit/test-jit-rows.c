// SPDX-License-Identifier: LGPL-2.1-or-later
/* How to unwind JIT code by its latest recorded bytes. */
#include "analysis/resolver/resolver-state.h"

#include <check.h>
#include <elf.h>

#include "analysis/resolver/resolver-state.h"
#include "support/suite.h"

enum { PID = 42, START = 0x1000, ELSEWHERE = 0x2000 };

/* The two encodings of a prologue with a frame pointer, and code without. */
static const uint8_t one[] = {0x55, 0x48, 0x89, 0xe5}, other[] = {0x55, 0x48, 0x8b, 0xec}, none[] = {0x90, 0xc3};

static struct reader_metadata metadata;
static struct modules *modules;
static struct jit_rows *rows;

static void put(uint64_t address, const void *bytes, size_t size)
{
	const struct jit_code_run run = {address, size, metadata.code.bytes.size};

	buffer_put(&metadata.code.bytes, bytes, size);
	ck_assert(vector_push(&metadata.code.programs.items[0].runs, run));
}

static void set_up(void)
{
	struct jit_code_program *program;

	metadata = (struct reader_metadata){0};
	buffer_init(&metadata.code.bytes, 4096);
	program = vector_append(&metadata.code.programs);
	ck_assert_ptr_nonnull(program);
	program->pid = PID;
	program->until_ns = UINT64_MAX;
	put(START, one, sizeof(one));
	put(START + sizeof(one), other, sizeof(other));
	put(ELSEWHERE, none, sizeof(none));
	ck_assert_ptr_null(modules_create(EM_X86_64, true, &modules));
	rows = jit_rows_create(&metadata.code, program, modules);
	ck_assert_ptr_nonnull(rows);
}

static void tear_down(void)
{
	jit_rows_destroy(rows);
	modules_destroy(modules);
	section_code.deinit(&metadata.code);
}

START_TEST(prologue_keeps_the_frame_pointer)
{
	ck_assert(jit_rows_keep_frame_pointer(rows, START, START + 4));
	ck_assert(jit_rows_keep_frame_pointer(rows, START + 4, START + 8));
	ck_assert(!jit_rows_keep_frame_pointer(rows, ELSEWHERE, ELSEWHERE + 2));
	/* Part of the function has been executed. */
	ck_assert(!jit_rows_keep_frame_pointer(rows, START, START + 3));
	ck_assert(!jit_rows_keep_frame_pointer(rows, START + 1, START));
}
END_TEST

/* An analysis without a result is not repeated either. */
START_TEST(rows_are_found_once)
{
	const struct cfi_row *row = jit_rows_find(rows, 0, ELSEWHERE, false);

	ck_assert_ptr_nonnull(row);
	ck_assert_int_eq(row->cfa_offset, 8);
	ck_assert(row->unsure);
	ck_assert_ptr_eq(jit_rows_find(rows, 0, ELSEWHERE, false), row);
	for (int i = 0; i < 2; i++)
		ck_assert_ptr_null(jit_rows_find(rows, 0, 3 * ELSEWHERE, false));
}
END_TEST

/* Two prologues of methods; what follows cannot be analysed. */
static const uint8_t pushed[] = {0x55, 0x48, 0x83, 0xec, 0x20, 0x06, 0x06, 0x06, 0x06, 0x06, 0x06, 0x06, 0x06};
static const uint8_t stored[] = {0x48, 0x81, 0xec, 0x28, 0x01, 0, 0, 0x48, 0x89, 0xac, 0x24, 0x20, 0x01, 0, 0, 0x06};
static const uint8_t lost[] = {0x48, 0x83, 0xec, 0x28, 0x48, 0x89, 0x6c, 0x24, 0x18, 0x06, 0x06, 0x06, 0x06, 0x06};

static const struct cfi_row *row_in(const uint8_t *code, size_t size, bool has_start)
{
	struct jit_code_program *program = metadata.code.programs.items;
	uint64_t address = 0x10000 + 0x1000 * (uint64_t)(code == stored) + 0x2000 * (uint64_t)(code == lost);

	jit_rows_destroy(rows);
	put(address, code, size);
	rows = jit_rows_create(&metadata.code, program, modules);
	ck_assert_ptr_nonnull(rows);
	return jit_rows_find(rows, has_start ? address : 0, address + size, true);
}

/* A method that is too large to be analysed has a frame of the size that its prologue shows. */
START_TEST(prologue_shows_the_frame)
{
	const struct cfi_row *row = row_in(pushed, sizeof(pushed), true);

	ck_assert_ptr_nonnull(row);
	ck_assert_uint_eq(row->cfa_register, 7);
	ck_assert_int_eq(row->cfa_offset, 0x20 + 16);
	ck_assert_int_eq(cfi_row_rule(row, 6)->offset, -16);
	ck_assert_int_eq(cfi_row_rule(row, 16)->offset, -8);
	ck_assert(row->unsure);
	row = row_in(stored, sizeof(stored), true);
	ck_assert_ptr_nonnull(row);
	ck_assert_int_eq(row->cfa_offset, 0x128 + 8);
	ck_assert_ptr_null(row_in(lost, sizeof(lost), true));
	ck_assert_ptr_null(row_in(pushed, sizeof(pushed), false));
}
END_TEST

START_TEST(addresses_without_code)
{
	ck_assert(!jit_rows_keep_frame_pointer(NULL, START, START + 4));
	ck_assert_int_eq(jit_rows_follow_call(NULL, START + 4), -1);
	ck_assert_int_eq(jit_rows_follow_call(rows, 3 * ELSEWHERE), -1);
	jit_rows_destroy(NULL);
}
END_TEST

/* Programs without recorded code need no memory, however many a process has executed. */
START_TEST(programs_that_share_a_copy)
{
	struct process_state state = {.pid = PID};
	struct resolver *resolver;
	struct jit_rows *shared;

	metadata.architecture = architecture_find("x86_64");
	metadata.code.programs.items[0].until_ns = 1000;
	ck_assert_ptr_null(resolver_create(&metadata, false, UINT64_MAX, &resolver));
	ck_assert(vector_push(&resolver->processes, state));
	shared = resolver_jit_rows(resolver, 0, 0);
	ck_assert_ptr_nonnull(shared);
	ck_assert_ptr_eq(resolver_jit_rows(resolver, 0, 500), shared);
	ck_assert_ptr_eq(resolver_jit_rows(resolver, 0, 0), shared);
	ck_assert_ptr_null(resolver_jit_rows(resolver, 0, 1000));
	resolver_destroy(resolver);
}
END_TEST

Suite *test_suite(void)
{
	Suite *suite = suite_create("jit-rows");
	TCase *tests = add_tcase(suite, "jit-rows");

	tcase_add_checked_fixture(tests, set_up, tear_down);
	tcase_add_tests(tests, prologue_keeps_the_frame_pointer, rows_are_found_once, prologue_shows_the_frame,
			addresses_without_code, programs_that_share_a_copy);
	return suite;
}
