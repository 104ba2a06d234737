// SPDX-License-Identifier: LGPL-2.1-or-later
#include "analysis/resolver/resolver.h"

#include <check.h>
#include <elf.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "support/suite.h"

#define PID 100
#define CODE_ADDRESS 0x1000
#define CODE_BYTES 16
#define LINES 1000000
#define LINE_BYTES 18 /* with a file name of one letter */
#define LOOKUPS 100000

static void put_header(struct buffer *file)
{
	buffer_put_u32(file, 0x4a695444);
	buffer_put_u32(file, 1); /* version */
	buffer_put_u32(file, 40);
	buffer_put_u32(file, EM_X86_64);
	buffer_put_u32(file, 0);
	buffer_put_u32(file, PID);
	buffer_put_u64(file, 1); /* time */
	buffer_put_u64(file, 0);
}

/* The lines of the code, unordered; that of the last byte is last. */
static void put_lines(struct buffer *file)
{
	buffer_put_u32(file, 2);
	buffer_put_u32(file, 16 + 16 + LINES * LINE_BYTES);
	buffer_put_u64(file, 5); /* time */
	buffer_put_u64(file, CODE_ADDRESS);
	buffer_put_u64(file, LINES);
	for (size_t i = 0; i < LINES; i++) {
		buffer_put_u64(file, CODE_ADDRESS + (i == LINES - 1 ? CODE_BYTES - 1 : 0));
		buffer_put_u32(file, i == LINES - 1 ? 9 : 7);
		buffer_put_u32(file, 0);
		buffer_put(file, "f", 2);
	}
}

static void put_code(struct buffer *file)
{
	static const char name[] = "method";

	buffer_put_u32(file, 0);
	buffer_put_u32(file, 16 + 40 + sizeof(name) + CODE_BYTES);
	buffer_put_u64(file, 6); /* time */
	buffer_put_u32(file, PID);
	buffer_put_u32(file, PID);
	buffer_put_u64(file, CODE_ADDRESS);
	buffer_put_u64(file, CODE_ADDRESS);
	buffer_put_u64(file, CODE_BYTES);
	buffer_put_u64(file, 1); /* index */
	buffer_put(file, name, sizeof(name));
	buffer_put(file, "0123456789abcdef", CODE_BYTES);
}

/* Unwinding looks up the code at every step, never its line. */
START_TEST(looking_up_a_name_reads_no_lines)
{
	struct reader_metadata metadata = {0};
	struct jitdump_copy copy = {.pid = PID};
	struct jit_names *names = NULL;
	struct buffer file;
	uint32_t number, line;

	buffer_init(&file, 1u << 26);
	put_header(&file);
	put_lines(&file);
	put_code(&file);
	copy.data = file.data;
	copy.size = file.size;
	ck_assert(vector_push(&metadata.jitdumps.dumps, copy));
	ck_assert_ptr_null(jit_names_create(&metadata, PID, &names));
	for (size_t i = 0; i < LOOKUPS; i++) {
		number = jit_names_find(names, CODE_ADDRESS + i % CODE_BYTES, 50, 0);
		ck_assert_uint_ne(number, 0);
		ck_assert_str_eq(jit_names_describe(names, number).name, "method");
	}
	ck_assert_str_eq(jit_names_line(names, number, CODE_ADDRESS + CODE_BYTES - 1, &line), "f");
	ck_assert_uint_eq(line, 9);
	ck_assert_str_eq(jit_names_line(names, number, CODE_ADDRESS, &line), "f");
	ck_assert_uint_eq(line, 7);
	jit_names_destroy(names);
	vector_deinit(&metadata.jitdumps.dumps);
	buffer_deinit(&file);
}
END_TEST

static void expect_map_name(const struct reader_metadata *metadata, uint64_t time_ns, uint64_t program_ns,
			    const char *expected)
{
	struct jit_names *names = NULL;
	uint32_t number;

	ck_assert_ptr_null(jit_names_create(metadata, PID, &names));
	number = jit_names_find(names, CODE_ADDRESS, time_ns, program_ns);
	ck_assert_pstr_eq(number ? jit_names_describe(names, number).name : NULL, expected);
	jit_names_destroy(names);
}

