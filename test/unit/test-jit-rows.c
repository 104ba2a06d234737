// SPDX-License-Identifier: LGPL-2.1-or-later
/* How to unwind JIT code by its latest recorded bytes, and which of them replaced others after a sample. */
#include "analysis/resolver/jit-rows.h"

#include <check.h>
#include <elf.h>
#include <sys/mman.h>

#include "analysis/resolver/resolver-state.h"
#include "support/suite.h"

enum { PID = 42, START = 0x1000, ELSEWHERE = 0x2000, FIRST_NS = 100, SECOND_NS = 200 };

/* The two encodings of a prologue with a frame pointer, and code without. */
static const uint8_t one[] = {0x55, 0x48, 0x89, 0xe5}, other[] = {0x55, 0x48, 0x8b, 0xec}, none[] = {0x90, 0xc3};

static struct reader_metadata metadata;
static struct modules *modules;
static struct jit_rows *rows;

static size_t put(const void *bytes, size_t size)
{
	buffer_put(&metadata.code.bytes, bytes, size);
	return metadata.code.bytes.size - size;
}

/* A function that replaced another one up to FIRST_NS, one after it that did so up to SECOND_NS, and one that did not.
 */
static void set_up(void)
{
	struct jit_code_program *program;

	metadata = (struct reader_metadata){0};
	buffer_init(&metadata.code.bytes, 4096);
	program = vector_append(&metadata.code.programs);
	ck_assert_ptr_nonnull(program);
	program->pid = PID;
	program->until_ns = UINT64_MAX;
	ck_assert(jit_code_add(program, START, sizeof(one), put(one, sizeof(one))));
	ck_assert(jit_code_add(program, START + sizeof(one), sizeof(other), put(other, sizeof(other))));
	ck_assert(jit_code_add(program, ELSEWHERE, sizeof(none), put(none, sizeof(none))));
	ck_assert(vector_push(&program->changes, ((struct jit_code_change){START, sizeof(one), FIRST_NS})));
	ck_assert(
	    vector_push(&program->changes, ((struct jit_code_change){START + sizeof(one), sizeof(other), SECOND_NS})));
	ck_assert_ptr_null(modules_create(EM_X86_64, true, &modules));
	rows = jit_rows_create(&metadata.code, program, modules);
	ck_assert_ptr_nonnull(rows);
}

static void tear_down(void)
{
	jit_rows_destroy(rows);
	modules_destroy(modules);
	jit_code_deinit(&metadata.code);
}

START_TEST(replaced_code_is_known_by_time)
{
	ck_assert(jit_rows_replaced_after(rows, START, FIRST_NS));
	ck_assert(!jit_rows_replaced_after(rows, START, FIRST_NS + 1));
	ck_assert(jit_rows_replaced_after(rows, START + sizeof(one), FIRST_NS + 1));
	ck_assert(!jit_rows_replaced_after(rows, START + sizeof(one), SECOND_NS + 1));
	ck_assert(!jit_rows_replaced_after(rows, ELSEWHERE, 0));
	ck_assert_uint_eq(jit_rows_epoch(rows, 0), 0);
	ck_assert_uint_eq(jit_rows_epoch(rows, FIRST_NS), 0);
	ck_assert_uint_eq(jit_rows_epoch(rows, FIRST_NS + 1), 1);
	ck_assert_uint_eq(jit_rows_epoch(rows, SECOND_NS + 1), 2);
}
END_TEST

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
	(void)jit_code_add(program, address, size, put(code, size));
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
	ck_assert_uint_eq(jit_rows_epoch(NULL, 0), 0);
	ck_assert(!jit_rows_replaced_after(NULL, START, 0));
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
	ck_assert_ptr_null(resolver_create(&metadata, false, &resolver));
	ck_assert(vector_push(&resolver->processes, state));
	shared = resolver_jit_rows(resolver, 0, 0);
	ck_assert_ptr_nonnull(shared);
	ck_assert_ptr_eq(resolver_jit_rows(resolver, 0, 500), shared);
	ck_assert_ptr_eq(resolver_jit_rows(resolver, 0, 0), shared);
	ck_assert_ptr_null(resolver_jit_rows(resolver, 0, 1000));
	resolver_destroy(resolver);
}
END_TEST

