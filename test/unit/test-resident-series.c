// SPDX-License-Identifier: LGPL-2.1-or-later
/* When RSS is read again. */
#include <check.h>
#include <time.h>
#include <unistd.h>

#include "capture/perf/clock.h"
#include "capture/procfs/proc.h"
#include "capture/procfs/residency.h"
#include "capture/recorder.h"
#include "support/report-file.h"
#include "support/suite.h"

#define WAIT_NS 300000000ULL

__typeof__(text_file_read) __real_text_file_read, __wrap_text_file_read;

/* The kernel answers late. */
int __wrap_text_file_read(int directory, const char *path, char **text_ret)
{
	nanosleep(&(struct timespec){.tv_nsec = WAIT_NS}, NULL);
	return __real_text_file_read(directory, path, text_ret);
}

/* Readings may take a small share of the time, but only their work counts: a single one that waited must not postpone the
 * next one by minutes. */
START_TEST(reading_that_waited_does_not_postpone_the_next)
{
	static const struct mmt_record_options options = {.stop_fd = -1, .mark_fd = -1};
	static struct recorder recorder = {.options = &options};
	const struct resident_series *series = &recorder.jobs.resident_series;
	struct recording_builder *builder = builder_create(report_file_path());
	uint64_t began_ns = clock_now_ns();

	recorder.writer = builder_writer(builder);
	recorder.writing = true;
	ck_assert_ptr_nonnull(process_table_add(&recorder.processes, getpid(), true));
	ck_assert_ptr_null(resident_series_end(&recorder));
	ck_assert_uint_eq(series->sums.count, 1);
	ck_assert_uint_ge(clock_now_ns() - began_ns, WAIT_NS);
	ck_assert_uint_lt(series->next_ns, began_ns + 50 * WAIT_NS);
	resident_series_deinit(&recorder.jobs.resident_series);
	process_table_deinit(&recorder.processes);
	builder_round(builder);
	builder_finish(builder, clock_now_ns());
}
END_TEST

Suite *test_suite(void)
{
	Suite *suite = suite_create("resident series");
	TCase *tcase = add_tcase(suite, "interval");

	tcase_add_checked_fixture(tcase, report_file_setup, report_file_teardown);
	tcase_add_test(tcase, reading_that_waited_does_not_postpone_the_next);
	return suite;
}
