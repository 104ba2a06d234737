// SPDX-License-Identifier: LGPL-2.1-or-later
#include <check.h>
#include <stdint.h>
#include <stdlib.h>

/* The tool is not a library: its code is compiled in. */
#include "../../cmd/cli/message.c"
#include "../../cmd/cli/options.c"
#include "../../cmd/stop-condition.c"
#include "support/suite.h"

static struct stop_conditions of(const char *text)
{
	struct stop_conditions conditions = {0};

	ck_assert_ptr_null(stop_condition_parse(text, &conditions));
	return conditions;
}

static const char *const refused[] = {"",	"rss",	     "rss>",	 "oom>1%", "psi>0%", "psi>100%",
				      "psi>20", "mappings>", "group>1M", "rss>1%", "oom/1s", "other>1%"};

START_TEST(these_are_refused)
{
	struct stop_conditions conditions = {0};

	ck_assert_ptr_nonnull(stop_condition_parse(refused[_i], &conditions));
	ck_assert_uint_eq(conditions.count, 0);
}
END_TEST

/* Pressure is the share of the last ten checks, whatever it was before the recording. */
START_TEST(memory_pressure)
{
	struct stop_conditions conditions = of("psi>20%");
	struct mmt_record_progress progress = {.stalled_known = true};

	for (unsigned second = 1; second < 40; second++) {
		progress.elapsed_ns = second * SECOND_NS;
		progress.stalled_ns = 1000 * SECOND_NS + second * SECOND_NS / 10;
		ck_assert_ptr_null(stop_condition_check(&conditions, &progress, NULL, 0));
	}
	for (unsigned second = 1; second <= 2; second++) {
		progress.elapsed_ns += SECOND_NS;
		progress.stalled_ns += SECOND_NS * 9 / 10;
		if (second < 2)
			ck_assert_ptr_null(stop_condition_check(&conditions, &progress, NULL, 0));
	}
	ck_assert_str_eq(stop_condition_check(&conditions, &progress, NULL, 0), "psi>20%");
}
END_TEST

/* It is unknown at first, and one that holds from the start is not met. */
START_TEST(share_of_mappings)
{
	struct stop_conditions conditions = of("mappings>90%");
	struct mmt_record_progress progress = {.elapsed_ns = 1};

	ck_assert_ptr_null(stop_condition_check(&conditions, &progress, NULL, 0));
	progress.mapping_limit = 65530;
	progress.mappings = 60000;
	ck_assert_ptr_null(stop_condition_check(&conditions, &progress, NULL, 0));
	progress.mappings = 58000;
	ck_assert_ptr_null(stop_condition_check(&conditions, &progress, NULL, 0));
	progress.mappings = 60000;
	ck_assert_str_eq(stop_condition_check(&conditions, &progress, NULL, 0), "mappings>90%");
	ck_assert_ptr_null(stop_condition_check(&conditions, &progress, NULL, 0));
}
END_TEST

/* Also one before the first check. */
START_TEST(oom_kill)
{
	struct stop_conditions conditions = of("oom");
	struct mmt_record_progress progress = {.oom_killed = true};

	ck_assert_str_eq(stop_condition_check(&conditions, &progress, NULL, 0), "oom");
	ck_assert_ptr_null(stop_condition_check(&conditions, &progress, NULL, 0));
}
END_TEST

Suite *test_suite(void)
{
	Suite *suite = suite_create("stop-condition");
	TCase *cases = add_tcase(suite, "stop-condition");

	tcase_add_loop_test(cases, these_are_refused, 0, (int)(sizeof(refused) / sizeof(refused[0])));
	tcase_add_tests(cases, memory_pressure, share_of_mappings, oom_kill);
	return suite;
}
