// SPDX-License-Identifier: LGPL-2.1-or-later
/* What the recorder says about the order of its records, as the reader understands it. */
#include <check.h>

#include "capture/drain.h"
#include "support/report-file.h"
#include "support/run-suite.h"
#include "trace/reader.h"

enum { PID = 100 };

static void unmap(struct recording_builder *builder, uint64_t time_ns)
{
	builder_munmap_exit(builder, time_ns, PID, PID, 0x10000, 4096);
}

static void drain(struct recorder *recorder)
{
	ck_assert_ptr_null(drain_rings(recorder));
}

/* A round may be full in the moment in which another is to end because a second is over. */
START_TEST(a_round_without_a_drain_goes_on)
{
	static const struct mmt_record_options options = {.stop_fd = -1, .mark_fd = -1};
	static struct recorder recorder = {.options = &options};
	struct recording_builder *builder = builder_create(report_file_path());
	uint64_t seen = 0;
	bool end = false;
	struct reader *reader;
	struct event event;

	recorder.writer = builder_writer(builder);
	recorder.writing = true;
	drain(&recorder);
	unmap(builder, 1000);
	recorder_end_round(&recorder);
	drain(&recorder);
	unmap(builder, 3000);
	recorder_end_round(&recorder);
	unmap(builder, 4000); /* something that comes from no ring, as names do */
	recorder_end_round(&recorder);
	drain(&recorder);
	unmap(builder, 2000); /* this was in its ring all the time */
	unmap(builder, 5000);
	recorder_end_round(&recorder);
	ck_assert_ptr_null(recorder.write_error);
	builder_finish(builder, 6000);

	ck_assert_ptr_null(reader_open(report_file_path(), &reader));
	for (;; seen++) {
		ck_assert_ptr_null(reader_next(reader, &event, &end));
		if (end)
			break;
		ck_assert_uint_eq(event.time_ns, 1000 * (seen + 1));
	}
	ck_assert_uint_eq(seen, 5);
	ck_assert_uint_eq(reader_out_of_order(reader), 0);
	reader_close(reader);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("rounds");
	TCase *tests = tcase_create("rounds");

	tcase_add_checked_fixture(tests, report_file_setup, report_file_teardown);
	tcase_add_test(tests, a_round_without_a_drain_goes_on);
	suite_add_tcase(suite, tests);
	return run_suite(suite);
}
