// SPDX-License-Identifier: LGPL-2.1-or-later
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "base/limits.h"
#include "support/section.h"
#include "support/suite.h"
#include "trace/format/format.h"
#include "trace/sections/sections.h"
#include "trace/sections/section-codec.h"

static struct buffer buffer;

static void create(void)
{
	buffer_init(&buffer, LIMIT_SECTION_BYTES);
}

static void destroy(void)
{
	buffer_deinit(&buffer);
}

START_TEST(information_round_trips)
{
	static const int32_t targets[] = {17, 4711};
	static const uint32_t roles[] = {ROLE_SYSCALL, ROLE_DUMP, ROLE_SNAPSHOT, ROLE_LARGE_DUMP};
	static const struct device_number devices[] = {{0, 16}, {8, 1}};
	const struct recording_info info = {
	    .recorder_version = "1.2.3",
	    .start_ns = 5,
	    .start_realtime_ns = 6,
	    .page_bytes = 16384,
	    .call_graph = 2,
	    .stack_dump_bytes = 1024,
	    .callchain_limit = 127,
	    .mapping_limit = 65530,
	    .command = true,
	    .targets = {.items = (int32_t *)targets, .count = 2},
	    .roles = {.items = (uint32_t *)roles, .count = 4},
	    .hugetlb_devices = {.items = (struct device_number *)devices, .count = 2},
	};
	struct recording_info read;
	struct bytes bytes;

	ck_assert_ptr_null(section_write(&section_info, &info, &buffer));
	bytes = bytes_over(buffer.data, buffer.size);
	ck_assert_ptr_null(section_read(&section_info, &bytes, NULL, &read));
	ck_assert_str_eq(read.recorder_version, "1.2.3");
	ck_assert_uint_eq(read.start_ns, 5);
	ck_assert_uint_eq(read.start_realtime_ns, 6);
	ck_assert_uint_eq(read.page_bytes, 16384);
	ck_assert_uint_eq(read.call_graph, 2);
	ck_assert_uint_eq(read.stack_dump_bytes, 1024);
	ck_assert_uint_eq(read.callchain_limit, 127);
	ck_assert_uint_eq(read.mapping_limit, 65530);
	ck_assert(read.command);
	ck_assert_uint_eq(read.targets.count, 2);
	ck_assert_mem_eq(read.targets.items, targets, sizeof(targets));
	ck_assert_uint_eq(read.roles.count, 4);
	ck_assert_mem_eq(read.roles.items, roles, sizeof(roles));
	ck_assert_uint_eq(read.hugetlb_devices.count, 2);
	ck_assert_mem_eq(read.hugetlb_devices.items, devices, sizeof(devices));
	section_info.deinit(&read);
	for (size_t size = 0; size < buffer.size; size++) {
		struct mmt_error *error;

		bytes = bytes_over(buffer.data, size);
		error = section_read(&section_info, &bytes, NULL, &read);
		ck_assert_ptr_nonnull(error);
		mmt_error_destroy(error);
	}
}
END_TEST

START_TEST(newer_versions_are_refused)
{
	const struct recording_info info = {.page_bytes = 4096};
	struct recording_info read;
	struct mmt_error *error;
	struct bytes bytes;

	ck_assert_ptr_null(section_write(&section_info, &info, &buffer));
	buffer_patch(&buffer, 0, 5, sizeof(uint32_t));
	bytes = bytes_over(buffer.data, buffer.size);
	error = section_read(&section_info, &bytes, NULL, &read);
	ck_assert_ptr_nonnull(error);
	ck_assert_int_eq(error->code, MMT_ERROR_UNSUPPORTED);
	mmt_error_destroy(error);
	/* Earlier versions have no devices of hugetlbfs at the end, or no limit of mappings before these either. */
	for (uint32_t version = 1; version < 4; version++) {
		buffer_patch(&buffer, 0, version, sizeof(uint32_t));
		bytes = bytes_over(buffer.data, buffer.size - (version < 3 ? 2 : 1) * sizeof(uint32_t));
		ck_assert_ptr_null(section_read(&section_info, &bytes, NULL, &read));
		ck_assert_uint_eq(read.mapping_limit, 0);
		section_info.deinit(&read);
	}
}
END_TEST

