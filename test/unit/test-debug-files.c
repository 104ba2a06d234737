// SPDX-License-Identifier: LGPL-2.1-or-later
/* What must not be opened where debug information is looked for. */
#include <check.h>
#include <stdio.h>
#include <sys/stat.h>

#include "code/dwarf/debug-files.h"
#include "support/run-suite.h"
#include "support/temporary.h"

static char directory[TEMPORARY_PATH_SIZE], program[TEMPORARY_PATH_SIZE + 16], place[TEMPORARY_PATH_SIZE + 16];

static void setup(void)
{
	FILE *file;

	temporary_directory(directory);
	snprintf(program, sizeof(program), "%s/program", directory);
	file = fopen(program, "w");
	ck_assert(file && fclose(file) == 0);
}

static void put_fifo(const char *name)
{
	snprintf(place, sizeof(place), "%s/%s", directory, name);
	ck_assert_int_eq(mkfifo(place, 0600), 0);
}

START_TEST(all_parts_in_one_file)
{
	ck_assert(!debug_place_of_parts_blocks(program));
	put_fifo("program.dwp");
	ck_assert(debug_place_of_parts_blocks(program));
}
END_TEST

/* Where the compiler said the whole path nothing else is looked at. */
START_TEST(a_part_with_its_whole_path)
{
	put_fifo("part.dwo");
	ck_assert(debug_places_of_part_block(program, "/", place));
	ck_assert(!debug_places_of_part_block(program, directory, "/part.dwo"));
	ck_assert(debug_places_of_part_block("/program", directory, "part.dwo"));
	ck_assert(debug_places_of_part_block(program, NULL, "part.dwo"));
}
END_TEST

START_TEST(the_file_of_a_program)
{
	ck_assert(!debug_places_block(program, NULL));
	put_fifo("program.debug");
	ck_assert(debug_places_block(program, NULL));
	ck_assert(!debug_places_block(program, "link.debug"));
	ck_assert(!debug_places_block("/other", NULL));
	ck_assert(debug_places_block(program, "program.debug"));
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("debug-files");
	TCase *tests = tcase_create("debug-places");

	tcase_add_checked_fixture(tests, setup, NULL);
	tcase_add_test(tests, all_parts_in_one_file);
	tcase_add_test(tests, a_part_with_its_whole_path);
	tcase_add_test(tests, the_file_of_a_program);
	suite_add_tcase(suite, tests);
	return run_suite(suite);
}
