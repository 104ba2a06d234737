// SPDX-License-Identifier: LGPL-2.1-or-later
/* Which processes are recorded while the rings are drained: synthetic rings with rare orders of records. */
#include <check.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "capture/procfs/clock.h"
#include "capture/record-loop.h"
#include "capture/recorder/recorder.h"
#include "support/recorder-state.h"
#include "capture/recorder/ring-reader.h"
#include "support/suite.h"

#define PAGE 4096
#define LATER_NS 10000000000ULL /* than any drain here */

enum { PARENT = 7, CHILD = 8, GRANDCHILD = 9, EVENT_ID = 5, RINGS = 2 };

struct made_ring {
	_Alignas(8) uint8_t mapping[3 * PAGE]; /* control page, data */
};

static struct recorder *recorder;
static struct made_ring *rings;

static void setup(void)
{
	static const struct mmt_record_options options = {.stop_fd = -1};

	recorder = calloc(1, sizeof(*recorder));
	recorder_state_init(recorder);
	rings = calloc(RINGS, sizeof(*rings));
	recorder->options = &options;
	for (size_t i = 0; i < RINGS; i++) {
		struct perf_event_mmap_page *control = (void *)rings[i].mapping;
		struct ring ring = {.mapping = rings[i].mapping, .data_bytes = 2 * (size_t)PAGE};

		control->data_offset = PAGE;
		ck_assert(vector_push(&recorder->reader.rings.items, ring));
	}
}

static void teardown(void)
{
	scope_deinit(&recorder->reader.scope);
	map_deinit(&recorder->reader.in_flight.threads);
	process_table_deinit(&recorder->processes);
	process_events_deinit(&recorder->process_events);
	map_deinit(&recorder->reader.attachment.event_of_id);
	map_deinit(&recorder->reader.attachment.samples_of_id);
	thread_coverage_deinit(&recorder->reader.attachment.coverage);
	vector_deinit(&recorder->reader.events.items);
	vector_deinit(&recorder->reader.rings.items);
	free(recorder);
	free(rings);
}

static void put(size_t ring, const void *record, size_t size)
{
	struct perf_event_mmap_page *control = (void *)rings[ring].mapping;

	memcpy(rings[ring].mapping + PAGE + control->data_head, record, size);
	control->data_head += size;
}

static void put_fork(size_t ring, pid_t pid, pid_t parent, uint64_t time_ns)
{
	const struct {
		struct perf_event_header header;
		int32_t pid, parent, tid, parent_tid;
		uint64_t time_ns;
		int32_t by_pid, by_tid; /* what every record ends with */
		uint64_t by_time_ns, cpu, id;
	} record = {
	    .header = {.type = PERF_RECORD_FORK, .size = sizeof(record)},
	    .pid = pid,
	    .parent = parent,
	    .tid = pid,
	    .parent_tid = parent,
	    .time_ns = time_ns,
	    .by_pid = parent,
	    .by_tid = parent,
	    .by_time_ns = time_ns,
	};

	put(ring, &record, sizeof(record));
}

static void put_call(size_t ring, pid_t pid, uint64_t time_ns)
{
	const struct {
		struct perf_event_header header;
		uint64_t id, ip;
		int32_t pid, tid;
		uint64_t time_ns, cpu;
	} record = {
	    .header = {.type = PERF_RECORD_SAMPLE, .size = sizeof(record)},
	    .id = EVENT_ID,
	    .pid = pid,
	    .tid = pid,
	    .time_ns = time_ns,
	};

	put(ring, &record, sizeof(record));
}

/* The child's FORK record arrived in the first ring after that ring was searched, the grandchild's in the second
 * ring before it was. */
START_TEST(a_child_seen_before_its_parent_is_recorded)
{
	uint64_t forked_ns = clock_now_ns() + LATER_NS;

	recorder->reader.scope.kind = SCOPE_PROCESSES;
	ck_assert(scope_follow(&recorder->reader.scope, PARENT, 0));
	put_fork(1, GRANDCHILD, CHILD, forked_ns + 2);
	ck_assert_ptr_null(ring_reader_read(recorder));
	put_fork(0, CHILD, PARENT, forked_ns + 1);
	ck_assert_ptr_null(ring_reader_read(recorder));
	ck_assert(scope_apply_forks(&recorder->reader.scope, forked_ns + 2)); /* as a drain does by then */
	ck_assert(scope_admits(&recorder->reader.scope, CHILD, forked_ns + 1));
	ck_assert(scope_admits(&recorder->reader.scope, GRANDCHILD, forked_ns + 2));
}
END_TEST

START_TEST(a_fork_applies_to_records_read_with_it)
{
	uint64_t forked_ns = clock_now_ns();

	recorder->reader.scope.kind = SCOPE_PROCESSES;
	ck_assert(scope_follow(&recorder->reader.scope, PARENT, 0));
	put_fork(1, GRANDCHILD, CHILD, forked_ns);
	put_fork(0, CHILD, PARENT, forked_ns - 1);
	ck_assert_ptr_null(ring_reader_read(recorder));
	ck_assert_uint_eq(recorder->reader.scope.forks.count, 0);
	ck_assert(scope_admits(&recorder->reader.scope, GRANDCHILD, clock_now_ns()));
}
END_TEST

/* All processes are recorded, and one appears without a FORK record: it would have no last snapshot. */
START_TEST(no_process_joins_while_recording_ends)
{
	static const struct event_description event = {.role = ROLE_SYSCALL};

	recorder->reader.scope.kind = SCOPE_ALL_PROCESSES;
	ck_assert(vector_push(&recorder->reader.events.items, event));
	ck_assert(map_put(&recorder->reader.attachment.event_of_id, EVENT_ID, 0));
	recorder->reader.attachment.set = &recorder->reader.events;
	recorder->closed = _i;
	put_call(0, getpid(), clock_now_ns());
	ck_assert_ptr_null(ring_reader_read(recorder));
	ck_assert_uint_eq(recorder->processes.items.count, 0);
	ck_assert_ptr_null(loop_apply_events(recorder));
	ck_assert_uint_eq(recorder->processes.items.count, _i ? 0 : 1);
}
END_TEST

Suite *test_suite(void)
{
	Suite *suite = suite_create("scope-forks");
	TCase *tests = add_tcase(suite, "forks");

	tcase_add_checked_fixture(tests, setup, teardown);
	tcase_add_tests(tests, a_child_seen_before_its_parent_is_recorded, a_fork_applies_to_records_read_with_it);
	tcase_add_loop_test(tests, no_process_joins_while_recording_ends, 0, 2);
	return suite;
}
