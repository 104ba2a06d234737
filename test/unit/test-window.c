// SPDX-License-Identifier: LGPL-2.1-or-later
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/replay/recording-notes.h"
#include "support/suite.h"

#define SECOND 1000000000ull
#define START (5 * SECOND)
#define END (65 * SECOND)
#define REALTIME (1763719923ull * SECOND + 400000000) /* 2025-11-21 10:12:03.4 UTC */
#define MIDNIGHT 1763683200ull

static const struct {
	struct mmt_timestamp from, to;
	uint64_t min_age_ns;
	uint64_t from_ns, allocations_to_ns, to_ns;
	bool windowed, ends_early;
} cases[] = {
    {{0}, {0}, 0, START, UINT64_MAX, END, false, false},
    {{MMT_TIMESTAMP_SINCE_START, 10 * SECOND}, {0}, 0, START + 10 * SECOND, UINT64_MAX, END, true, false},
    {{MMT_TIMESTAMP_BEFORE_END, 10 * SECOND}, {0}, 0, END - 10 * SECOND, UINT64_MAX, END, true, false},
    {{0}, {MMT_TIMESTAMP_CLOCK, 20 * SECOND}, 0, START, UINT64_MAX, 20 * SECOND, true, true},
    {{MMT_TIMESTAMP_REALTIME, (MIDNIGHT + 36733) * SECOND}, {0}, 0, START + 9600000000, UINT64_MAX, END, true, false},
    {{MMT_TIMESTAMP_TIME_OF_DAY, 36733 * SECOND}, {0}, 0, START + 9600000000, UINT64_MAX, END, true, false},
    {{MMT_TIMESTAMP_TIME_OF_DAY, 36723 * SECOND}, {0}, 0, START, UINT64_MAX, END, true, false},
    {{0}, {0}, 10 * SECOND, START, END - 10 * SECOND, END, true, false},
    {{MMT_TIMESTAMP_SINCE_START, 20 * SECOND},
     {0},
     10 * SECOND,
     START + 20 * SECOND,
     END - 10 * SECOND,
     END,
     true,
     false},
};

START_TEST(windows)
{
	struct mmt_report_options options = {
	    .from = cases[_i].from, .to = cases[_i].to, .min_age_ns = cases[_i].min_age_ns};
	struct window window;

	ck_assert_ptr_null(window_resolve(&options, START, END, REALTIME, &window));
	ck_assert_uint_eq(window.from_ns, cases[_i].from_ns);
	ck_assert_uint_eq(window.allocations_to_ns, cases[_i].allocations_to_ns);
	ck_assert_uint_eq(window.to_ns, cases[_i].to_ns);
	ck_assert_int_eq(window.windowed, cases[_i].windowed);
	ck_assert_int_eq(window.ends_early, cases[_i].ends_early);
}
END_TEST

static const struct {
	struct mmt_timestamp from, to;
	uint64_t min_age_ns;
	uint64_t realtime_ns;
	const char *says;
} refused[] = {
    {{MMT_TIMESTAMP_SINCE_START, 61 * SECOND},
     {0},
     0,
     REALTIME,
     "--from lies outside the recording, which is 60.000 s"},
    {{MMT_TIMESTAMP_SINCE_START, UINT64_MAX}, {0}, 0, REALTIME, "--from lies outside"},
    {{0}, {MMT_TIMESTAMP_BEFORE_END, 61 * SECOND}, 0, REALTIME, "--to lies outside"},
    {{0}, {MMT_TIMESTAMP_BEFORE_END, UINT64_MAX}, 0, REALTIME, "--to lies outside"},
    {{0}, {MMT_TIMESTAMP_CLOCK, 4 * SECOND}, 0, REALTIME, "@5000000000 to @65000000000"},
    {{MMT_TIMESTAMP_TIME_OF_DAY, 36722 * SECOND}, {0}, 0, REALTIME, "--from lies outside"},
    {{MMT_TIMESTAMP_SINCE_START, 9 * SECOND},
     {MMT_TIMESTAMP_SINCE_START, 9 * SECOND},
     0,
     REALTIME,
     "--from must lie before"},
    {{0}, {0}, 60 * SECOND, REALTIME, "excludes all of it"},
    {{0}, {0}, UINT64_MAX, REALTIME, "excludes all of it"},
    {{MMT_TIMESTAMP_REALTIME, REALTIME}, {0}, 0, 0, "does not contain the time of day"},
};

START_TEST(invalid_windows_are_refused)
{
	struct mmt_report_options options = {
	    .from = refused[_i].from, .to = refused[_i].to, .min_age_ns = refused[_i].min_age_ns};
	struct window window;
	struct mmt_error *error = window_resolve(&options, START, END, refused[_i].realtime_ns, &window);

	ck_assert_ptr_nonnull(error);
	ck_assert_int_eq(error->code, MMT_ERROR_INVALID);
	ck_assert_msg(strstr(error->message, refused[_i].says) != NULL, "%s", error->message);
	mmt_error_destroy(error);
}
END_TEST

/* Its length is not a number of seconds. */
START_TEST(clock_that_went_back)
{
	static const struct mmt_report_options asked[] = {{.to = {MMT_TIMESTAMP_SINCE_START, 9 * SECOND}},
							  {.from = {MMT_TIMESTAMP_CLOCK, START}},
							  {.min_age_ns = SECOND}};
	struct window window;
	struct mmt_error *error = window_resolve(&asked[_i], END, START, REALTIME, &window);

	ck_assert_ptr_nonnull(error);
	ck_assert_int_eq(error->code, MMT_ERROR_INVALID);
	ck_assert_str_eq(error->message, "--from and --to cannot be used: the recording's clock went "
					 "back, from @65000000000 at its start to @5000000000 at its "
					 "end");
	mmt_error_destroy(error);
}
END_TEST

Suite *test_suite(void)
{
	Suite *suite = suite_create("window");
	TCase *tcase = add_tcase(suite, "window");

	setenv("TZ", "UTC", 1);
	tcase_add_loop_test(tcase, windows, 0, (int)(sizeof(cases) / sizeof(cases[0])));
	tcase_add_loop_test(tcase, invalid_windows_are_refused, 0, (int)(sizeof(refused) / sizeof(refused[0])));
	tcase_add_loop_test(tcase, clock_that_went_back, 0, 3);
	return suite;
}
