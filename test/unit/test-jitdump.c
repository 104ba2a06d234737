// SPDX-License-Identifier: LGPL-2.1-or-later
#include "code/jit/code-timeline.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "support/suite.h"

#define NO_END UINT64_MAX

static struct buffer file;

static void put_header(uint32_t magic, uint32_t version, uint32_t size, uint64_t flags)
{
	buffer_put_u32(&file, magic);
	buffer_put_u32(&file, version);
	buffer_put_u32(&file, size);
	buffer_put_u32(&file, 62);
	buffer_put_u32(&file, 0);
	buffer_put_u32(&file, 1);
	buffer_put_u64(&file, 0);
	buffer_put_u64(&file, flags);
}

static void set_up(void)
{
	buffer_init(&file, 1 << 20);
	put_header(0x4a695444, 1, 40, 0);
}

static void tear_down(void)
{
	buffer_deinit(&file);
}

static void put_prefix(uint32_t id, size_t size, uint64_t time_ns)
{
	buffer_put_u32(&file, id);
	buffer_put_u32(&file, (uint32_t)size + 16);
	buffer_put_u64(&file, time_ns);
}

static void put_load(uint64_t time_ns, uint64_t address, uint64_t size, uint64_t index, const char *name)
{
	put_prefix(0, 40 + strlen(name) + 1 + size, time_ns);
	buffer_put_u32(&file, 1);
	buffer_put_u32(&file, 2);
	buffer_put_u64(&file, address);
	buffer_put_u64(&file, address);
	buffer_put_u64(&file, size);
	buffer_put_u64(&file, index);
	buffer_put(&file, name, strlen(name) + 1);
	for (uint64_t i = 0; i < size; i++)
		buffer_put(&file, &(uint8_t){(uint8_t)(index + i)}, 1);
}

static void put_move(uint64_t time_ns, uint64_t from, uint64_t to, uint64_t size, uint64_t index)
{
	put_prefix(1, 48, time_ns);
	buffer_put_u32(&file, 1);
	buffer_put_u32(&file, 2);
	buffer_put_u64(&file, from);
	buffer_put_u64(&file, from);
	buffer_put_u64(&file, to);
	buffer_put_u64(&file, size);
	buffer_put_u64(&file, index);
}

static void put_line(uint64_t address, uint32_t line, const char *name)
{
	buffer_put_u64(&file, address);
	buffer_put_u32(&file, line);
	buffer_put_u32(&file, 0);
	buffer_put(&file, name, strlen(name) + 1);
}

static struct jitdump *parse(uint64_t clock_end_ns)
{
	struct jitdump *dump = NULL;

	ck_assert_ptr_null(buffer_finish(&file));
	ck_assert_ptr_null(jitdump_create(file.data, file.size, clock_end_ns, &dump));
	return dump;
}

static void expect_name(struct jitdump *dump, uint64_t address, uint64_t time_ns, const char *name)
{
	uint32_t number = jitdump_find(dump, address, time_ns);

	if (name) {
		ck_assert_uint_ne(number, CODE_TIMELINE_NONE);
		ck_assert_str_eq(jitdump_code(dump, number).name, name);
	} else {
		ck_assert_uint_eq(number, CODE_TIMELINE_NONE);
	}
}

START_TEST(test_loads_by_time)
{
	struct jitdump *dump;
	struct named_code code;

	put_load(100, 0x1000, 16, 0, "first");
	put_load(300, 0x1008, 16, 1, "second");
	put_load(200, 0x1000, 4, 2, "between"); /* written late: its time counts */
	dump = parse(NO_END);
	expect_name(dump, 0x1000, 50, "first"); /* the first one */
	expect_name(dump, 0x1000, 150, "first");
	expect_name(dump, 0x1000, 250, "between");
	expect_name(dump, 0x100c, 299, "first");
	expect_name(dump, 0x100c, 300, "second");
	expect_name(dump, 0x1004, 400, "first");
	expect_name(dump, 0x1017, 400, "second");
	expect_name(dump, 0x1018, 400, NULL);
	expect_name(dump, 0xfff, 400, NULL);
	code = jitdump_code(dump, jitdump_find(dump, 0x1010, 400));
	ck_assert_uint_eq(code.start, 0x1008);
	ck_assert_uint_eq(code.size, 16);
	ck_assert_uint_eq(code.bytes[0], 1);
	ck_assert_uint_eq(code.bytes[15], 16);
	ck_assert_uint_eq(dump->stats.unread, 0);
	ck_assert(!dump->stats.other_clock);
	jitdump_destroy(dump);
}
END_TEST