START_TEST(losses_round_trip)
{
	static const uint64_t lost[] = {0, 3, LIMIT_LOST};
	const struct recording_loss loss = {.stop_ns = 9,
					    .end = 2,
					    .lost = {.items = (uint64_t *)lost, .count = 3},
					    .missed_threads = 4,
					    .missed_cpus = 5,
					    .left_processes = 6};
	struct recording_loss read;
	struct bytes bytes;

	ck_assert_ptr_null(section_write(&section_loss, &loss, &buffer));
	bytes = bytes_over(buffer.data, buffer.size);
	ck_assert_ptr_null(section_read(&section_loss, &bytes, NULL, &read));
	ck_assert_uint_eq(read.stop_ns, 9);
	ck_assert_uint_eq(read.end, 2);
	ck_assert_uint_eq(read.lost.count, 3);
	ck_assert_mem_eq(read.lost.items, lost, sizeof(lost));
	ck_assert_uint_eq(read.missed_threads, 4);
	ck_assert_uint_eq(read.missed_cpus, 5);
	ck_assert_uint_eq(read.left_processes, 6);
	section_loss.deinit(&read);
	/* As earlier versions wrote it. */
	buffer_patch(&buffer, 0, 2, sizeof(uint32_t));
	bytes = bytes_over(buffer.data, buffer.size - 16);
	ck_assert_ptr_null(section_read(&section_loss, &bytes, NULL, &read));
	ck_assert_uint_eq(read.missed_threads, 4);
	ck_assert_uint_eq(read.missed_cpus + read.left_processes, 0);
	section_loss.deinit(&read);
	buffer_patch(&buffer, 0, 1, sizeof(uint32_t));
	bytes = bytes_over(buffer.data, buffer.size - 24);
	ck_assert_ptr_null(section_read(&section_loss, &bytes, NULL, &read));
	ck_assert_uint_eq(read.lost.count, 3);
	ck_assert_uint_eq(read.missed_threads, 0);
	section_loss.deinit(&read);
}
END_TEST

/* Each u64 behind the end of the recording, except the number of attributes, is a count of losses. */
START_TEST(impossible_losses_are_damage)
{
	static const uint64_t lost[] = {0, 3};
	const struct recording_loss loss = {.lost = {.items = (uint64_t *)lost, .count = 2}};

	ck_assert_ptr_null(section_write(&section_loss, &loss, &buffer));
	for (size_t place = 24; place < buffer.size; place += sizeof(uint64_t)) {
		struct bytes bytes = bytes_over(buffer.data, buffer.size);
		struct recording_loss read;
		struct mmt_error *error;

		memset(buffer.data + place, 0xad, sizeof(uint64_t));
		error = section_read(&section_loss, &bytes, NULL, &read);
		ck_assert_ptr_nonnull(error);
		ck_assert_int_eq(error->code, MMT_ERROR_FORMAT);
		ck_assert_ptr_nonnull(strstr(error->message, "more losses than possible"));
		mmt_error_destroy(error);
		memset(buffer.data + place, 0, sizeof(uint64_t));
	}
}
END_TEST

START_TEST(huge_pages_round_trip)
{
	struct process_huge_pages processes[] = {
	    {.pid = 5, .bytes = 0x600000, .sampled_bytes = 262144, .zero_bytes = 126976},
	    {.pid = 6, .bytes = 0x400000}};
	struct recording_huge_pages huge = {.setting = HUGE_MADVISE, .processes = {.items = processes, .count = 2}},
				    read;
	size_t room = LIMIT_UNPACKED_BYTES;
	struct bytes bytes;

	ck_assert_ptr_null(section_write(&section_huge_pages, &huge, &buffer));
	bytes = bytes_over(buffer.data, buffer.size);
	ck_assert_ptr_null(section_read(&section_huge_pages, &bytes, &room, &read));
	ck_assert_int_eq(read.setting, HUGE_MADVISE);
	ck_assert_uint_eq(read.processes.count, 2);
	ck_assert_mem_eq(read.processes.items, processes, sizeof(processes));
	ck_assert_ptr_null(recording_huge_pages_of(&read, 7));
	ck_assert_ptr_eq(recording_huge_pages_of(&read, 6), &read.processes.items[1]);
	section_huge_pages.deinit(&read);
}
END_TEST

START_TEST(invalid_huge_pages_are_refused)
{
	static const struct process_huge_pages wrong[] = {
	    {5, 4096, 8192, 0},
	    {5, 8192, 4096, 4097},
	    {5, LIMIT_RESIDENT_BYTES + 1, 0, 0},
	};
	struct recording_huge_pages read;
	struct mmt_error *error;

	for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++) {
		const struct recording_huge_pages huge = {
		    .processes = {.items = (struct process_huge_pages *)&wrong[i], .count = 1}};
		size_t room = LIMIT_UNPACKED_BYTES;
		struct bytes bytes;

		buffer_clear(&buffer);
		ck_assert_ptr_null(section_write(&section_huge_pages, &huge, &buffer));
		bytes = bytes_over(buffer.data, buffer.size);
		error = section_read(&section_huge_pages, &bytes, &room, &read);
		ck_assert_ptr_nonnull(error);
		mmt_error_destroy(error);
	}
}
END_TEST

