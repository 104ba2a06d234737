// SPDX-License-Identifier: LGPL-2.1-or-later
/* Nothing that a test creates outlives the program, however the test or the program ends. */
#include "support/temporary.h"

#include <check.h>
#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "support/emulator.h"
#include "support/suite.h"

/* How the test of the other program ends: its argument. */
static const char *ending;

/* The directory of a program started by the test. */
static char place[TEMPORARY_PATH_SIZE];

START_TEST(child_that_makes_files_and_exits)
{
	char directory[TEMPORARY_PATH_SIZE], path[TEMPORARY_PATH_SIZE];
	FILE *file;

	temporary_directory(directory);
	temporary_name(path);
	ck_assert_int_eq(access(path, F_OK), -1);
	file = fopen(path, "w");
	ck_assert_ptr_nonnull(file);
	fclose(file);
	ck_assert_int_eq(chdir(directory), 0);
	ck_assert_int_eq(mkdir("one", 0700), 0);
	ck_assert_int_eq(symlink("/", "one/root"), 0);
	if (!strcmp(ending, "fails"))
		ck_abort_msg("as it should");
	if (!strcmp(ending, "is killed"))
		raise(SIGKILL);
	if (!strcmp(ending, "is killed with all"))
		kill(getppid(), SIGKILL);
}
END_TEST

/* The status of this program, started again with the argument and with a temporary directory of its own. */
static int run_other(const char *argument)
{
	int status = 0;
	pid_t child;

	temporary_directory(place);
	child = fork();
	ck_assert_int_ge(child, 0);
	if (child == 0) {
		setenv("TMPDIR", place, 1);
		(void)!freopen("/dev/null", "w", stdout);
		execl("/proc/self/exe", "test-temporary", argument, NULL);
		_exit(127);
	}
	ck_assert_int_eq(waitpid(child, &status, 0), child);
	return status;
}

START_TEST(nothing_is_left_by_a_test)
{
	static const char *const endings[] = {"ends well", "fails", "is killed"};

	for (size_t i = 0; i < sizeof(endings) / sizeof(*endings); i++) {
		int status = run_other(endings[i]);

		ck_assert(WIFEXITED(status));
		ck_assert_int_eq(WEXITSTATUS(status), i == 0 ? EXIT_SUCCESS : EXIT_FAILURE);
		ck_assert_msg(rmdir(place) == 0, "a test that %s leaves something", endings[i]);
	}
}
END_TEST

/* It is removed when the last process of the program has ended. */
START_TEST(nothing_is_left_by_a_killed_program)
{
	int status = run_other("is killed with all");

	ck_assert(WIFSIGNALED(status));
	while (rmdir(place) < 0)
		usleep(10000);
}
END_TEST

/* Under an emulator, the kernel starts this program again only if it is configured to use the emulator for it. */
static bool can_be_started_again(void)
{
	int status = 0;
	pid_t child = fork();

	if (child == 0) {
		execl("/proc/self/exe", "test-temporary", "is started", NULL);
		_exit(errno == ENOEXEC ? EXIT_SKIP : EXIT_SUCCESS);
	}
	return child < 0 || waitpid(child, &status, 0) != child || !WIFEXITED(status) ||
	       WEXITSTATUS(status) != EXIT_SKIP;
}

Suite *test_suite(void)
{
	Suite *suite = suite_create("temporary");
	TCase *tests = add_tcase(suite, "temporary");

	if (*test_operands && !strcmp(*test_operands, "is started"))
		_exit(EXIT_SUCCESS);
	if (!*test_operands && !can_be_started_again())
		skip_suite("the kernel cannot start programs for this architecture (binfmt_misc)");
	if (*test_operands) {
		ending = *test_operands;
		tcase_add_test(tests, child_that_makes_files_and_exits);
	} else {
		tcase_set_timeout(tests, 600);
		tcase_add_tests(tests, nothing_is_left_by_a_test, nothing_is_left_by_a_killed_program);
	}
	return suite;
}
