// SPDX-License-Identifier: LGPL-2.1-or-later
/* What the recorder says about the order of its records, as the reader understands it. */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "capture/drain.h"
#include "support/recording-builder.h"
#include "support/run-suite.h"
#include "trace/reader.h"

enum { PID = 100 };

static char directory[64], path[80];

static void create(void)
{
	strcpy(directory, "/tmp/mmtrace-test-XXXXXX");
	ck_assert_ptr_nonnull(mkdtemp(directory));
	snprintf(path, sizeof(path), "%s/a.data", directory);
}

static void destroy(void)
{
	unlink(path);
	ck_assert_int_eq(rmdir(directory), 0);
}

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
	static struct recorder recorder;
	struct recording_builder *builder = builder_create(path);
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

	ck_assert_ptr_null(reader_open(path, &reader));
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

	tcase_add_checked_fixture(tests, create, destroy);
	tcase_add_test(tests, a_round_without_a_drain_goes_on);
	suite_add_tcase(suite, tests);
	return run_suite(suite);
}