START_TEST(perf_maps_round_trip)
{
	static uint8_t text[] = "7f00 10 method\n";
	struct perf_map_growth growth[] = {{.time_ns = 1, .length = 7}, {.time_ns = 2, .length = sizeof(text) - 1}};
	struct perf_map_copy copy = {
	    .pid = 3,
	    .namespace_pid = 1,
	    .growth = {.items = growth, .count = 2},
	    .text = text,
	    .text_size = sizeof(text) - 1,
	};
	const struct perf_map_copies copies = {.maps = {.items = &copy, .count = 1}};
	struct perf_map_copies read = {0};
	struct bytes bytes;

	ck_assert_ptr_null(section_write(&section_perf_maps, &copies, &buffer));
	bytes = bytes_over(buffer.data, buffer.size);
	ck_assert_ptr_null(section_read(&section_perf_maps, &bytes, &(size_t){LIMIT_UNPACKED_BYTES}, &read));
	ck_assert_uint_eq(read.maps.count, 1);
	ck_assert_int_eq(read.maps.items[0].pid, 3);
	ck_assert_int_eq(read.maps.items[0].namespace_pid, 1);
	ck_assert_uint_eq(read.maps.items[0].growth.count, 2);
	ck_assert_mem_eq(read.maps.items[0].growth.items, growth, sizeof(growth));
	ck_assert_uint_eq(read.maps.items[0].text_size, copy.text_size);
	ck_assert_mem_eq(read.maps.items[0].text, text, copy.text_size);
	section_perf_maps.deinit(&read);
	for (size_t size = 0; size < buffer.size; size++) {
		struct mmt_error *error;

		bytes = bytes_over(buffer.data, size);
		error = section_read(&section_perf_maps, &bytes, &(size_t){LIMIT_UNPACKED_BYTES}, &read);
		ck_assert_msg(error != NULL, "no error with %zu bytes of %zu", size, buffer.size);
		mmt_error_destroy(error);
	}
}
END_TEST

/* Large texts have frames of their own. */
START_TEST(large_perf_maps_round_trip)
{
	static uint8_t large[3 << 20], small[] = "7f00 10 method\n";
	struct perf_map_copy items[] = {{.pid = 1, .text = small, .text_size = sizeof(small)},
					{.pid = 2, .text = large, .text_size = sizeof(large)},
					{.pid = 3, .text = large, .text_size = sizeof(large) - 1},
					{.pid = 4, .text = small, .text_size = 1}};
	const struct perf_map_copies copies = {.maps = {.items = items, .count = 4}};
	struct perf_map_copies read = {0};
	struct bytes bytes;

	for (size_t i = 0; i < sizeof(large); i++)
		large[i] = (uint8_t)(i * i >> 8);
	ck_assert_ptr_null(section_write(&section_perf_maps, &copies, &buffer));
	bytes = bytes_over(buffer.data, buffer.size);
	ck_assert_ptr_null(section_read(&section_perf_maps, &bytes, &(size_t){LIMIT_UNPACKED_BYTES}, &read));
	ck_assert_uint_eq(read.maps.count, copies.maps.count);
	for (size_t i = 0; i < read.maps.count; i++) {
		ck_assert_int_eq(read.maps.items[i].pid, items[i].pid);
		ck_assert_uint_eq(read.maps.items[i].text_size, items[i].text_size);
		ck_assert_mem_eq(read.maps.items[i].text, items[i].text, items[i].text_size);
	}
	section_perf_maps.deinit(&read);
}
END_TEST

static struct mmt_error *pass_residency(struct resident_run *runs, size_t count, struct recording_residency *read)
{
	struct process_residency process = {
	    .pid = 8, .time_ns = 123, .resident_bytes = 456, .runs = {.items = runs, .count = count}};
	struct process_residency at_start = {.pid = 9, .time_ns = 12, .runs = {.items = runs, .count = 1}};
	const struct recording_residency residency = {.processes = {.items = &process, .count = 1},
						      .at_start = {.items = &at_start, .count = 1}};
	struct bytes bytes;

