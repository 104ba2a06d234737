// SPDX-License-Identifier: LGPL-2.1-or-later
/* Incremental metadata among the records, as a killed recorder leaves it. */
#include <check.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/bytes.h"
#include "support/recording-builder.h"
#include "support/suite.h"
#include "support/temporary.h"
#include "trace/format/format.h"
#include "trace/read/reader.h"

static char path[TEMPORARY_PATH_SIZE];
static struct recording_builder *builder;
static struct reader *reader;

static void set_up(void)
{
	temporary_name(path);
	builder = builder_create(path);
	reader = NULL;
}

static void tear_down(void)
{
	reader_close(reader);
}

static void put_piece(enum name_piece kind, int32_t pid, uint64_t time_ns, uint64_t offset, const void *bytes,
		      size_t size, size_t stated_size)
{
	struct buffer body;

	buffer_init(&body, UINT16_MAX);
	buffer_put_u64(&body, 0);
	buffer_put_u16(&body, 0);
	buffer_put_u16(&body, (uint16_t)(40 + stated_size));
	buffer_put_u32(&body, kind);
	buffer_put_u32(&body, (uint32_t)pid);
	buffer_put_u32(&body, 1);
	buffer_put_u32(&body, 0);
	buffer_put_u64(&body, time_ns - 5);
	buffer_put_u64(&body, time_ns);
	buffer_put_u64(&body, offset);
	buffer_put(&body, bytes, size);
	buffer_align(&body, 8);
	buffer_put_u32(&body, (uint32_t)pid);
	buffer_put_u32(&body, (uint32_t)pid);
	buffer_put_u64(&body, time_ns);
	buffer_put_u64(&body, 0);
	buffer_put_u64(&body, NAME_PIECE_ID);
	ck_assert_ptr_null(buffer_finish(&body));
	builder_record(builder, RECORD_TEXT_POKE, body.data, body.size);
	buffer_deinit(&body);
}

static void put_text(enum name_piece kind, int32_t pid, uint64_t time_ns, uint64_t offset, const char *text)
{
	put_piece(kind, pid, time_ns, offset, text, strlen(text), strlen(text));
}

static const struct reader_metadata *read_metadata(bool killed)
{
	if (killed)
		builder_abandon(builder);
	else
		builder_finish(builder, 10000);
	ck_assert_ptr_null(reader_open(path, NULL, &reader));
	return &reader->metadata.values;
}

static void expect_bytes(const void *bytes, size_t size, const char *text)
{
	ck_assert_uint_eq(size, strlen(text));
	ck_assert_int_eq(memcmp(bytes, text, size), 0);
}

START_TEST(test_perf_maps_grow)
{
	const struct reader_metadata *metadata;
	const struct perf_map_copy *map;

	put_text(NAME_PIECE_PERF_MAP, 7, 1000, 0, "10 8 a\n");
	put_text(NAME_PIECE_PERF_MAP, 8, 1100, 0, "of another\n");
	put_text(NAME_PIECE_PERF_MAP, 7, 2000, 7, "20 8 b\n");
	metadata = read_metadata(true);
	ck_assert(metadata->incomplete);
	ck_assert_uint_eq(metadata->perf_maps.maps.count, 2);
	map = &metadata->perf_maps.maps.items[0];
	ck_assert_int_eq(map->pid, 7);
	ck_assert_int_eq(map->namespace_pid, 1);
	expect_bytes(map->text, map->text_size, "10 8 a\n20 8 b\n");
	ck_assert_uint_eq(map->growth.count, 3);
	ck_assert_uint_eq(map->growth.items[0].time_ns, 1000);
	ck_assert_uint_eq(map->growth.items[0].length, 7);
	ck_assert_uint_eq(map->growth.items[1].time_ns, 1995);
	ck_assert_uint_eq(map->growth.items[1].length, 7);
	ck_assert_uint_eq(map->growth.items[2].time_ns, 2000);
	ck_assert_uint_eq(map->growth.items[2].length, 14);
	map = &metadata->perf_maps.maps.items[1];
	expect_bytes(map->text, map->text_size, "of another\n");
}
END_TEST

START_TEST(test_restarted_files_and_gaps)
{
	const struct reader_metadata *metadata;
	const struct perf_map_copy *map;

	put_text(NAME_PIECE_PERF_MAP, 7, 1000, 0, "10 8 old\n20 8 old\n");
	put_text(NAME_PIECE_PERF_MAP, 7, 2000, 0, "10 8 new\n");
	put_text(NAME_PIECE_PERF_MAP, 7, 3000, 500, "behind a gap\n");
	metadata = read_metadata(true);
	map = &metadata->perf_maps.maps.items[0];
	expect_bytes(map->text, map->text_size, "10 8 new\n");
	ck_assert_uint_eq(map->growth.items[0].time_ns, 2000);
}
END_TEST

START_TEST(test_jitdumps)
{
	const struct reader_metadata *metadata;

	put_text(NAME_PIECE_JITDUMP, 7, 1000, 0, "JiTD");
	put_text(NAME_PIECE_JITDUMP, 7, 2000, 4, "more");
	put_text(NAME_PIECE_JITDUMP, 7, 3000, 0, "another"); /* of the next program in this process */
	put_text(NAME_PIECE_JITDUMP, 7, 4000, 99, "lost");
	metadata = read_metadata(true);
	ck_assert_uint_eq(metadata->jitdumps.dumps.count, 2);
	expect_bytes(metadata->jitdumps.dumps.items[0].data, metadata->jitdumps.dumps.items[0].size, "JiTDmore");
	expect_bytes(metadata->jitdumps.dumps.items[1].data, metadata->jitdumps.dumps.items[1].size, "another");
	ck_assert(metadata->jitdumps.dumps.items[1].knows_program);
	ck_assert_uint_eq(metadata->jitdumps.dumps.items[1].program_ns, 3000 - 5);
}
END_TEST

