// SPDX-License-Identifier: LGPL-2.1-or-later
/* What the recorder copies of growing perf maps. */
#include <check.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "capture/recorder/recorder.h"
#include "support/recorder-state.h"
#include "capture/runtimes/ask-runtime.h"
#include "support/suite.h"
#include "support/temporary.h"

static char directory[TEMPORARY_PATH_SIZE];
static struct recorder *recorder;

static void add_process(pid_t pid)
{
	struct traced_process *process = calloc(1, sizeof(*process));

	ck_assert(process && vector_push(&recorder->processes.items, process));
	*process = (struct traced_process){.place = recorder->processes.items.count - 1,
					   .pid = pid,
					   .namespace_pid = pid,
					   .pidfd = -1,
					   .owner = getuid(),
					   .tmp_directory = open(directory, O_PATH | O_DIRECTORY | O_CLOEXEC)};
	snprintf(process->map_name, sizeof(process->map_name), "perf-%d.map", pid);
}

static void set_up(void)
{
	temporary_directory(directory);
	recorder = calloc(1, sizeof(*recorder));
	ck_assert_ptr_nonnull(recorder);
	recorder_state_init(recorder);
	for (pid_t pid = 1; pid <= 2; pid++)
		add_process(pid);
}

static void tear_down(void)
{
	for (size_t i = 0; i < recorder->processes.items.count; i++) {
		struct traced_process *process = recorder->processes.items.items[i];

		close(process->tmp_directory);
		vector_deinit(&process->perf_map.growth);
		free(process);
	}
	temporary_remove(directory);
	vector_deinit(&recorder->processes.items);
	free(recorder);
}

/* Appends this many lines; with "w", replaces the earlier ones. */
static size_t put_lines(pid_t pid, const char *mode, const char *name, unsigned count)
{
	char path[TEMPORARY_PATH_SIZE + 32];
	size_t size;
	FILE *map;

	snprintf(path, sizeof(path), "%s/perf-%d.map", directory, (int)pid);
	map = fopen(path, mode);
	ck_assert_ptr_nonnull(map);
	for (unsigned i = 0; i < count; i++)
		fprintf(map, "%08x 10 %s\n", i * 16, name);
	fseek(map, 0, SEEK_END);
	size = (size_t)ftell(map);
	fclose(map);
	return size;
}

START_TEST(restarted_map_grows)
{
	struct traced_process *process = recorder->processes.items.items[0];
	size_t size = put_lines(1, "w", "first", 10);

	perf_maps_note_growth(recorder, process, 100);
	ck_assert_uint_eq(process->perf_map.growth.count, 1);
	perf_maps_note_growth(recorder, process, 200);
	size = put_lines(1, "a", "first", 10);
	perf_maps_note_growth(recorder, process, 300);
	ck_assert_uint_eq(process->perf_map.growth.count, 3);
	ck_assert_uint_eq(process->perf_map.growth.items[2].length, size);

	/* Longer than before, in the same file. */
	size = put_lines(1, "w", "second", 100);
	perf_maps_note_growth(recorder, process, 400);
	ck_assert_uint_eq(process->perf_map.growth.count, 1);
	ck_assert_uint_eq(process->perf_map.growth.items[0].time_ns, 400);
	ck_assert_uint_eq(process->perf_map.growth.items[0].length, size);
}
END_TEST

START_TEST(restarted_map_has_new_pieces)
{
	size_t first = put_lines(1, "w", "first", 10), second;

	ck_assert_ptr_null(incremental_metadata_write(recorder));
	ck_assert_uint_eq(recorder->jobs.piece_bytes, first);
	first = put_lines(1, "a", "first", 10);
	ck_assert_ptr_null(incremental_metadata_write(recorder));
	ck_assert_uint_eq(recorder->jobs.piece_bytes, first);
	second = put_lines(1, "w", "second", 100);
	ck_assert_ptr_null(incremental_metadata_write(recorder));
	ck_assert_uint_eq(recorder->jobs.piece_bytes, first + second);
	ck_assert_ptr_null(incremental_metadata_write(recorder));
	ck_assert_uint_eq(recorder->jobs.piece_bytes, first + second);
}
END_TEST

START_TEST(one_budget_for_all_files)
{
	size_t size = 0;

	for (pid_t pid = 1; pid <= 2; pid++)
		size += put_lines(pid, "w", "a_name_of_forty_eight_bytes_with_all_that_is_there", 50000);
	ck_assert_uint_gt(size, INCREMENTAL_METADATA_TICK_BYTES + (1u << 20));
	ck_assert_ptr_null(incremental_metadata_write(recorder));
	ck_assert_uint_ge(recorder->jobs.piece_bytes, INCREMENTAL_METADATA_TICK_BYTES);
	ck_assert_uint_lt(recorder->jobs.piece_bytes, INCREMENTAL_METADATA_TICK_BYTES + (1u << 16));
	ck_assert_ptr_null(incremental_metadata_write(recorder));
	ck_assert_uint_eq(recorder->jobs.piece_bytes, size);
}
END_TEST

Suite *test_suite(void)
{
	Suite *suite = suite_create("map-pieces");
	TCase *tests = add_tcase(suite, "map-pieces");

	tcase_add_checked_fixture(tests, set_up, tear_down);
	tcase_add_tests(tests, restarted_map_grows, restarted_map_has_new_pieces, one_budget_for_all_files);
	return suite;
}