	buffer_clear(&buffer);
	ck_assert_ptr_null(section_write(&section_residency, &residency, &buffer));
	bytes = bytes_over(buffer.data, buffer.size);
	return section_read(&section_residency, &bytes, &(size_t){LIMIT_UNPACKED_BYTES}, read);
}

/* As written by recorders that read pages at the end only. */
START_TEST(residency_version_1_is_read)
{
	struct recording_residency read = {0};
	struct buffer plain;
	struct bytes bytes;

	buffer_init(&plain, 1 << 12);
	buffer_put_u32(&plain, 1);
	buffer_put_u32(&plain, 8);
	buffer_put_u32(&plain, 1);
	buffer_put_u64(&plain, 0x1000);
	buffer_put_u64(&plain, 0x3000);
	buffer_clear(&buffer);
	ck_assert_ptr_null(pack_section(&plain, 1, &buffer));
	bytes = bytes_over(buffer.data, buffer.size);
	ck_assert_ptr_null(section_read(&section_residency, &bytes, &(size_t){LIMIT_UNPACKED_BYTES}, &read));
	ck_assert_uint_eq(read.processes.count, 1);
	ck_assert_uint_eq(read.processes.items[0].runs.items[0].end, 0x3000);
	ck_assert_uint_eq(read.processes.items[0].resident_bytes, 0);
	ck_assert_uint_eq(read.at_start.count, 0);
	section_residency.deinit(&read);
}
END_TEST

START_TEST(residency_round_trips_and_must_be_in_order)
{
	struct resident_run good[] = {{.start = 0x1000, .end = 0x3000}, {.start = 0x3000, .end = 0x4000}};
	struct resident_run overlapping[] = {{.start = 0x1000, .end = 0x3000}, {.start = 0x2000, .end = 0x4000}};
	struct resident_run empty[] = {{.start = 0x1000, .end = 0x1000}};
	struct resident_run too_high[] = {{.start = 0x1000, .end = LIMIT_RESIDENT_BYTES + 0x1000}};
	struct recording_residency read = {0};
	struct mmt_error *error;

	ck_assert_ptr_null(pass_residency(good, 2, &read));
	ck_assert_uint_eq(read.processes.count, 1);
	ck_assert_int_eq(read.processes.items[0].pid, 8);
	ck_assert_uint_eq(read.processes.items[0].runs.count, 2);
	ck_assert_mem_eq(read.processes.items[0].runs.items, good, sizeof(good));
	ck_assert_uint_eq(read.processes.items[0].time_ns, 123);
	ck_assert_uint_eq(read.processes.items[0].resident_bytes, 456);
	ck_assert_uint_eq(read.at_start.count, 1);
	ck_assert_int_eq(read.at_start.items[0].pid, 9);
	ck_assert_ptr_eq(recording_residency_of(&read, false, 8), &read.processes.items[0]);
	ck_assert_ptr_eq(recording_residency_of(&read, true, 9), &read.at_start.items[0]);
	ck_assert_ptr_null(recording_residency_of(&read, false, 9));
	ck_assert_ptr_null(recording_residency_of(&read, true, 8));
	ck_assert_mem_eq(read.at_start.items[0].runs.items, good, sizeof(good[0]));
	section_residency.deinit(&read);
	error = pass_residency(overlapping, 2, &read);
	ck_assert_ptr_nonnull(error);
	mmt_error_destroy(error);
	error = pass_residency(empty, 1, &read);
	ck_assert_ptr_nonnull(error);
	mmt_error_destroy(error);
	error = pass_residency(too_high, 1, &read);
	ck_assert_ptr_nonnull(error);
	mmt_error_destroy(error);
}
END_TEST

START_TEST(build_ids_round_trip)
{
	struct build_id_entry entries[] = {
	    {.path = "/usr/lib/libc.so.6", .bytes = {1, 2, 3, 20}, .size = 20},
	    {.path = "/tmp/short", .bytes = {9, 8}, .size = 8},
	};
	const struct build_ids ids = {.entries = {.items = entries, .count = 2}};
	struct build_ids read = {0};
	struct bytes bytes;

	build_ids_encode(&ids, &buffer);
	ck_assert_uint_eq(buffer.size, 2 * (36 + 64)); /* as perf has it: a fixed part and a padded path */
	bytes = bytes_over(buffer.data, buffer.size);
	ck_assert_ptr_null(build_ids_decode(&bytes, &read));
	ck_assert_uint_eq(read.entries.count, 2);
	for (size_t i = 0; i < 2; i++) {
		ck_assert_str_eq(read.entries.items[i].path, entries[i].path);
		ck_assert_uint_eq(read.entries.items[i].size, entries[i].size);
		ck_assert_mem_eq(read.entries.items[i].bytes, entries[i].bytes, 20);
	}
	build_ids_deinit(&read);
	bytes = bytes_over(buffer.data, buffer.size - 1);
	mmt_error_destroy(build_ids_decode(&bytes, &read));
	ck_assert_uint_eq(read.entries.count, 0);
}
END_TEST