START_TEST(test_build_ids)
{
	struct build_id_entry entries[] = {{.path = (char *)"/one", .bytes = {1, 2, 3}, .size = 3},
					   {.path = (char *)"/two", .bytes = {4}, .size = 20}};
	const struct build_ids ids = {.entries = {.items = entries, .count = 2}};
	const struct reader_metadata *metadata;
	struct buffer buffer;

	buffer_init(&buffer, 4096);
	build_ids_encode(&ids, &buffer);
	put_piece(NAME_PIECE_BUILD_IDS, 0, 1000, 0, buffer.data, buffer.size, buffer.size);
	put_text(NAME_PIECE_BUILD_IDS, 0, 1000, 0, "no build-ids at all");
	buffer_deinit(&buffer);
	metadata = read_metadata(true);
	ck_assert_uint_eq(metadata->build_ids.entries.count, 2);
	ck_assert_str_eq(metadata->build_ids.entries.items[0].path, "/one");
	ck_assert_uint_eq(metadata->build_ids.entries.items[0].size, 3);
	ck_assert_uint_eq(metadata->build_ids.entries.items[0].bytes[2], 3);
	ck_assert_str_eq(metadata->build_ids.entries.items[1].path, "/two");
}
END_TEST

START_TEST(test_false_pieces_are_refused)
{
	const struct reader_metadata *metadata;

	put_piece(NAME_PIECE_PERF_MAP, 7, 1000, 0, "short", 5, 5000);
	put_piece((enum name_piece)77, 7, 1000, 0, "unknown", 7, 7);
	put_piece(NAME_PIECE_JITDUMP, 7, 1000, 0, "", 0, 0);
	put_piece(NAME_PIECE_PERF_MAP, 7, 1000, UINT64_MAX, "wraps", 5, 5);
	metadata = read_metadata(true);
	for (size_t i = 0; i < metadata->perf_maps.maps.count; i++)
		ck_assert_uint_eq(metadata->perf_maps.maps.items[i].text_size, 0);
	ck_assert_uint_eq(metadata->build_ids.entries.count, 0);
}
END_TEST

/* More than a recorder writes is damage; what precedes it is read. */
START_TEST(test_too_many_pieces_are_damage)
{
	enum { PIECE = 60000, COUNT = (256 << 20) / PIECE + 4 };
	static char text[PIECE];
	const struct reader_metadata *metadata;

	memset(text, 'x', sizeof(text));
	put_text(NAME_PIECE_PERF_MAP, 7, 1000, 0, "10 8 a\n");
	for (int i = 0; i < COUNT; i++)
		put_piece(NAME_PIECE_PERF_MAP, 8, 2000, 0, text, sizeof(text), sizeof(text));
	metadata = read_metadata(true);
	ck_assert_ptr_nonnull(reader_damage(reader));
	ck_assert_ptr_nonnull(strstr(reader_damage(reader), "pieces"));
	expect_bytes(metadata->perf_maps.maps.items[0].text, metadata->perf_maps.maps.items[0].text_size, "10 8 a\n");
}
END_TEST

/* Each of many processes, and each of many dumps of one process, is found without a search. */
START_TEST(test_many_files_are_found_quickly)
{
	enum { PROCESSES = 20000 };
	const struct reader_metadata *metadata;

	for (int round = 0; round < 2; round++) {
		for (int i = 0; i < PROCESSES; i++) {
			put_text(NAME_PIECE_PERF_MAP, 1 + i, 1000, (uint64_t)(7 * round), "10 8 a\n");
			put_text(NAME_PIECE_JITDUMP, 1 + i, 1000, (uint64_t)(4 * round), "JiTD");
		}
	}
	metadata = read_metadata(true);
	ck_assert_ptr_null(reader_damage(reader));
	ck_assert_uint_eq(metadata->perf_maps.maps.count, PROCESSES);
	ck_assert_uint_eq(metadata->jitdumps.dumps.count, PROCESSES);
	for (int i = 0; i < PROCESSES; i++) {
		ck_assert_uint_eq(metadata->perf_maps.maps.items[i].text_size, 14);
		ck_assert_uint_eq(metadata->jitdumps.dumps.items[i].size, 8);
	}
}
END_TEST

/* A complete file has its sections. */
START_TEST(test_complete_files_have_sections)
{
	const struct reader_metadata *metadata;

	put_text(NAME_PIECE_PERF_MAP, 7, 1000, 0, "10 8 a\n");
	metadata = read_metadata(false);
	ck_assert(!metadata->incomplete);
	ck_assert_uint_eq(metadata->perf_maps.maps.count, 0);
}
END_TEST

Suite *test_suite(void)
{
	Suite *suite = suite_create("incremental-metadata");
	TCase *tests = add_tcase(suite, "incremental metadata");

	tcase_add_checked_fixture(tests, set_up, tear_down);
	tcase_set_timeout(tests, 600);
	tcase_add_tests(tests, test_perf_maps_grow, test_restarted_files_and_gaps, test_jitdumps, test_build_ids,
			test_false_pieces_are_refused, test_too_many_pieces_are_damage,
			test_many_files_are_found_quickly, test_complete_files_have_sections);
	return suite;
}
