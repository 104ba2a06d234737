// SPDX-License-Identifier: LGPL-2.1-or-later
/* Which program of a process JIT code belongs to, with records in any order. */
#include <check.h>
#include <sys/mman.h>

#include "capture/jit-code/jit-code.h"
#include "capture/recorder.h"
#include "support/suite.h"

enum { PID = 42 };

static struct mmt_record_options options;
static struct recorder recorder;

static void set_up(void)
{
	options = (struct mmt_record_options){.code = MMT_CODE_ALL};
	recorder = (struct recorder){.options = &options};
}

static void tear_down(void)
{
	jit_code_deinit(&recorder.jobs.jit_code);
}

static void note(uint64_t start, uint64_t time_ns, uint32_t protection, const char *path)
{
	const struct jit_mapping mapping = {PID, start, start + 1, time_ns, protection, path, false};

	ck_assert_ptr_null(jit_code_note(&recorder, &mapping));
}

static void expect_programs(size_t count)
{
	ck_assert_uint_eq(recorder.jobs.jit_code.programs.count, count);
}

/* With at most one range. */
static void expect_program(size_t index, uint64_t until_ns, bool ended, uint64_t start)
{
	const struct jit_program *program;

	ck_assert_uint_lt(index, recorder.jobs.jit_code.programs.count);
	program = &recorder.jobs.jit_code.programs.items[index];
	ck_assert_uint_eq(program->until_ns, until_ns);
	ck_assert(program->ended == ended);
	ck_assert_uint_eq(program->ranges.count, start != 0);
	if (start)
		ck_assert_uint_eq(code_ranges_from(&program->ranges, 0)->start, start);
}

/* As when its memory was opened then. */
static void open_at(size_t index, uint64_t time_ns)
{
	recorder.jobs.jit_code.programs.items[index].opened = true;
	recorder.jobs.jit_code.programs.items[index].opened_ns = time_ns;
}

START_TEST(executable_ranges_are_noted)
{
	note(1, 100, PROT_READ, "//anon");
	note(2, 100, PROT_READ | PROT_EXEC, "/usr/lib/libc.so.6");
	expect_programs(0);
	note(3, 100, PROT_READ | PROT_EXEC, "//anon");
	expect_program(0, UINT64_MAX, false, 3);
	note(3, 200, PROT_READ, "//anon");
	expect_program(0, UINT64_MAX, false, 0);
	options.code = MMT_CODE_NONE;
	note(3, 300, PROT_READ | PROT_EXEC, "//anon");
	expect_program(0, UINT64_MAX, false, 0);
	expect_programs(1);
}
END_TEST

START_TEST(records_in_time_order)
{
	note(1, 100, PROT_EXEC, "");
	open_at(0, 150);
	ck_assert_ptr_null(jit_code_end_program(&recorder, PID, 200));
	expect_programs(1);
	expect_program(0, 200, true, 0);
	note(3, 300, PROT_EXEC, "");
	expect_programs(2);
	expect_program(1, UINT64_MAX, false, 3);
	ck_assert_ptr_null(jit_code_end_program(&recorder, PID + 1, 400));
	expect_program(1, UINT64_MAX, false, 3);
}
END_TEST

/* The new program's code is reported before its exec. */
START_TEST(late_exec_record)
{
	note(1, 100, PROT_EXEC, "");
	open_at(0, 150);
	note(3, 300, PROT_EXEC, "");
	ck_assert_ptr_null(jit_code_end_program(&recorder, PID, 200));
	expect_programs(2);
	expect_program(0, 200, true, 0);
	expect_program(1, UINT64_MAX, false, 3);
	note(4, 400, PROT_EXEC, "");
	expect_programs(2);
}
END_TEST

/* Nothing was read of the old program: all code is the new one's. */
START_TEST(exec_record_after_reading)
{
	note(1, 100, PROT_EXEC, "");
	note(3, 300, PROT_EXEC, "");
	open_at(0, 350);
	ck_assert_ptr_null(jit_code_end_program(&recorder, PID, 200));
	expect_programs(1);
	expect_program(0, UINT64_MAX, false, 3);
}
END_TEST

/* A late record of data that preceded the code does not replace it. */
START_TEST(records_in_any_order)
{
	note(1, 300, PROT_EXEC, "");
	note(1, 200, PROT_READ, "");
	expect_program(0, UINT64_MAX, false, 1);
	note(1, 400, PROT_READ, "");
	expect_program(0, UINT64_MAX, false, 0);
}
END_TEST

START_TEST(exec_before_anything_is_read)
{
	note(1, 100, PROT_EXEC, "");
	ck_assert_ptr_null(jit_code_end_program(&recorder, PID, 200));
	expect_programs(1);
	expect_program(0, UINT64_MAX, false, 0);
}
END_TEST

/* Its PID is reused. */
START_TEST(reused_pid)
{
	note(1, 100, PROT_EXEC, "");
	jit_code_end_process(&recorder, PID);
	expect_program(0, UINT64_MAX, true, 0);
	ck_assert_ptr_null(jit_code_end_program(&recorder, PID, 200));
	expect_program(0, 200, true, 0);
	note(3, 300, PROT_EXEC, "");
	expect_program(1, UINT64_MAX, false, 3);
}
END_TEST

Suite *test_suite(void)
{
	Suite *suite = suite_create("jit-code");
	TCase *tests = add_tcase(suite, "JIT code");

	tcase_add_checked_fixture(tests, set_up, tear_down);
	tcase_add_tests(tests, executable_ranges_are_noted, records_in_time_order, late_exec_record,
			exec_record_after_reading, records_in_any_order, exec_before_anything_is_read, reused_pid);
	return suite;
}
