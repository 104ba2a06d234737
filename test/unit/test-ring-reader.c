// SPDX-License-Identifier: LGPL-2.1-or-later
/* The thread that reads the rings while a job runs or waits for the kernel, with rings filled by the test. */
#include <check.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "capture/procfs/clock.h"
#include "capture/recorder/recorder.h"
#include "support/recorder-state.h"
#include "capture/recorder/ring-reader.h"
#include "support/suite.h"

#define PAGE 4096
#define DATA_BYTES (2 * PAGE)
#define PARENT 7
#define PATIENCE_NS 30000000000ULL
#define STEP_MICROSECONDS 1000

static struct recorder *recorder;
static struct perf_event_mmap_page *control;

static void setup(void)
{
	static const struct mmt_record_options options = {.stop_fd = -1};
	struct ring ring = {.data_bytes = DATA_BYTES};

	control = aligned_alloc(PAGE, PAGE + DATA_BYTES);
	memset(control, 0, PAGE + DATA_BYTES);
	control->data_offset = PAGE;
	ring.mapping = (void *)control;
	recorder = calloc(1, sizeof(*recorder));
	recorder_state_init(recorder);
	recorder->options = &options;
	ck_assert(vector_push(&recorder->reader.rings.items, ring));
	recorder->reader.scope.kind = SCOPE_PROCESSES;
	ck_assert(scope_follow(&recorder->reader.scope, PARENT, 0));
	ck_assert_ptr_null(ring_reader_start(recorder));
}

static void teardown(void)
{
	ring_reader_end(recorder);
	mmt_error_destroy(recorder->failure);
	scope_deinit(&recorder->reader.scope);
	process_events_deinit(&recorder->process_events);
	thread_coverage_deinit(&recorder->reader.attachment.coverage);
	vector_deinit(&recorder->reader.rings.items);
	free(recorder);
	free(control);
}

/* Forks, one record of 64 bytes each. */
static void put_forks(unsigned count)
{
	uint64_t head = control->data_head;

	for (unsigned i = 0; i < count; i++, head += 64) {
		const struct {
			struct perf_event_header header;
			int32_t pid, parent, tid, parent_tid;
			uint64_t time_ns;
			int32_t by_pid, by_tid; /* what every record ends with */
			uint64_t by_time_ns, cpu, id;
		} record = {
		    .header = {.type = PERF_RECORD_FORK, .size = 64},
		    .pid = 1000 + (int32_t)i,
		    .parent = PARENT,
		    .tid = 1000 + (int32_t)i,
		    .parent_tid = PARENT,
		    .time_ns = 1,
		    .by_pid = PARENT,
		    .by_tid = PARENT,
		    .by_time_ns = 1,
		};

		_Static_assert(sizeof(record) == 64, "as the tests count");
		memcpy((uint8_t *)control + PAGE + head % DATA_BYTES, &record, sizeof(record));
	}
	__atomic_store_n(&control->data_head, head, __ATOMIC_RELEASE);
}

static uint64_t tail(void)
{
	return __atomic_load_n(&control->data_tail, __ATOMIC_ACQUIRE);
}

START_TEST(a_ring_that_fills_is_read_while_the_recorder_waits)
{
	const unsigned count = DATA_BYTES / 64 * 3 / 4;

	for (uint64_t round = 1; round <= 3; round++) {
		uint64_t until_ns = clock_now_ns() + PATIENCE_NS;

		ring_reader_begin_wait(recorder);
		put_forks(count);
		while (tail() < round * count * 64 && clock_now_ns() < until_ns)
			usleep(STEP_MICROSECONDS);
		errno = ENOTTY;
		ring_reader_end_wait(recorder);
		ck_assert_int_eq(errno, ENOTTY);
		ck_assert_uint_eq(tail(), round * count * 64);
		ck_assert_uint_eq(recorder->process_events.items.count, round * count);
		ck_assert_uint_eq(recorder->processes.items.count, 0);
		ck_assert_ptr_null(ring_reader_give_way(recorder));
	}
}
END_TEST

/* Otherwise both threads would use the reader's state at the same time. */
START_TEST(nothing_is_read_between_two_steps_of_a_job)
{
	ring_reader_begin_wait(recorder);
	ring_reader_end_wait(recorder);
	put_forks(DATA_BYTES / 64 * 3 / 4);
	usleep(20 * STEP_MICROSECONDS);
	ck_assert_uint_eq(tail(), 0);
	ck_assert_ptr_null(ring_reader_give_way(recorder));
	ck_assert_uint_eq(tail(), control->data_head);
}
END_TEST

START_TEST(a_job_gives_way_only_to_a_filling_ring)
{
	const unsigned count = DATA_BYTES / 64 / 4;

	put_forks(count);
	ck_assert_ptr_null(ring_reader_give_way(recorder));
	ck_assert_uint_eq(tail(), 0);
	ck_assert_ptr_null(ring_reader_catch_up(recorder));
	ck_assert_uint_eq(tail(), count * 64);
	ck_assert_uint_eq(recorder->process_events.items.count, count);
	ck_assert_uint_eq(recorder->processes.items.count, 0);
}
END_TEST

START_TEST(a_failure_of_the_thread_is_reported)
{
	uint64_t until_ns = clock_now_ns() + PATIENCE_NS;
	struct mmt_error *error = NULL;

	while (!error && clock_now_ns() < until_ns) {
		ring_reader_begin_wait(recorder);
		/* A record of no bytes. */
		memset((uint8_t *)control + PAGE, 0, DATA_BYTES);
		__atomic_store_n(&control->data_head, DATA_BYTES, __ATOMIC_RELEASE);
		usleep(STEP_MICROSECONDS);
		ring_reader_end_wait(recorder);
		error = recorder->reader.thread.error;
	}
	ck_assert_ptr_nonnull(error);
	ck_assert_ptr_eq(ring_reader_give_way(recorder), error);
	mmt_error_destroy(error);
	ck_assert_ptr_null(recorder->reader.thread.error);
	error = ring_reader_catch_up(recorder);
	ck_assert_ptr_nonnull(error);
	mmt_error_destroy(error);
}
END_TEST

/* When recording has ended, nothing has to be read. */
START_TEST(waiting_after_the_end)
{
	ring_reader_begin_wait(recorder);
	ring_reader_end_wait(recorder);
	ring_reader_end(recorder);
	ring_reader_begin_wait(recorder);
	ring_reader_end_wait(recorder);
	ck_assert_ptr_null(ring_reader_give_way(recorder));
	ck_assert_ptr_null(ring_reader_catch_up(recorder));
	ck_assert(!recorder->reader.thread.started);
}
END_TEST

Suite *test_suite(void)
{
	Suite *suite = suite_create("ring-reader");
	TCase *tests = add_tcase(suite, "waits");

	tcase_add_checked_fixture(tests, setup, teardown);
	tcase_set_timeout(tests, 60);
	tcase_add_tests(tests, a_ring_that_fills_is_read_while_the_recorder_waits,
			nothing_is_read_between_two_steps_of_a_job, a_job_gives_way_only_to_a_filling_ring,
			a_failure_of_the_thread_is_reported, waiting_after_the_end);
	return suite;
}