/* A function at CODE, called by one at CALLER, neither of which has a frame pointer. */
enum { CODE = 0x100000, CALLER = CODE + 0x100, CODE_END = CODE + 0x1000, STACK = 0x200000 };

static const uint8_t frameless[] = {0x48, 0x83, 0xec, 0x18, 0xff, 0xd0, 0x48, 0x83, 0xc4, 0x18, 0xc3};

static struct space *map_code(uint32_t path)
{
	const struct space_options options = {.page_bytes = 4096};
	const struct space_attributes attributes = {.protection = PROT_READ | PROT_EXEC, .path = path};
	struct space *space;

	ck_assert_ptr_null(space_create(&options, &space));
	ck_assert_ptr_null(space_snapshot_begin(space, SPACE_SNAPSHOT_DEFINE, ALLOCATION_BEFORE, 1));
	ck_assert_ptr_null(space_snapshot_line(space, 1, CODE, CODE_END, &attributes));
	ck_assert_ptr_null(space_snapshot_end(space, 1));
	return space;
}

/* Unwinds a stack whose first frame is between the two instructions of the function that change the stack pointer. */
static bool is_doubtful(struct resolver *resolver, const struct process *process, uint64_t time_ns)
{
	const uint64_t words[8] = {[3] = CALLER + 6};
	struct event_stack stack = {.time_ns = time_ns,
				    .registers = {.known = 1u << 7 | 1u << 16},
				    .bytes = (const uint8_t *)words,
				    .byte_count = sizeof(words),
				    .bytes_wanted = sizeof(words)};
	enum mmt_stack_end end;
	uint32_t number;
	size_t count;

	stack.registers.values[7] = STACK;
	stack.registers.values[16] = CODE + 6;
	ck_assert_ptr_null(resolver_unwind(resolver, process, &stack, &number));
	(void)resolver_stack(resolver, number, &count, &end);
	ck_assert_uint_eq(count, 2);
	return resolver_stack_is_doubtful(resolver, number);
}

/* The bytes of the first frame give the caller of a sample that was taken before they were written, but only as a
 * guess. */
START_TEST(callers_by_later_code_are_doubtful)
{
	struct jit_code_program *program = metadata.code.programs.items;
	struct process process = {.pid = PID};
	struct resolver *resolver;
	uint32_t path;

	metadata.architecture = architecture_find("x86_64");
	ck_assert(jit_code_add(program, CODE, sizeof(frameless), put(frameless, sizeof(frameless))));
	ck_assert(jit_code_add(program, CALLER, sizeof(frameless), put(frameless, sizeof(frameless))));
	ck_assert(vector_push(&program->changes, ((struct jit_code_change){CODE, sizeof(frameless), SECOND_NS})));
	ck_assert_ptr_null(resolver_create(&metadata, false, &resolver));
	ck_assert_ptr_null(resolver_path(resolver, "//anon", &path));
	process.space = map_code(path);
	for (int i = 0; i < 2; i++) {
		ck_assert(!is_doubtful(resolver, &process, SECOND_NS + 1));
		ck_assert(resolver_jit(resolver, 0).code_replaced == (i > 0));
		ck_assert(is_doubtful(resolver, &process, SECOND_NS));
		ck_assert(resolver_jit(resolver, 0).code_replaced);
	}
	space_destroy(process.space);
	resolver_destroy(resolver);
}
END_TEST

Suite *test_suite(void)
{
	Suite *suite = suite_create("jit-rows");
	TCase *tests = add_tcase(suite, "jit-rows");

	tcase_add_checked_fixture(tests, set_up, tear_down);
	tcase_add_tests(tests, replaced_code_is_known_by_time, prologue_keeps_the_frame_pointer, rows_are_found_once,
			prologue_shows_the_frame, addresses_without_code, programs_that_share_a_copy,
			callers_by_later_code_are_doubtful);
	return suite;
}
