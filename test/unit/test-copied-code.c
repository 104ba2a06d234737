// SPDX-License-Identifier: LGPL-2.1-or-later
/* JIT code that was replaced, as it was at the time of a sample. */
#include "analysis/resolver/recorded-jit-code.h"

#include <check.h>
#include <elf.h>

#include "analysis/resolver/code-view-state.h"
#include "support/suite.h"

enum { PID = 42, START = 0x1000, ELSEWHERE = 0x2000, FIRST_NS = 100, SECOND_NS = 200 };

/* The two encodings of a prologue with a frame pointer, and code without. */
static const uint8_t one[] = {0x55, 0x48, 0x89, 0xe5}, other[] = {0x55, 0x48, 0x8b, 0xec};
static const uint8_t none[] = {0x90, 0x90, 0x90, 0x90, 0xc3, 0xc3};

static struct reader_metadata metadata;
static struct modules *modules;
static struct copied_code *copied;

static size_t put(const void *bytes, size_t size)
{
	buffer_put(&metadata.code.bytes, bytes, size);
	return metadata.code.bytes.size - size;
}

/* Up to FIRST_NS one function, up to SECOND_NS longer code without a frame pointer, then the other function. */
static void set_up(void)
{
	struct process_code *process;

	metadata = (struct reader_metadata){0};
	buffer_init(&metadata.code.bytes, 4096);
	process = vector_append(&metadata.code.processes);
	ck_assert_ptr_nonnull(process);
	process->pid = PID;
	process->until_ns = UINT64_MAX;
	ck_assert(code_copies_add(process, START, sizeof(other), put(other, sizeof(other))));
	ck_assert(code_copies_add(process, START + sizeof(other), 2, put(none, 2)));
	ck_assert(code_copies_add(process, ELSEWHERE, 1, put(none + 4, 1)));
	ck_assert(vector_push(&process->changes,
			      ((struct code_change){START, sizeof(one), put(one, sizeof(one)), FIRST_NS})));
	ck_assert(vector_push(&process->changes,
			      ((struct code_change){START, sizeof(none), put(none, sizeof(none)), SECOND_NS})));
	ck_assert_ptr_null(modules_create(EM_X86_64, true, &modules));
	ck_assert_ptr_null(copied_code_create(&metadata.code, metadata.code.processes.items, modules, &copied));
	ck_assert_ptr_nonnull(copied);
}

static void tear_down(void)
{
	copied_code_destroy(copied);
	modules_destroy(modules);
	code_copies_deinit(&metadata.code);
}

static void expect(uint64_t time_ns, uint64_t epoch, bool keeps)
{
	copied_code_go_to(copied, time_ns);
	ck_assert_uint_eq(copied_code_epoch(copied), epoch);
	ck_assert(copied_code_keeps_frame_pointer(copied, START, START + 4) == keeps);
	/* Part of the function has been executed. */
	ck_assert(!copied_code_keeps_frame_pointer(copied, START, START + 3));
	ck_assert(!copied_code_keeps_frame_pointer(copied, START + 1, START));
}

START_TEST(time_may_go_back)
{
	ck_assert_uint_eq(copied_code_epoch(copied), 2);
	for (int i = 0; i < 3; i++) {
		expect(UINT64_MAX, 2, true);
		expect(SECOND_NS, 1, false);
		expect(FIRST_NS, 0, true);
		expect(0, 0, true);
		expect(FIRST_NS + 1, 1, false);
		expect(SECOND_NS + 1, 2, true);
		expect(0, 0, true);
	}
}
END_TEST

/* Queries of one copy change nothing in another one. */
START_TEST(copies_are_independent)
{
	struct copied_code *second;

	expect(SECOND_NS, 1, false);
	ck_assert_ptr_null(copied_code_create(&metadata.code, metadata.code.processes.items, NULL, &second));
	ck_assert_uint_eq(copied_code_epoch(second), 2);
	ck_assert(copied_code_keeps_frame_pointer(second, START, START + 4));
	copied_code_destroy(second);
	expect(SECOND_NS, 1, false);
}
END_TEST

/* Rows are invalidated with the code they were derived from, and no others. */
START_TEST(rows_are_those_of_their_time)
{
	const struct cfi_row *same = copied_code_row(copied, 0, ELSEWHERE, false), *replaced;

	ck_assert_ptr_nonnull(same);
	ck_assert_ptr_null(copied_code_row(copied, 0, START, false));
	for (int i = 0; i < 3; i++) {
		copied_code_go_to(copied, SECOND_NS);
		replaced = copied_code_row(copied, 0, START, false);
		ck_assert_ptr_nonnull(replaced);
		ck_assert_ptr_eq(copied_code_row(copied, 0, START, false), replaced);
		ck_assert_int_eq(replaced->cfa_offset, 8);
		ck_assert_ptr_eq(copied_code_row(copied, 0, ELSEWHERE, false), same);
		copied_code_go_to(copied, SECOND_NS + 1);
		ck_assert_ptr_null(copied_code_row(copied, 0, START, false));
		ck_assert_ptr_eq(copied_code_row(copied, 0, ELSEWHERE, false), same);
		/* It was returned before. */
		ck_assert_int_eq(replaced->cfa_offset, 8);
	}
}
END_TEST

