// SPDX-License-Identifier: LGPL-2.1-or-later
/* The memory in the status line of a running recording. */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "support/suite.h"

/* The tool is not a library: the code that writes its status line is compiled in. */
#include "../../cmd/cli/report-command.c"
#include "../../cmd/pack.c"
#include "../../cmd/record-end.c"
#include "../../cmd/record.c"
#include "../../cmd/stop-condition.c"
#include "../../cmd/cli/message.c"
#include "../../cmd/cli/options.c"
#include "../../cmd/cli/terminal.c"

#include "../../cmd/cli/stop-signals.c"

#define READINGS 4
#define MEBIBYTE (1ull << 20)

static struct mmt_resident_reading resident[READINGS], pss[READINGS / 2];

static struct mmt_record_progress progress_of(size_t processes, uint64_t shared_bytes)
{
	for (unsigned i = 0; i < READINGS; i++)
		resident[i] = (struct mmt_resident_reading){.time_ns = i + 1, .resident_bytes = 256 * MEBIBYTE};
	for (unsigned i = 0; i < READINGS / 2; i++)
		pss[i] = (struct mmt_resident_reading){.time_ns = 2 * i + 2,
						       .resident_bytes = 256 * MEBIBYTE - shared_bytes};
	return (struct mmt_record_progress){.resident_readings = resident,
					    .resident_reading_count = READINGS,
					    .resident_processes = processes,
					    .pss_readings = pss,
					    .pss_reading_count = READINGS / 2};
}

static void expect_size(const struct mmt_record_progress *progress, const char *expected)
{
	struct status_line line = {.width = sizeof(line.text) - 1};
	struct record_end end = {0};

	judge_growth(&end, progress);
	put_growth(&line, &end);
	ck_assert_msg(strncmp(line.text, expected, strlen(expected)) == 0, "%s", line.text);
}

/* As in the report, memory that processes share counts once. Where Pss is not known, the line says so. */
START_TEST(size_of_several_processes)
{
	struct mmt_record_progress sharing = progress_of(5, 64 * MEBIBYTE), apart, unread;

	expect_size(&sharing, "Pss 192.0 MiB  ");
	apart = progress_of(5, MEBIBYTE);
	expect_size(&apart, "RSS 256.0 MiB  ");
	unread = progress_of(5, 0);
	unread.pss_reading_count = 0;
	expect_size(&unread, "sum of RSS 256.0 MiB  ");
	unread.resident_processes = 1;
	expect_size(&unread, "RSS 256.0 MiB  ");
}
END_TEST

/* A condition is met once, after it has been false in the same recording. */
START_TEST(conditions)
{
	static const char *const good[] = {"rss>100M", "rss>2G", "growth>50M/10s", "group>90%"};
	static const char *const bad[] = {"",	       "rss",	     "rss>",	    "rss>-1",	      "rss>1M/1s",
					  "growth>1M", "growth>/1s", "growth>1M/0", "growth>1M/1s/1", "group>0%",
					  "group>90",  "group>100%", "group>-1%",   "group> 1%",      "other>1M",
					  " rss>1M"};
	static const struct {
		uint64_t second, resident, swapped, group;
		const char *is_met;
	} steps[] = {
	    {0, 90, 0, 95, NULL}, /* the group was never below */
	    {5, 101, 0, 89, "rss>100M"},
	    {6, 90, 0, 90, NULL},		/* not more than */
	    {8, 110, 31, 89, "growth>50M/10s"}, /* 141 in all: from the least, which is not the first */
	    {20, 150, 0, 89, NULL},
	    {30, 170, 0, 91, "group>90%"},
	    {60, 110, 0, 91, NULL},
	    {99, 250, 0, 91, NULL},
	};
	struct mmt_resident_reading readings[8];
	struct stop_conditions given = {0};

	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++)
		ck_assert_msg(stop_condition_parse(bad[i], &given) != NULL, "%s", bad[i]);
	ck_assert_uint_eq(given.count, 0);
	for (size_t i = 0; i < sizeof(good) / sizeof(*good); i++)
		ck_assert_msg(!stop_condition_parse(good[i], &given), "%s", good[i]);
	for (size_t i = 0; i < sizeof(steps) / sizeof(*steps); i++) {
		struct mmt_record_progress progress = {.group_bytes = steps[i].group * MEBIBYTE,
						       .group_limit_bytes = 100 * MEBIBYTE};
		const char *text;

		readings[i] = (struct mmt_resident_reading){.time_ns = steps[i].second * 1000000000,
							    .resident_bytes = steps[i].resident * MEBIBYTE,
							    .swapped_bytes = steps[i].swapped * MEBIBYTE};
		text = stop_condition_check(&given, &progress, readings, i + 1);
		ck_assert_pstr_eq(text, steps[i].is_met);
	}
	ck_assert_ptr_null(stop_condition_check(&given, &(struct mmt_record_progress){0}, readings, 0));
	while (given.count < STOP_CONDITIONS_MAX)
		ck_assert_ptr_null(stop_condition_parse("rss>1M", &given));
	ck_assert_ptr_nonnull(stop_condition_parse("rss>1M", &given));
}
END_TEST

Suite *test_suite(void)
{
	Suite *suite = suite_create("status line");
	TCase *cases = add_tcase(suite, "status line");

	tcase_add_test(cases, size_of_several_processes);
	tcase_add_test(cases, conditions);
	return suite;
}