/* A dump with one piece of code written at this time, or with times of another clock. */
static void make_dump(struct buffer *file, const char *name, uint64_t time_ns, bool other_clock)
{
	size_t length = strlen(name) + 1;

	buffer_init(file, 1u << 12);
	put_header(file);
	if (other_clock)
		file->data[32] = 1;
	buffer_put_u32(file, 0);
	buffer_put_u32(file, (uint32_t)(16 + 40 + length + CODE_BYTES));
	buffer_put_u64(file, time_ns);
	buffer_put_u32(file, PID);
	buffer_put_u32(file, PID);
	buffer_put_u64(file, CODE_ADDRESS);
	buffer_put_u64(file, CODE_ADDRESS);
	buffer_put_u64(file, CODE_BYTES);
	buffer_put_u64(file, 1); /* index */
	buffer_put(file, name, length);
	buffer_put(file, "0123456789abcdef", CODE_BYTES);
}

/* Of a process that executes another program at 100. */
static void expect_names_of_both(const struct reader_metadata *metadata)
{
	expect_map_name(metadata, 10, 0, "old"); /* written down somewhat late */
	expect_map_name(metadata, 50, 0, "old");
	expect_map_name(metadata, 110, 100, "new");
	expect_map_name(metadata, 150, 100, "new");
}

/* Jitdumps, whatever clock they use. */
START_TEST(jitdumps_belong_to_their_program)
{
	struct jitdump_copy dumps[2] = {{.pid = PID, .knows_program = true},
					{.pid = PID, .knows_program = true, .program_ns = 100}};
	struct reader_metadata metadata = {.jitdumps = {.dumps = {.items = dumps, .count = 2}}};
	struct buffer old, new;

	for (int other_clock = 0; other_clock < 2; other_clock++) {
		make_dump(&old, "old", 20, other_clock);
		make_dump(&new, "new", 120, other_clock);
		dumps[0].data = old.data;
		dumps[0].size = old.size;
		dumps[1].data = new.data;
		dumps[1].size = new.size;
		metadata.jitdumps.dumps.items = dumps;
		metadata.jitdumps.dumps.count = 2;
		expect_names_of_both(&metadata);
		metadata.jitdumps.dumps.count = 1;
		expect_map_name(&metadata, 50, 0, "old");
		expect_map_name(&metadata, 150, 100, NULL);
		metadata.jitdumps.dumps.items = dumps + 1;
		expect_map_name(&metadata, 50, 0, NULL);
		expect_map_name(&metadata, 110, 100, "new");
		buffer_deinit(&old);
		buffer_deinit(&new);
	}
}
END_TEST

START_TEST(names_belong_to_their_program)
{
	static char old_text[] = "1000 10 old\n", new_text[] = "1000 10 new\n";
	struct perf_map_growth old_growth[] = {{20, sizeof(old_text) - 1}};
	struct perf_map_growth new_growth[] = {{100, 0}, {120, sizeof(new_text) - 1}};
	struct perf_map_copy maps[] = {{.pid = PID,
					.growth = {.items = old_growth, .count = 1},
					.text = (uint8_t *)old_text,
					.text_size = sizeof(old_text) - 1},
				       {.pid = PID,
					.growth = {.items = new_growth, .count = 2},
					.text = (uint8_t *)new_text,
					.text_size = sizeof(new_text) - 1}};
	struct reader_metadata metadata = {.perf_maps = {.maps = {.items = maps, .count = 2}}};

	expect_names_of_both(&metadata);
	metadata.perf_maps.maps.count = 1;
	expect_map_name(&metadata, 50, 0, "old");
	expect_map_name(&metadata, 150, 100, NULL);
	metadata.perf_maps.maps.items = maps + 1;
	expect_map_name(&metadata, 50, 0, NULL);
	expect_map_name(&metadata, 150, 100, "new");
}
END_TEST

Suite *test_suite(void)
{
	Suite *suite = suite_create("jit-names");
	TCase *tests = add_tcase(suite, "jit-names");

	tcase_add_tests(tests, looking_up_a_name_reads_no_lines, names_belong_to_their_program,
			jitdumps_belong_to_their_program);
	return suite;
}
