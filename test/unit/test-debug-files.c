// SPDX-License-Identifier: LGPL-2.1-or-later
/* Files that must not be opened during the search for debug information. */
#include <check.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/limits.h"
#include "code/names/debug-files.h"
#include "code/names/symbols.h"
#include "support/suite.h"
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

/* If the compiler stored the full path, only that is checked. */
START_TEST(a_part_with_its_full_path)
{
	put_fifo("part.dwo");
	ck_assert(debug_places_of_part_block(program, "/", place));
	ck_assert(!debug_places_of_part_block(program, directory, "/part.dwo"));
	ck_assert(debug_places_of_part_block("/program", directory, "part.dwo"));
	ck_assert(debug_places_of_part_block(program, NULL, "part.dwo"));
}
END_TEST

START_TEST(debug_file_of_a_program)
{
	ck_assert(!debug_places_block(program, NULL));
	put_fifo("program.debug");
	ck_assert(debug_places_block(program, NULL));
	ck_assert(!debug_places_block(program, "link.debug"));
	ck_assert(!debug_places_block("/other", NULL));
	ck_assert(debug_places_block(program, "program.debug"));
}
END_TEST

struct paths {
	char items[128][PATH_MAX];
	size_t count;
};

static struct paths opened, checked;
static bool watching;

/* Two slashes count as one. */
static void note_path(struct paths *paths, const char *path)
{
	char *end = paths->items[paths->count];

	if (!watching || paths->count == 128 || strlen(path) >= PATH_MAX)
		return;
	for (; *path; path++) {
		if (*path != '/' || path[1] != '/')
			*end++ = *path;
	}
	*end = '\0';
	paths->count++;
}

/* Replaces libc's, for libdw too. */
#define FOR_ALL __attribute__((visibility("default")))

FOR_ALL int open(const char *path, int flags, ...)
{
	va_list arguments;
	int mode;

	va_start(arguments, flags);
	mode = flags & (O_CREAT | __O_TMPFILE) ? va_arg(arguments, int) : 0;
	va_end(arguments);
	note_path(&opened, path);
	return (int)syscall(SYS_openat, AT_FDCWD, path, flags, mode);
}

FOR_ALL int stat(const char *path, struct stat *status)
{
	note_path(&checked, path);
	return fstatat(AT_FDCWD, path, status, 0);
}

static void copy_program(const char *from)
{
	FILE *source = fopen(from, "r"), *copy = fopen(program, "w");

	ck_assert(source && copy);
	for (int byte; (byte = getc(source)) != EOF;)
		putc(byte, copy);
	ck_assert_int_eq(fclose(source) | fclose(copy), 0);
}

/* libdw searches; this library only checks the paths that libdw would open. So if libdw opens a path that was not
 * checked, such as one that a newer version has added, the check is incomplete. */
START_TEST(libdw_opens_no_unchecked_path)
{
	struct module_frame frames[LIMIT_INLINED_FRAMES];
	struct symbols *symbols;
	int fd;

	copy_program("/bin/true");
	fd = openat(AT_FDCWD, program, O_RDONLY | O_CLOEXEC);
	watching = true;
	ck_assert_ptr_null(symbols_create(program, fd, false, &symbols));
	(void)symbols_find(symbols, 0x4000, frames);
	symbols_destroy(symbols);
	watching = false;
	close(fd);
	ck_assert_msg(opened.count > 2, "/bin/true has its own debug information");
	for (size_t i = 0; i < opened.count; i++) {
		bool was_checked = false;

		for (size_t j = 0; j < checked.count; j++)
			was_checked |= !strcmp(opened.items[i], checked.items[j]);
		ck_assert_msg(was_checked, "opened without a check: %s", opened.items[i]);
	}
}
END_TEST

Suite *test_suite(void)
{
	Suite *suite = suite_create("debug-files");
	TCase *tests = add_tcase(suite, "debug files");

	tcase_add_checked_fixture(tests, setup, NULL);
	tcase_add_tests(tests, all_parts_in_one_file, a_part_with_its_full_path, debug_file_of_a_program,
			libdw_opens_no_unchecked_path);
	return suite;
}