START_TEST(test_move_and_close)
{
	struct jitdump *dump;

	put_load(100, 0x1000, 16, 7, "moved");
	put_move(200, 0x1000, 0x2000, 16, 7);
	put_move(300, 0x5000, 0x6000, 16, 99); /* of nothing */
	put_prefix(3, 0, 400);
	put_prefix(77, 0, 400);
	dump = parse(NO_END);
	expect_name(dump, 0x1004, 150, "moved");
	expect_name(dump, 0x1004, 250, NULL);
	expect_name(dump, 0x2004, 250, "moved");
	expect_name(dump, 0x6000, 400, NULL);
	ck_assert_uint_eq(jitdump_code(dump, jitdump_find(dump, 0x2004, 250)).start, 0x2000);
	ck_assert_uint_eq(jitdump_code(dump, jitdump_find(dump, 0x2004, 250)).bytes[0], 7);
	ck_assert_uint_eq(dump->stats.refused, 1); /* the move of nothing */
	jitdump_destroy(dump);
}
END_TEST

static void expect_line(struct jitdump *dump, uint64_t address, const char *file_name, uint32_t line)
{
	const char *found_file = NULL;
	uint32_t found_line = 0;
	bool found = jitdump_line(dump, jitdump_find(dump, address, NO_END), address, &found_file, &found_line);

	ck_assert(found == (file_name != NULL));
	if (!found)
		return;
	ck_assert_str_eq(found_file, file_name);
	ck_assert_uint_eq(found_line, line);
}

START_TEST(test_lines)
{
	struct jitdump *dump;

	put_prefix(2, 16 + 3 * 16 + 5 + 2 + 5, 100);
	buffer_put_u64(&file, 0x1000);
	buffer_put_u64(&file, 3);
	put_line(0x1002, 10, "a.js");
	put_line(0x1006, 11, "\xff");
	put_line(0x100a, 3, "b.js");
	put_load(100, 0x1000, 16, 1, "f");
	put_load(100, 0x2000, 16, 2, "g");
	put_move(100, 0x1000, 0x3000, 16, 1);
	dump = parse(NO_END);
	expect_line(dump, 0x3000, NULL, 0);
	expect_line(dump, 0x3002, "a.js", 10);
	expect_line(dump, 0x3009, "a.js", 11);
	expect_line(dump, 0x300f, "b.js", 3);
	expect_line(dump, 0x2005, NULL, 0); /* the info was the other one's */
	jitdump_destroy(dump);
}
END_TEST

/* CIE: version 1, "zR", code 1, data -8, return address 16, pcrel sdata4; CFA r7+8, return address at CFA-8. FDE: 16
 * bytes of code that start 16 bytes before the section, which follows them: the length field is at 24 + 8. */
static const uint8_t eh_frame[] = {
    20, 0, 0,  0, 0, 0, 0,    0,    1,	  'z',	'R', 0, 1, 0x78, 16, 1,	   0x1b, 12, 7, 8, 0x90, 1, 0, 0, 20, 0,
    0,	0, 28, 0, 0, 0, 0xd0, 0xff, 0xff, 0xff, 16,  0, 0, 0,	 0,  0x41, 14,	 16, 0, 0, 0,	 0, 0, 0, 0,  0,
};

START_TEST(test_unwinding)
{
	const struct cfi_row *row;
	struct jitdump *dump;
	uint32_t number;

	put_prefix(4, 24 + sizeof(eh_frame) + 4, 100);
	buffer_put_u64(&file, sizeof(eh_frame) + 4);
	buffer_put_u64(&file, 4);
	buffer_put_u64(&file, 0);
	buffer_put(&file, eh_frame, sizeof(eh_frame));
	buffer_put(&file, "head", 4);
	put_load(100, 0x1000, 16, 1, "f");
	put_load(100, 0x2000, 16, 2, "g");
	put_move(200, 0x1000, 0x3000, 16, 1);
	dump = parse(NO_END);
	for (int moved = 0; moved < 2; moved++) {
		uint64_t start = moved ? 0x3000 : 0x1000;

		number = jitdump_find(dump, start, moved ? 200 : 100);
		row = jitdump_cfi(dump, number, start);
		ck_assert_ptr_nonnull(row);
		ck_assert_uint_eq(row->cfa_register, 7);
		ck_assert_int_eq(row->cfa_offset, 8);
		row = jitdump_cfi(dump, number, start + 5);
		ck_assert_ptr_nonnull(row);
		ck_assert_int_eq(row->cfa_offset, 16);
	}
	number = jitdump_find(dump, 0x2000, 100);
	ck_assert_ptr_null(jitdump_cfi(dump, number, 0x2000));
	jitdump_destroy(dump);
}
END_TEST

/* Truncated anywhere: the complete records are used. */
START_TEST(test_truncated)
{
	size_t whole;
	struct jitdump *dump = NULL;

	put_load(100, 0x1000, 16, 1, "first");
	whole = file.size;
	put_load(100, 0x2000, 16, 2, "second");
	for (size_t size = 0; size < file.size; size++) {
		uint8_t *copy = malloc(size ? size : 1); /* so that sanitizers see a read behind it */
		struct mmt_error *error;

		memcpy(copy, file.data, size);
		error = jitdump_create(copy, size, NO_END, &dump);
		ck_assert((error != NULL) == (size < 40));
		if (error) {
			mmt_error_destroy(error);
		} else {
			expect_name(dump, 0x1000, 100, size < whole ? NULL : "first");
			expect_name(dump, 0x2000, 100, NULL);
			ck_assert_uint_eq(dump->stats.unread, size - (size < whole ? 40 : whole));
			ck_assert_uint_eq(dump->stats.refused, 0);
			jitdump_destroy(dump);
		}
		free(copy);
	}
}
END_TEST

