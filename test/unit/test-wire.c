// SPDX-License-Identifier: LGPL-2.1-or-later
#include "trace/format/wire.h"

#include <check.h>

#include "analysis/resolver/resolver.h"
#include "support/suite.h"

/* The numbers in mmtrace-file(5): recordings with these numbers exist. */
START_TEST(numbers_match_the_manual)
{
	ck_assert_int_eq(wire_call_graph(MMT_CALL_GRAPH_AUTO), 0);
	ck_assert_int_eq(wire_call_graph(MMT_CALL_GRAPH_NONE), 3);
	ck_assert_int_eq(wire_record_end(MMT_RECORD_END_WRITE_FAILED), 3);
	ck_assert_int_eq(wire_record_end(MMT_RECORD_END_SIZE), 4);
	ck_assert_int_eq(wire_stack_end(MMT_STACK_END_NO_UNWIND_DATA), 3);
	ck_assert_int_eq(wire_stack_end(MMT_STACK_END_COROUTINE), 8);
	ck_assert_int_eq(wire_frame_kind(MMT_FRAME_UNKNOWN), 2);
	ck_assert_int_eq(wire_program_state(MODULE_MISSING), 2);
	ck_assert_int_eq(wire_program_state(MODULE_MISSING_NAMES), 8);
	ck_assert_int_eq(wire_program_state(MODULE_UNREAD_NAMES), 9);
	ck_assert_int_eq(wire_program_state(MODULE_SLOW_NAMES), 10);
}
END_TEST

START_TEST(values_round_trip)
{
	for (unsigned i = 0; i < MMT_STACK_END_KINDS; i++)
		ck_assert_uint_eq(wire_to_stack_end(wire_stack_end((enum mmt_stack_end)i)), i);
	for (unsigned i = 0; i <= MMT_FRAME_UNKNOWN; i++)
		ck_assert_uint_eq(wire_to_frame_kind(wire_frame_kind((enum mmt_frame_kind)i)), i);
	for (unsigned i = MODULE_MISSING; i <= MODULE_UNREAD_NAMES; i++)
		ck_assert_uint_eq(wire_to_program_state(wire_program_state((enum module_state)i)), i);
}
END_TEST

START_TEST(unknown_numbers_become_something)
{
	ck_assert_int_eq(wire_to_stack_end((enum wire_stack_end)77), MMT_STACK_END_INVALID);
	ck_assert_int_eq(wire_to_stack_end(WIRE_STACK_END_LOST), MMT_STACK_END_INVALID);
	ck_assert_int_eq(wire_to_frame_kind((enum wire_frame_kind)77), MMT_FRAME_UNKNOWN);
	ck_assert_int_eq(wire_to_program_state((enum wire_program_state)0), MODULE_BROKEN);
}
END_TEST

Suite *test_suite(void)
{
	Suite *suite = suite_create("wire");
	TCase *cases = add_tcase(suite, "numbers");

	tcase_add_tests(cases, numbers_match_the_manual, values_round_trip, unknown_numbers_become_something);
	return suite;
}
