// SPDX-License-Identifier: LGPL-2.1-or-later
#include <check.h>
#include <limits.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/helper-process.h"
#include "support/suite.h"

#define SECONDS 60

static void end_well(void *context, int end, pid_t parent)
{
	int none = -1;

	(void)context;
	(void)helper_process_begin(&end, &none, parent);
	_exit(7);
}

START_TEST(the_status_is_that_of_the_child)
{
	struct helper helper = {0};
	int status;

	ck_assert(helper_process_start(&helper, SOCK_STREAM, end_well, NULL));
	status = helper_end(&helper, SECONDS * 1000);
	ck_assert(WIFEXITED(status));
	ck_assert_int_eq(WEXITSTATUS(status), 7);
}
END_TEST

#ifdef __SANITIZE_ADDRESS__
static volatile int largest = INT_MAX;
static volatile size_t beyond = 16;

static void do_harm(void *context, int end, pid_t parent)
{
	volatile char *bytes = malloc(beyond);
	int none = -1;

	(void)helper_process_begin(&end, &none, parent);
	if (context)
		largest = largest + 1;
	else
		bytes[beyond] = 1;
	_exit(0);
}

/* A test of a command sees that its helper had an error. */
START_TEST(an_error_that_a_sanitizer_finds_ends_the_parent)
{
	struct helper helper = {0};

	ck_assert(helper_process_start(&helper, SOCK_STREAM, do_harm, _i ? &helper : NULL));
	(void)helper_end(&helper, SECONDS * 1000);
}
END_TEST
#endif

Suite *test_suite(void)
{
	Suite *suite = suite_create("helper-process");
	TCase *tests = add_tcase(suite, "helper process");

	tcase_set_timeout(tests, 2 * SECONDS);
	tcase_add_test(tests, the_status_is_that_of_the_child);
#ifdef __SANITIZE_ADDRESS__
	tcase_add_loop_test_raise_signal(tests, an_error_that_a_sanitizer_finds_ends_the_parent, SIGABRT, 0, 2);
#endif
	return suite;
}
