// SPDX-License-Identifier: LGPL-2.1-or-later
/* The exit status of report --check. */
#include <check.h>
#include <stdlib.h>

#include "support/suite.h"
#include "support/sample-report.h"

/* The tool is not a library: the code that decides its exit status is compiled in. */
#include "../../cmd/report.c"
#include "../../cmd/cli/message.c"
#include "../../cmd/cli/options.c"
#include "../../cmd/cli/terminal.c"
#include "../../cmd/cli/report-command.c"

static const struct command command = {.name = "report"};

/* At most a tenth of what the kernel's maps list may be missing from every reading of them. */
static const struct {
	struct mmt_completeness completeness;
	struct mmt_process process;
	int status;
} reports[] = {
    {{0}, {.checked = true, .compared_bytes = 100000, .unread_bytes = 0}, EXIT_OK},
    {{0}, {.checked = true, .compared_bytes = 100000, .unread_bytes = 10000}, EXIT_OK},
    {{0}, {.checked = true, .compared_bytes = 100000, .unread_bytes = 10001}, EXIT_UNUSABLE},
    {{0}, {.checked = true, .compared_bytes = 0, .unread_bytes = 1}, EXIT_UNUSABLE},
    {{0}, {.checked = true, .compared_bytes = 100000, .mismatch_bytes = 1}, EXIT_EXCEEDED},
    {{0}, {.checked = true, .compared_bytes = 100000, .reconciled_bytes = 1}, EXIT_EXCEEDED},
    {{.lost_events = 1}, {.checked = true, .compared_bytes = 100000}, EXIT_EXCEEDED},
    {{0}, {.ended = true}, EXIT_UNUSABLE},
    {{0}, {.ended = false}, EXIT_UNUSABLE},
};

START_TEST(exit_status_of_check)
{
	struct mmt_report report = sample_report();

	report.completeness = reports[_i].completeness;
	report.processes = &reports[_i].process;
	report.process_count = 1;
	ck_assert_int_eq(check_report(&command, &report), reports[_i].status);
}
END_TEST

Suite *test_suite(void)
{
	Suite *suite = suite_create("report-check");
	TCase *cases = add_tcase(suite, "report-check");

	tcase_add_loop_test(cases, exit_status_of_check, 0, (int)(sizeof(reports) / sizeof(reports[0])));
	return suite;
}
