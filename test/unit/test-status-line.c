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

Suite *test_suite(void)
{
	Suite *suite = suite_create("status line");
	TCase *cases = add_tcase(suite, "status line");

	tcase_add_test(cases, size_of_several_processes);
	return suite;
}