START_TEST(jitdumps_round_trip)
{
	struct jitdump_copy items[] = {{.pid = 42,
					.namespace_pid = 1,
					.knows_program = true,
					.program_ns = 99,
					.data = (uint8_t *)"JiTD...",
					.size = 7},
				       {.pid = 43, .namespace_pid = 43, .data = NULL, .size = 0}};
	const struct jitdump_copies copies = {.dumps = {.items = items, .count = 2}};
	struct jitdump_copies read = {0};
	struct bytes bytes;

	ck_assert_ptr_null(section_write(&section_jitdumps, &copies, &buffer));
	bytes = bytes_over(buffer.data, buffer.size);
	ck_assert_ptr_null(section_read(&section_jitdumps, &bytes, &(size_t){LIMIT_UNPACKED_BYTES}, &read));
	ck_assert_uint_eq(read.dumps.count, 2);
	ck_assert_int_eq(read.dumps.items[0].pid, 42);
	ck_assert_int_eq(read.dumps.items[0].namespace_pid, 1);
	ck_assert(read.dumps.items[0].knows_program);
	ck_assert_uint_eq(read.dumps.items[0].program_ns, 99);
	ck_assert_uint_eq(read.dumps.items[0].size, 7);
	ck_assert_int_eq(memcmp(read.dumps.items[0].data, "JiTD...", 7), 0);
	ck_assert_int_eq(read.dumps.items[1].pid, 43);
	ck_assert_uint_eq(read.dumps.items[1].size, 0);
	ck_assert(!read.dumps.items[1].knows_program);
	ck_assert_uint_eq(read.dumps.items[1].program_ns, 0);
	section_jitdumps.deinit(&read);
	for (size_t size = 0; size < buffer.size; size++) {
		struct mmt_error *error;

		bytes = bytes_over(buffer.data, size);
		error = section_read(&section_jitdumps, &bytes, &(size_t){LIMIT_UNPACKED_BYTES}, &read);
		ck_assert_ptr_nonnull(error);
		mmt_error_destroy(error);
	}
}
END_TEST

/* Sections share one limit on unpacked bytes. */
START_TEST(sections_share_one_size_limit)
{
	struct jitdump_copy item = {.pid = 1, .size = 1 << 20};
	const struct jitdump_copies copies = {.dumps = {.items = &item, .count = 1}};
	struct jitdump_copies read = {0};
	size_t room = (1 << 20) + 4096, before = room;
	struct mmt_error *error;
	struct bytes bytes;

	item.data = calloc(1, item.size);
	ck_assert_ptr_null(section_write(&section_jitdumps, &copies, &buffer));
	ck_assert_uint_lt(buffer.size, 4096);
	bytes = bytes_over(buffer.data, buffer.size);
	ck_assert_ptr_null(section_read(&section_jitdumps, &bytes, &room, &read));
	section_jitdumps.deinit(&read);
	ck_assert_uint_lt(room, before - item.size);
	bytes = bytes_over(buffer.data, buffer.size);
	error = section_read(&section_jitdumps, &bytes, &room, &read);
	ck_assert_ptr_nonnull(error);
	ck_assert_int_eq(error->code, MMT_ERROR_FORMAT);
	mmt_error_destroy(error);
	ck_assert_uint_le(room, before - item.size);
	free(item.data);
}
END_TEST

Suite *test_suite(void)
{
	Suite *suite = suite_create("sections");
	TCase *cases = add_tcase(suite, "round trips");

	tcase_add_checked_fixture(cases, create, destroy);
	tcase_add_tests(cases, information_round_trips, newer_versions_are_refused, losses_round_trip,
			impossible_losses_are_damage, perf_maps_round_trip, large_perf_maps_round_trip,
			jitdumps_round_trip, huge_pages_round_trip, invalid_huge_pages_are_refused,
			sections_share_one_size_limit, residency_version_1_is_read,
			residency_round_trips_and_must_be_in_order, build_ids_round_trip);
	return suite;
}
