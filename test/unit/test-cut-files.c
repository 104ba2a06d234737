// SPDX-License-Identifier: LGPL-2.1-or-later
#include <check.h>
#include <stdio.h>
#include <sys/wait.h>

/* The tested functions are declared in no header that a test may include. */
#include "../../cmd/cli/report-command.c"
#include "../../cmd/cli/message.c"
#include "../../cmd/cli/options.c"
#include "support/suite.h"

static const struct command report = {.name = "report"};

/* A file of two pages, mapped, then truncated to one. */
static const volatile char *map_cut_file(void)
{
	long page_bytes = sysconf(_SC_PAGESIZE);
	FILE *stream = tmpfile();
	const volatile char *mapped;

	ck_assert_ptr_nonnull(stream);
	ck_assert_int_eq(ftruncate(fileno(stream), 2 * page_bytes), 0);
	ck_assert_int_eq(pwrite(fileno(stream), "first", 5, 0), 5);
	ck_assert_int_eq(pwrite(fileno(stream), "second", 6, page_bytes), 6);
	mapped = mmap(NULL, (size_t)(2 * page_bytes), PROT_READ, MAP_PRIVATE, fileno(stream), 0);
	ck_assert_ptr_ne((const void *)mapped, MAP_FAILED);
	ck_assert_int_eq(ftruncate(fileno(stream), page_bytes), 0);
	fclose(stream);
	return mapped;
}

START_TEST(test_truncated_pages_read_as_zeros)
{
	const volatile char *mapped = map_cut_file();

	truncated_files_ignore();
	ck_assert_int_eq(happened, 0);
	ck_assert_int_eq(mapped[0], 'f');
	ck_assert_int_eq(happened, 0);
	ck_assert_int_eq(mapped[sysconf(_SC_PAGESIZE)], 0);
	ck_assert_int_eq(mapped[sysconf(_SC_PAGESIZE) + 5], 0);
	ck_assert_int_eq(mapped[0], 'f');
	ck_assert_int_eq(happened, 1);
}
END_TEST

START_TEST(test_truncation_is_reported_after_an_access)
{
	char text[512] = "";
	FILE *saved = stderr;

	stderr = fmemopen(text, sizeof(text), "w");
	truncated_files_report(&report);
	fflush(stderr);
	ck_assert_str_eq(text, "");
	happened = 1;
	truncated_files_report(&report);
	fclose(stderr);
	stderr = saved;
	ck_assert_ptr_nonnull(strstr(text, "was truncated"));
}
END_TEST

/* A signal sent by another process does not concern a page of a file. */
START_TEST(test_other_bus_errors_kill)
{
	truncated_files_ignore();
	raise(SIGBUS);
}
END_TEST

Suite *test_suite(void)
{
	Suite *suite = suite_create("cut-files");
	TCase *tests = add_tcase(suite, "cut-files");

	tcase_add_tests(tests, test_truncated_pages_read_as_zeros, test_truncation_is_reported_after_an_access);
	tcase_add_test_raise_signal(tests, test_other_bus_errors_kill, SIGBUS);
	return suite;
}
