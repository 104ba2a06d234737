// SPDX-License-Identifier: LGPL-2.1-or-later
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/limits.h"
#include "capture/procfs/proc.h"
#include "support/suite.h"

static bool parse(const char *text, struct procmaps_line *line)
{
	return procmaps_parse(text, strlen(text), line);
}

START_TEST(file_mapping)
{
	struct procmaps_line line;

	ck_assert(
	    parse("7f8d3710f000-7f8d3713d000 r-xp 00007000 fe:1a 332655                     /usr/lib/lib c.so", &line));
	ck_assert_uint_eq(line.start, 0x7f8d3710f000);
	ck_assert_uint_eq(line.end, 0x7f8d3713d000);
	ck_assert_uint_eq(line.protection, PROT_READ | PROT_EXEC);
	ck_assert(!line.shared);
	ck_assert_uint_eq(line.file_offset, 0x7000);
	ck_assert_uint_eq(line.device_major, 0xfe);
	ck_assert_uint_eq(line.device_minor, 0x1a);
	ck_assert_uint_eq(line.inode, 332655);
	ck_assert_str_eq(line.path, "/usr/lib/lib c.so");
}
END_TEST

START_TEST(anonymous_mapping)
{
	struct procmaps_line line;

	ck_assert(parse("1000-3000 -w-s 00000000 00:00 0 ", &line));
	ck_assert_uint_eq(line.protection, PROT_WRITE);
	ck_assert(line.shared);
	ck_assert_str_eq(line.path, "//anon");
	ck_assert(parse("ffffffffff600000-ffffffffff601000 --xp 00000000 00:00 0                  [vsyscall]", &line));
	ck_assert_uint_eq(line.end, 0xffffffffff601000);
	ck_assert_str_eq(line.path, "[vsyscall]");
}
END_TEST

START_TEST(newline_in_path_is_escaped)
{
	struct procmaps_line line;

	ck_assert(parse("1000-2000 r--p 00000000 fe:00 7 /tmp/a\\012b\\01 (deleted)", &line));
	ck_assert_str_eq(line.path, "/tmp/a\nb\\01 (deleted)");
}
END_TEST

START_TEST(long_path_is_cut)
{
	static char text[2 * LIMIT_PATH_BYTES];
	struct procmaps_line line;
	size_t head = (size_t)sprintf(text, "1000-2000 r--p 00000000 fe:00 7 /");

	memset(text + head, 'x', LIMIT_PATH_BYTES);
	ck_assert(parse(text, &line));
	ck_assert_uint_eq(strlen(line.path), LIMIT_PATH_BYTES - 1);
}
END_TEST

START_TEST(wrong_lines)
{
	static const char *const lines[] = {
	    "",
	    "1000",
	    "1000-",
	    "1000-1000 r--p 00000000 fe:00 7 /x",
	    "2000-1000 r--p 00000000 fe:00 7 /x",
	    "1000-2000 r-",
	    "1000-2000 r--p 00000000 fe:00",
	    "1000-2000 r--p 00000000 100000000:00 7 /x",
	    "10000000000000000-20000000000000000 r--p 00000000 fe:00 7 /x",
	    "1000-2000 r--p 00000000 fe-00 7 /x",
	    "1000-2000 r--p 00000000 fe:00 x /x",
	};
	struct procmaps_line line;

	for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++)
		ck_assert_msg(!parse(lines[i], &line), "accepted: %s", lines[i]);
}
END_TEST

START_TEST(own_maps)
{
	FILE *stream = fopen("/proc/self/maps", "r");
	struct procmaps_line line;
	uint64_t previous_end = 0;
	char *text = NULL;
	size_t capacity = 0;
	ssize_t length;
	bool program = false;

	ck_assert_ptr_nonnull(stream);
	while ((length = getline(&text, &capacity, stream)) > 0) {
		ck_assert_msg(procmaps_parse(text, (size_t)length - 1, &line), "refused: %s", text);
		ck_assert_uint_ge(line.start, previous_end);
		previous_end = line.end;
		program |= line.start <= (uintptr_t)parse && (uintptr_t)parse < line.end && line.protection & PROT_EXEC;
	}
	ck_assert(program);
	free(text);
	fclose(stream);
}
END_TEST

Suite *test_suite(void)
{
	Suite *suite = suite_create("proc-maps");
	TCase *lines = add_tcase(suite, "lines");

	tcase_add_tests(lines, file_mapping, anonymous_mapping, newline_in_path_is_escaped, long_path_is_cut,
			wrong_lines, own_maps);
	return suite;
}