START_TEST(test_false_lengths)
{
	struct jitdump *dump;
	size_t broken;

	/* Code that is longer than its record; a name without an end; missing lines and rows. */
	put_prefix(0, 40 + 2, 100);
	for (int i = 0; i < 2; i++)
		buffer_put_u64(&file, 0x1000);
	buffer_put_u64(&file, 0x1000);
	buffer_put_u64(&file, 1 << 11);
	buffer_put_u64(&file, 1);
	buffer_put(&file, "f", 2);
	put_prefix(0, 40 + 2, 100);
	for (int i = 0; i < 5; i++)
		buffer_put_u64(&file, 0x2000);
	buffer_put(&file, "gg", 2);
	put_prefix(2, 16, 100);
	buffer_put_u64(&file, 0x3000);
	buffer_put_u64(&file, UINT64_MAX);
	put_prefix(4, 24, 100);
	for (int i = 0; i < 3; i++)
		buffer_put_u64(&file, UINT64_MAX - 7);
	put_load(100, 0x3000, 16, 1, "h");
	put_load(100, UINT64_MAX - 3, 16, 1, "wraps");
	broken = file.size;
	buffer_put_u32(&file, 0); /* a size of 0 would never end */
	buffer_put_u32(&file, 0);
	buffer_put_u64(&file, 0);
	put_load(100, 0x4000, 16, 1, "behind");
	dump = parse(NO_END);
	expect_name(dump, 0x1000, 100, "f");
	ck_assert_ptr_null(jitdump_code(dump, jitdump_find(dump, 0x1000, 100)).bytes);
	expect_name(dump, 0x2000, 100, NULL);
	expect_name(dump, 0x3000, 100, "h");
	expect_line(dump, 0x3004, NULL, 0);
	ck_assert_ptr_null(jitdump_cfi(dump, jitdump_find(dump, 0x3000, 100), 0x3000));
	expect_name(dump, UINT64_MAX - 2, 100, NULL);
	expect_name(dump, 0x4000, 100, NULL);
	ck_assert_uint_eq(dump->stats.refused, 4); /* gg, the lines, the rows, "wraps" */
	ck_assert_uint_eq(dump->stats.unread, file.size - broken);
	jitdump_destroy(dump);
}
END_TEST

/* Times of another clock have no meaning: the later record counts. */
START_TEST(test_other_clock)
{
	struct jitdump *dump;

	put_load(2000000000, 0x1000, 16, 1, "first");
	put_load(3000000000, 0x1000, 16, 2, "second");
	dump = parse(2500000000);
	ck_assert(!dump->stats.other_clock);
	expect_name(dump, 0x1000, 2100000000, "first");
	jitdump_destroy(dump);
	dump = parse(1500000000);
	ck_assert(dump->stats.other_clock);
	expect_name(dump, 0x1000, 1400000000, "second");
	jitdump_destroy(dump);
	buffer_clear(&file);
	put_header(0x4a695444, 1, 40, 1);
	put_load(100, 0x1000, 16, 1, "first");
	dump = parse(NO_END);
	ck_assert(dump->stats.other_clock);
	jitdump_destroy(dump);
}
END_TEST

static void expect_refused(enum mmt_error_code code)
{
	struct jitdump *dump = NULL;
	struct mmt_error *error = jitdump_create(file.data, file.size, NO_END, &dump);

	ck_assert_ptr_nonnull(error);
	ck_assert_int_eq(error->code, code);
	mmt_error_destroy(error);
}

START_TEST(test_other_files_are_refused)
{
	static const struct {
		uint32_t magic, version, size;
		enum mmt_error_code code;
	} cases[] = {
	    {0x4454694a, 1, 40, MMT_ERROR_UNSUPPORTED},
	    {0x4a695444, 2, 40, MMT_ERROR_UNSUPPORTED},
	    {0x4a695444, 1, 39, MMT_ERROR_FORMAT},
	    {0x12345678, 1, 40, MMT_ERROR_FORMAT},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		buffer_clear(&file);
		put_header(cases[i].magic, cases[i].version, cases[i].size, 0);
		expect_refused(cases[i].code);
	}
}
END_TEST

Suite *test_suite(void)
{
	Suite *suite = suite_create("jitdump");
	TCase *tests = add_tcase(suite, "jitdump");

	tcase_add_checked_fixture(tests, set_up, tear_down);
	tcase_set_timeout(tests, 600);
	tcase_add_tests(tests, test_loads_by_time, test_move_and_close, test_lines, test_unwinding, test_truncated,
			test_false_lengths, test_other_clock, test_other_files_are_refused);
	return suite;
}
