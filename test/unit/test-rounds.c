// SPDX-License-Identifier: LGPL-2.1-or-later
/* The order that the recorder states for its records, as the reader understands it. */
#include <check.h>

#include "capture/recorder/ring-reader.h"
#include "capture/recorder/recorder.h"
#include "support/recorder-state.h"
#include "support/report-file.h"
#include "support/suite.h"
#include "trace/read/reorder.h"
#include "trace/read/reader.h"

enum { PID = 100 };

#define MILLISECOND_NS UINT64_C(1000000)

static void unmap(struct recording_builder *builder, uint64_t time_ns)
{
	builder_munmap_exit(builder, time_ns, PID, PID, 0x10000, 4096);
}

static void drain(struct recorder *recorder)
{
	ck_assert_ptr_null(ring_reader_read(recorder));
}

/* A round may be full just when another is due to end because a second has passed. */
START_TEST(a_round_without_a_drain_continues)
{
	static const struct mmt_record_options options = {.stop_fd = -1};
	static struct recorder recorder = {.options = &options};
	struct recording_builder *builder = builder_create(report_file_path());
	uint64_t seen = 0;
	bool end = false;
	struct reader *reader;
	struct event event;

	recorder_state_init(&recorder);
	recorder.writer = builder_writer(builder);
	recorder.writing = true;
	drain(&recorder);
	unmap(builder, 1000);
	recorder_end_round(&recorder);
	drain(&recorder);
	unmap(builder, 3000);
	recorder_end_round(&recorder);
	unmap(builder, 4000); /* something from no ring, such as names */
	recorder_end_round(&recorder);
	drain(&recorder);
	unmap(builder, 2000); /* this was in its ring all the time */
	unmap(builder, 5000);
	recorder_end_round(&recorder);
	ck_assert_ptr_null(recorder.write_error);
	builder_finish(builder, 6000);

	ck_assert_ptr_null(reader_open(report_file_path(), NULL, &reader));
	for (;; seen++) {
		ck_assert_ptr_null(reader_next(reader, &event, &end));
		if (end)
			break;
		ck_assert_uint_eq(event.time_ns, 1000 * (seen + 1));
	}
	ck_assert_uint_eq(seen, 5);
	ck_assert_uint_eq(reader->out_of_order, 0);
	reader_close(reader);
}
END_TEST

/* A recording of calls 10, 20 and, in its second round, 15 and 30 milliseconds after the clock started. */
static struct recording_builder *begin_second_round(void)
{
	struct recording_builder *builder = builder_create(report_file_path());

	unmap(builder, 10 * MILLISECOND_NS);
	unmap(builder, 20 * MILLISECOND_NS);
	builder_round(builder);
	unmap(builder, 15 * MILLISECOND_NS);
	unmap(builder, 30 * MILLISECOND_NS);
	return builder;
}

static uint64_t count_events(struct reader *reader, uint64_t latest_ns)
{
	struct event event;
	uint64_t seen = 0;

	for (bool end = false;; seen++) {
		ck_assert_ptr_null(reader_next(reader, &event, &end));
		if (end)
			return seen;
		ck_assert_uint_le(event.time_ns, latest_ns);
	}
}

/*
 * A recorder was killed while it wrote its second round:
 *
 * ring 0:  a10        | c30 e50
 * ring 1:        b20  |             (its d40 is not in the file, nor is the end of the round)
 *
 * With the calls of one and without those of the other something would be mapped that is not. What is older than
 * anything that was still on its way when the round before ended is all there, that which came late too.
 */
START_TEST(an_unfinished_round_is_discarded)
{
	struct recording_builder *builder = begin_second_round();
	bool finished = _i == 1;
	uint64_t expected = finished ? 4 : 2;
	struct reader *reader;

	unmap(builder, 50 * MILLISECOND_NS);
	if (finished)
		builder_round(builder);
	builder_abandon(builder);

	ck_assert_ptr_null(reader_open(report_file_path(), NULL, &reader));
	ck_assert(reader->metadata.values.incomplete);
	ck_assert_uint_eq(count_events(reader, (finished ? 50 : 20) * MILLISECOND_NS - ORDER_IN_FLIGHT_NS), expected);
	ck_assert_uint_eq(reader_unfinished(reader).records, 5 - expected);
	ck_assert_uint_eq(reader_unfinished(reader).span_ns, (finished ? 0 : 30 * MILLISECOND_NS) + ORDER_IN_FLIGHT_NS);
	ck_assert_ptr_null(reader_damage(reader));
	reader_close(reader);
}
END_TEST

/* The same if damage hides the end of a round. */
START_TEST(a_damaged_round_is_discarded)
{
	struct recording_builder *builder = begin_second_round();
	static const uint32_t too_short = 0;
	struct reader *reader;

	builder_record(builder, PERF_RECORD_SAMPLE, &too_short, sizeof(too_short));
	unmap(builder, 25 * MILLISECOND_NS);
	builder_round(builder);
	builder_finish(builder, 60 * MILLISECOND_NS);

	ck_assert_ptr_null(reader_open(report_file_path(), NULL, &reader));
	ck_assert(!reader->metadata.values.incomplete);
	ck_assert_uint_eq(count_events(reader, 20 * MILLISECOND_NS - ORDER_IN_FLIGHT_NS), 2);
	ck_assert_uint_eq(reader_unfinished(reader).records, 2);
	ck_assert_uint_eq(reader_unfinished(reader).span_ns, 10 * MILLISECOND_NS + ORDER_IN_FLIGHT_NS);
	ck_assert_ptr_nonnull(reader_damage(reader));
	reader_close(reader);
}
END_TEST

/* After the drain the recorder wrote a record of its own: an older one may still be in a ring. */
START_TEST(records_of_the_recorder_wait_for_the_next_drain)
{
	static const struct mmt_record_options options = {.stop_fd = -1};
	static struct recorder recorder = {.options = &options};
	struct recording_builder *builder = builder_create(report_file_path());
	struct reader *reader;
	struct buffer record;

	recorder_state_init(&recorder);
	recorder.writer = builder_writer(builder);
	recorder.writing = true;
	unmap(builder, 10 * MILLISECOND_NS);
	unmap(builder, 20 * MILLISECOND_NS);
	drain(&recorder);
	recorder_end_round(&recorder);
	drain(&recorder);
	own_record_begin_bytes(&record);
	ck_assert_ptr_null(own_record_append_bytes(&recorder, &record, PID, 40 * MILLISECOND_NS, NOTE_ID));
	recorder_end_round(&recorder);
	unmap(builder, 30 * MILLISECOND_NS);
	builder_abandon(builder);

	ck_assert_ptr_null(reader_open(report_file_path(), NULL, &reader));
	ck_assert_uint_eq(count_events(reader, 10 * MILLISECOND_NS), 1);
	ck_assert_uint_eq(reader_unfinished(reader).records, 3);
	reader_close(reader);
}
END_TEST

Suite *test_suite(void)
{
	Suite *suite = suite_create("rounds");
	TCase *tests = add_tcase(suite, "rounds");

	tcase_add_checked_fixture(tests, report_file_setup, report_file_teardown);
	tcase_add_tests(tests, a_round_without_a_drain_continues);
	tcase_add_loop_test(tests, an_unfinished_round_is_discarded, 0, 2);
	tcase_add_tests(tests, records_of_the_recorder_wait_for_the_next_drain, a_damaged_round_is_discarded);
	return suite;
}
