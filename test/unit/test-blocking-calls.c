// SPDX-License-Identifier: LGPL-2.1-or-later
/* Calls that do not return, made by the helper process. */
#include "capture/process/blocking-calls.h"

#include <check.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include "capture/recorder.h"
#include "support/suite.h"

#define PLACE 12345

static struct mmt_record_options options;
static struct recorder *recorder;
static struct blocking_calls *calls;
static int stop_ends[2];
static unsigned warnings;

static void count_warning(void *context, bool warning, const char *text)
{
	(void)context;
	(void)text;
	warnings += warning;
}

static void set_up(void)
{
	ck_assert_int_eq(pipe2(stop_ends, O_CLOEXEC), 0);
	options = (struct mmt_record_options){.stop_fd = stop_ends[0], .message = count_warning};
	warnings = 0;
	recorder = calloc(1, sizeof(*recorder));
	ck_assert_ptr_nonnull(recorder);
	recorder->options = &options;
	calls = &recorder->calls;
	ck_assert_ptr_null(blocking_calls_start(calls, recorder));
}

static void tear_down(void)
{
	blocking_calls_end(calls);
	free(recorder);
	close(stop_ends[0]);
	close(stop_ends[1]);
}

_Noreturn static size_t say_nothing(const void *argument, int given, void *result, int *opened_ret)
{
	(void)argument;
	(void)given;
	(void)result;
	(void)opened_ret;
	for (;;)
		pause();
}

static size_t crash(const void *argument, int given, void *result, int *opened_ret)
{
	(void)argument;
	(void)given;
	(void)result;
	(void)opened_ret;
	_exit(1);
}

/* Reverses the argument; opens the descriptor that it was given once more; fails with ENOTTY. */
static size_t reverse(const void *argument, int given, void *result, int *opened_ret)
{
	const char *text = argument;
	size_t length = strlen(text);

	for (size_t i = 0; i < length; i++)
		((char *)result)[i] = text[length - 1 - i];
	*opened_ret = given < 0 ? -1 : dup(given);
	errno = ENOTTY;
	return length;
}

static void expect_answer(void)
{
	char result[16] = "";
	struct blocking_call call = {.place = PLACE + 1,
				     .run = reverse,
				     .argument = "helper",
				     .argument_bytes = 7,
				     .given = -1,
				     .result = result,
				     .result_bytes = sizeof(result)};

	ck_assert(blocking_call(calls, &call));
	ck_assert_int_eq(errno, ENOTTY);
	ck_assert_str_eq(result, "repleh");
	ck_assert_uint_eq(call.result_bytes, 6);
	ck_assert_int_eq(call.opened, -1);
}

START_TEST(answers_have_results_and_descriptors)
{
	char result[BLOCKING_RESULT_BYTES] = "", byte = 0;
	struct blocking_call call = {.place = PLACE,
				     .run = reverse,
				     .argument = "",
				     .argument_bytes = 1,
				     .given = stop_ends[1],
				     .result = result,
				     .result_bytes = sizeof(result)};

	expect_answer();
	ck_assert(blocking_call(calls, &call));
	ck_assert_int_ge(call.opened, 0);
	ck_assert_int_eq(write(call.opened, "x", 1), 1);
	ck_assert_int_eq(read(stop_ends[0], &byte, 1), 1);
	ck_assert_int_eq(byte, 'x');
	close(call.opened);
	ck_assert_uint_eq(calls->blocked.count, 0);
}
END_TEST

static bool is_silent(uint64_t place)
{
	struct blocking_call call = {.place = place, .run = say_nothing, .given = -1};
	bool answered = blocking_call(calls, &call);

	ck_assert(answered || errno == ETIMEDOUT);
	return !answered;
}

/* The user has stopped the recording, so this test need not wait for the usual deadlines. */
START_TEST(silence_is_survived)
{
	pid_t first = calls->child;

	ck_assert_int_eq(write(stop_ends[1], "x", 1), 1);
	ck_assert(is_silent(PLACE));
	ck_assert_uint_eq(calls->blocked.count, 1);
	ck_assert_uint_eq(warnings, 1);
	expect_answer();
	ck_assert_int_ne(calls->child, first);
	ck_assert(is_silent(PLACE + 2));
	ck_assert_uint_eq(warnings, 1);
	ck_assert(is_silent(place_of_process(1)));
	ck_assert_uint_eq(warnings, 2);
	expect_answer();
	ck_assert_uint_lt(blocking_calls_left_ns(calls), 500000000);
	/* The killed helpers return from their calls at once, and their places can be used again. */
	while (blocking_calls_are_stuck(calls, PLACE))
		usleep(1000);
}
END_TEST

/* No more than one helper for each place, and not more than a few. */
START_TEST(stuck_places_get_no_helper)
{
	pid_t child = calls->child;

	for (size_t i = 0; i < 40; i++) {
		struct blocked_place other = {PLACE + 10 + i, 0};

		other.child = fork();
		if (other.child == 0)
			(void)say_nothing(NULL, -1, NULL, NULL);
		ck_assert(vector_push(&calls->blocked, other));
		if (i == 20) {
			ck_assert(is_silent(PLACE + 10));
			ck_assert_int_eq(calls->child, child);
			expect_answer();
		}
	}
	ck_assert(is_silent(PLACE));
	ck_assert_int_eq(calls->child, child);
	for (size_t i = 0; i < calls->blocked.count; i++)
		kill(calls->blocked.items[i].child, SIGKILL);
	while (blocking_calls_are_stuck(calls, PLACE))
		usleep(1000);
	expect_answer();
}
END_TEST

START_TEST(dead_helper_is_replaced)
{
	struct blocking_call call = {.place = PLACE, .run = crash, .given = -1};

	ck_assert(!blocking_call(calls, &call));
	ck_assert(!blocking_calls_are_stuck(calls, PLACE));
	expect_answer();
}
END_TEST

static size_t count_descriptors(const void *argument, int given, void *result, int *opened_ret)
{
	DIR *directory = opendir("/proc/self/fd");
	const struct dirent *entry;
	unsigned count = 0;

	(void)argument;
	(void)given;
	(void)opened_ret;
	while (directory && (entry = readdir(directory)))
		count += entry->d_name[0] != '.';
	closedir(directory);
	memcpy(result, &count, sizeof(count));
	return sizeof(count);
}

/* A helper that outlives the recorder keeps no pipe open: standard streams (of /dev/null), the socket, the directory.
 */
START_TEST(helper_has_no_descriptors)
{
	unsigned count = 0;
	struct blocking_call call = {
	    .place = PLACE, .run = count_descriptors, .given = -1, .result = &count, .result_bytes = sizeof(count)};

	ck_assert(blocking_call(calls, &call));
	ck_assert_uint_eq(count, 5);
}
END_TEST

Suite *test_suite(void)
{
	Suite *suite = suite_create("blocking calls");
	TCase *tests = add_tcase(suite, "blocking calls");

	tcase_add_checked_fixture(tests, set_up, tear_down);
	tcase_add_test(tests, answers_have_results_and_descriptors);
	tcase_add_test(tests, silence_is_survived);
	tcase_add_test(tests, stuck_places_get_no_helper);
	tcase_add_test(tests, dead_helper_is_replaced);
	tcase_add_test(tests, helper_has_no_descriptors);
	return suite;
}
