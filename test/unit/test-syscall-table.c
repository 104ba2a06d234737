// SPDX-License-Identifier: LGPL-2.1-or-later
#include "base/syscall-table.h"

#include <check.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "support/suite.h"

START_TEST(calls_are_known_by_their_tracepoints)
{
	enum call call;
	bool enter;

	for (size_t i = 0; i < CALL_KINDS; i++) {
		char name[64];

		snprintf(name, sizeof(name), "sys_exit_%s", call_describe((enum call)i)->name);
		ck_assert(call_find_tracepoint(name, &call, &enter));
		ck_assert_uint_eq(call, i);
		ck_assert(!enter);
		ck_assert(call_find(call_describe((enum call)i)->name, &call));
		ck_assert_uint_eq(call, i);
	}
	ck_assert(call_find_tracepoint("sys_enter_munmap", &call, &enter));
	ck_assert_uint_eq(call, CALL_MUNMAP);
	ck_assert(enter);
	ck_assert(!call_find_tracepoint("sys_exit_mmap2", &call, &enter));
	ck_assert(!call_find_tracepoint("mmap", &call, &enter));
	ck_assert(!call_find("mmap2", &call));
}
END_TEST

/* An argument named by a row must exist in the call. */
START_TEST(rows_are_consistent)
{
	for (size_t i = 0; i < CALL_KINDS; i++) {
		const struct call_description *row = call_describe((enum call)i);

		ck_assert_uint_ge(row->arguments, 1);
		ck_assert_uint_le(row->arguments, 6);
		ck_assert_uint_le(row->length, row->arguments);
		ck_assert_uint_le(row->flags, row->arguments);
		ck_assert_uint_le(row->conditional, row->arguments);
		ck_assert(!row->conditional == !row->condition);
		ck_assert(!row->conditional || row->flags);
		ck_assert_uint_lt(row->counter, MMT_COUNT_KINDS);
	}
}
END_TEST

START_TEST(every_counter_has_a_name)
{
	ck_assert_str_eq(mmt_event_count_name(MMT_COUNT_MPROTECT), "mprotect");
	ck_assert_str_eq(mmt_event_count_name(MMT_COUNT_OTHER_CALLS), "other");
	ck_assert_str_eq(mmt_event_count_name(MMT_COUNT_KINDS), "");
	for (unsigned i = 0; i < MMT_COUNT_KINDS; i++) {
		ck_assert_str_ne(mmt_event_count_name(i), "");
		for (unsigned j = 0; j < i; j++)
			ck_assert_str_ne(mmt_event_count_name(i), mmt_event_count_name(j));
	}
}
END_TEST

START_TEST(unchanged_break_is_a_failure)
{
	const uint64_t arguments[6] = {0x555500003000};

	ck_assert(!call_has_failed(CALL_BRK, arguments, 0x555500003000));
	ck_assert(call_has_failed(CALL_BRK, arguments, 0x555500001000));
	ck_assert_int_eq(call_errno(CALL_BRK, 0x555500001000), ENOMEM);
	ck_assert_uint_eq(call_bytes_asked(CALL_BRK, arguments, 0x555500001000), 0x2000);
}
END_TEST

START_TEST(other_calls_return_errors)
{
	const uint64_t arguments[6] = {0x1000, 0x2000, 0x3000};

	ck_assert(!call_has_failed(CALL_MMAP, arguments, 0x7f0000000000));
	ck_assert(!call_has_failed(CALL_MMAP, arguments, -4096));
	ck_assert(call_has_failed(CALL_MMAP, arguments, -EEXIST));
	ck_assert_int_eq(call_errno(CALL_MMAP, -EEXIST), EEXIST);
	ck_assert_uint_eq(call_bytes_asked(CALL_MMAP, arguments, -EEXIST), 0x2000);
	ck_assert_uint_eq(call_bytes_asked(CALL_MREMAP, arguments, -EFAULT), 0x3000);
	ck_assert_uint_eq(call_bytes_asked(CALL_SHMAT, arguments, -EINVAL), 0);
}
END_TEST

START_TEST(mremap_reads_the_new_address_only_with_some_flags)
{
	uint64_t arguments[6] = {[3] = MREMAP_MAYMOVE};

	ck_assert_uint_eq(call_arguments_used(CALL_MREMAP, arguments), 0xf);
	arguments[3] |= MREMAP_FIXED;
	ck_assert_uint_eq(call_arguments_used(CALL_MREMAP, arguments), 0x1f);
	ck_assert_uint_eq(call_arguments_used(CALL_MMAP, arguments), 0x3f);
}
END_TEST

Suite *test_suite(void)
{
	Suite *suite = suite_create("calls");
	TCase *cases = add_tcase(suite, "table");

	tcase_add_tests(cases, calls_are_known_by_their_tracepoints, rows_are_consistent, every_counter_has_a_name,
			unchanged_break_is_a_failure, other_calls_return_errors,
			mremap_reads_the_new_address_only_with_some_flags);
	return suite;
}