/* Two prologues of methods; what follows cannot be analysed. */
static const uint8_t pushed[] = {0x55, 0x48, 0x83, 0xec, 0x20, 0x06, 0x06, 0x06, 0x06, 0x06, 0x06, 0x06, 0x06};
static const uint8_t stored[] = {0x48, 0x81, 0xec, 0x28, 0x01, 0, 0, 0x48, 0x89, 0xac, 0x24, 0x20, 0x01, 0, 0, 0x06};
static const uint8_t lost[] = {0x48, 0x83, 0xec, 0x28, 0x48, 0x89, 0x6c, 0x24, 0x18, 0x06, 0x06, 0x06, 0x06, 0x06};

static const struct cfi_row *row_in(const uint8_t *code, size_t size, bool has_start)
{
	struct process_code *process = metadata.code.processes.items;
	uint64_t address = 0x10000 + 0x1000 * (uint64_t)(code == stored) + 0x2000 * (uint64_t)(code == lost);

	process->changes.count = 0;
	copied_code_destroy(copied);
	(void)code_copies_add(process, address, size, put(code, size));
	ck_assert_ptr_null(copied_code_create(&metadata.code, process, modules, &copied));
	return copied_code_row(copied, has_start ? address : 0, address + size, true);
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
	struct copied_code *nothing = NULL;

	copied_code_go_to(nothing, 0);
	ck_assert_uint_eq(copied_code_epoch(nothing), 0);
	ck_assert(!copied_code_keeps_frame_pointer(nothing, START, START + 4));
	copied_code_destroy(nothing);
}
END_TEST

/* If times alternate repeatedly, as in no recording, the code is reported as unknown. */
START_TEST(going_back_too_often_gives_no_code)
{
	copied_code_go_to(copied, 0);
	ck_assert_uint_eq(copied_code_epoch(copied), 0);
	ck_assert(!copied_code_gave_up(copied));
	ck_assert_ptr_nonnull(copied_code_row(copied, 0, ELSEWHERE, false));
	for (int i = 0; i < 1000; i++)
		copied_code_go_to(copied, i % 2 ? 0 : UINT64_MAX);
	ck_assert(copied_code_gave_up(copied));
	ck_assert_uint_gt(copied_code_epoch(copied), 2);
	ck_assert_ptr_null(copied_code_row(copied, 0, ELSEWHERE, false));
	ck_assert(!copied_code_keeps_frame_pointer(copied, START, START + 4));
	ck_assert_int_eq(copied_code_follows_call(copied, START + 4), -1);
}
END_TEST

/* Programs without recorded code need no memory, however many a process has executed. */
START_TEST(programs_that_share_a_copy)
{
	struct process_state state = {.pid = PID};
	struct code_view *view;
	struct copied_code *shared;

	metadata.architecture = architecture_find("x86_64");
	metadata.code.processes.items[0].until_ns = 1000;
	ck_assert_ptr_null(code_view_create(&metadata, false, &view));
	ck_assert(vector_push(&view->processes, state));
	shared = code_view_copied_code(view, 0, 0);
	ck_assert_ptr_nonnull(shared);
	ck_assert_ptr_eq(code_view_copied_code(view, 0, 500), shared);
	ck_assert_ptr_eq(code_view_copied_code(view, 0, 0), shared);
	ck_assert(!code_view_jit(view, 0).changed_too_often);
	for (int i = 0; i < 1000; i++)
		copied_code_go_to(shared, i % 2 ? 0 : UINT64_MAX);
	ck_assert(code_view_jit(view, 0).changed_too_often);
	ck_assert_ptr_null(code_view_copied_code(view, 0, 1000));
	code_view_destroy(view);
}
END_TEST

Suite *test_suite(void)
{
	Suite *suite = suite_create("copied code");
	TCase *tests = add_tcase(suite, "copied code");

	tcase_add_checked_fixture(tests, set_up, tear_down);
	tcase_add_tests(tests, time_may_go_back, copies_are_independent, rows_are_those_of_their_time,
			prologue_shows_the_frame, addresses_without_code, going_back_too_often_gives_no_code,
			programs_that_share_a_copy);
	return suite;
}
