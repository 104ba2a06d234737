// SPDX-License-Identifier: LGPL-2.1-or-later
/* Calls that do not return, made by the helper process. */
#include "capture/procfs/blocking-calls.h"

#include <check.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/inotify.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "capture/procfs/clock.h"
#include "capture/recorder/recorder.h"
#include "capture/runtimes/ask-runtime.h"
#include "support/suite.h"
#include "support/temporary.h"

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
	ck_assert_ptr_null(ring_reader_start_helper(recorder));
}

static void tear_down(void)
{
	blocking_calls_end(calls);
	free(recorder);
	close(stop_ends[0]);
	close(stop_ends[1]);
}

_Noreturn static void say_nothing(struct blocking_call *call)
{
	(void)call;
	for (;;)
		pause();
}

static void crash(struct blocking_call *call)
{
	(void)call;
	_exit(1);
}

/* Reverses the argument; opens the descriptor that it was given once more; fails with ENOTTY. */
static void reverse(struct blocking_call *call)
{
	const char *text = call->argument;
	size_t length = strlen(text);

	for (size_t i = 0; i < length; i++)
		((char *)call->result)[i] = text[length - 1 - i];
	call->opened = call->given < 0 ? -1 : dup(call->given);
	call->result_bytes = length;
	errno = ENOTTY;
}

/* On a busy machine, a helper may get a CPU after the short deadline of a stopped recording: then ask again. */
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

	while (!blocking_call(calls, &call)) {
		ck_assert_int_eq(errno, ETIMEDOUT);
		while (blocking_calls_are_stuck(calls, PLACE + 1))
			usleep(1000);
	}
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

static void kill_blocked(void)
{
	for (size_t i = 0; i < calls->blocked.count; i++)
		kill(calls->blocked.items[i].child, SIGKILL);
}

/* The user has stopped the recording, so this test need not wait for the usual deadlines. */
START_TEST(silence_is_survived)
{
	pid_t first = calls->process.child;

	ck_assert_int_eq(write(stop_ends[1], "x", 1), 1);
	ck_assert(is_silent(PLACE));
	ck_assert_uint_eq(calls->blocked.count, 1);
	ck_assert_uint_eq(warnings, 1);
	expect_answer();
	ck_assert_int_ne(calls->process.child, first);
	ck_assert(is_silent(PLACE + 2));
	ck_assert_uint_eq(warnings, 1);
	ck_assert(is_silent(place_of_process(1)));
	ck_assert_uint_eq(warnings, 2);
	expect_answer();
	ck_assert_uint_gt(calls->lost_ns, 500000000);
	/* A place costs one deadline, and can be used again when its helper is gone. */
	ck_assert(blocking_calls_are_stuck(calls, PLACE));
	ck_assert_uint_eq(calls->blocked.count, 3);
	kill_blocked();
	while (blocking_calls_are_stuck(calls, PLACE))
		usleep(1000);
}
END_TEST

/* No more than one helper for each place, and not more than a few. */
START_TEST(stuck_places_get_no_helper)
{
	pid_t child = calls->process.child;

	for (size_t i = 0; i < 40; i++) {
		struct blocked_place other = {PLACE + 10 + i, 0};

		other.child = fork();
		if (other.child == 0)
			say_nothing(NULL);
		ck_assert(vector_push(&calls->blocked, other));
		if (i == 20) {
			ck_assert(is_silent(PLACE + 10));
			ck_assert_int_eq(calls->process.child, child);
			expect_answer();
		}
	}
	ck_assert_uint_eq(warnings, 0);
	ck_assert(is_silent(PLACE));
	ck_assert(is_silent(PLACE));
	ck_assert_uint_eq(warnings, 1);
	ck_assert_int_eq(calls->process.child, child);
	/* Others may be asked without a helper; that this one was not does not show that it is gone. */
	ck_assert(!blocking_calls_are_stuck(calls, PLACE));
	ck_assert(blocking_calls_would_fail(calls, PLACE));
	ck_assert(recorder_has_helper(recorder, child));
	ck_assert(recorder_has_helper(recorder, calls->blocked.items[39].child));
	ck_assert(!recorder_has_helper(recorder, getpid()));
	kill_blocked();
	expect_answer();
}
END_TEST

START_TEST(dead_helper_is_replaced)
{
	struct blocking_call call = {.place = PLACE, .run = crash, .given = -1};

	ck_assert(!blocking_call(calls, &call));
	ck_assert(!blocking_calls_are_stuck(calls, PLACE));
	expect_answer();
	ck_assert(!blocking_call(calls, &call));
	ck_assert_uint_eq(warnings, 1);
}
END_TEST

static void sleep_a_while(struct blocking_call *call)
{
	(void)call;
	usleep(20000);
}

START_TEST(waiting_is_measured)
{
	struct blocking_call call = {.place = PLACE, .run = sleep_a_while, .given = -1};

	ck_assert(blocking_call(_i ? calls : NULL, &call));
	ck_assert_uint_ge(call.waited_ns, 10000000);
	ck_assert_uint_lt(calls->spent_ns, call.waited_ns);
}
END_TEST

/* A helper that has to wait for a CPU begins its call later than it was asked. */
START_TEST(the_beginning_is_that_in_the_helper)
{
	char result[16] = "";
	struct blocking_call call = {.place = PLACE,
				     .run = reverse,
				     .argument = "x",
				     .argument_bytes = 2,
				     .given = -1,
				     .result = result,
				     .result_bytes = sizeof(result)};
	_Atomic uint64_t *continued_ns =
	    mmap(NULL, sizeof(*continued_ns), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	pid_t helper = calls->process.child, child;

	ck_assert_ptr_ne((void *)continued_ns, MAP_FAILED);
	ck_assert_int_eq(kill(helper, SIGSTOP), 0);
	ck_assert_int_eq(waitpid(helper, NULL, WUNTRACED), helper);
	child = fork();
	if (!child) {
		usleep(20000);
		*continued_ns = clock_now_ns();
		_exit(kill(helper, SIGCONT));
	}
	ck_assert(blocking_call(calls, &call));
	ck_assert_int_eq(waitpid(child, NULL, 0), child);
	ck_assert_uint_ge(calls->began_ns, *continued_ns);
	ck_assert_uint_le(calls->began_ns, clock_now_ns());
}
END_TEST

/* Only time spent on calls shortens later ones, and even then a call may wait for a CPU. */
START_TEST(a_stop_leaves_time_for_calls)
{
	ck_assert_int_eq(write(stop_ends[1], "x", 1), 1);
	calls->lost_ns = 990000000;
	ck_assert(is_silent(PLACE));
	ck_assert_uint_ge(calls->lost_ns, 990000000 + 200000000);
}
END_TEST

static void become_nobody(struct blocking_call *call)
{
	*(int *)call->result = setuid(65534);
	call->result_bytes = sizeof(int);
}

/* As with the security module Yama, the helper may not open memory that the recorder may open. */
START_TEST(the_recorder_opens_memory)
{
	int failed = 1;
	struct blocking_call call = {
	    .place = PLACE, .run = become_nobody, .given = -1, .result = &failed, .result_bytes = sizeof(failed)};
	char text[] = "memory", copy[sizeof(text)];
	int memory, maps;

	if (getuid() != 0)
		SKIP_TEST("only root can give the helper fewer rights");
	ck_assert(blocking_call(calls, &call) && !failed);
	maps = process_file_open(calls, getpid(), "maps");
	ck_assert_int_eq(maps, -1);
	ck_assert_int_eq(errno, EACCES);
	memory = process_file_open(calls, getpid(), "mem");
	ck_assert_int_ge(memory, 0);
	ck_assert_int_eq(process_file_read(calls, getpid(), memory, copy, sizeof(copy), (int64_t)(uintptr_t)text),
			 sizeof(copy));
	ck_assert_str_eq(copy, text);
	close(memory);
}
END_TEST

/* A file that cannot be read now was not rewritten. */
START_TEST(silence_does_not_change_a_mark)
{
	struct traced_process process = {.tmp_place = PLACE};
	struct file_mark mark = {.inode = 1, .length = 4, .last = "text"}, before = mark;
	const struct stat status = {.st_ino = 1, .st_size = 4};
	struct blocked_place blocked = {PLACE, 0};
	FILE *file = tmpfile();
	uint64_t length;

	ck_assert_ptr_nonnull(file);
	ck_assert_int_eq(fputs("text", file), 1);
	ck_assert_int_eq(fflush(file), 0);
	ck_assert(file_mark_check(recorder, &process, &mark, fileno(file), &status, &length));
	ck_assert_uint_eq(length, 4);
	blocked.child = fork();
	if (blocked.child == 0)
		say_nothing(NULL);
	ck_assert(vector_push(&calls->blocked, blocked));
	ck_assert(!file_mark_check(recorder, &process, &mark, fileno(file), &status, &length));
	ck_assert(!file_mark_set(recorder, &process, &mark, fileno(file), 1, 3));
	ck_assert_mem_eq(&mark, &before, sizeof(mark));
	kill(blocked.child, SIGKILL);
	fclose(file);
}
END_TEST

#define LARGE_BYTES ((1u << 20) + 5)
#define OPENS_MAX 6 /* however slow the machine is: each opening reads a quarter of a megabyte, or the rest */

/* On a file system in user space, each opening is a request to another process. */
START_TEST(large_reads_open_the_file_rarely)
{
	char path[TEMPORARY_PATH_SIZE], events[4096];
	uint8_t *bytes = malloc(LARGE_BYTES), *copy = malloc(LARGE_BYTES + 1);
	int fd, found, watch = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
	ssize_t size;

	temporary_name(path);
	fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	found = open(path, O_PATH | O_CLOEXEC);
	ck_assert(bytes && copy && fd >= 0 && found >= 0 && watch >= 0);
	for (size_t i = 0; i < LARGE_BYTES; i++)
		bytes[i] = (uint8_t)(i * 31 >> 8);
	ck_assert_int_eq(write(fd, bytes, LARGE_BYTES), LARGE_BYTES);
	ck_assert_int_ge(inotify_add_watch(watch, path, IN_OPEN | IN_CLOSE), 0);
	ck_assert_int_eq(target_file_read(calls, PLACE, found, copy, LARGE_BYTES + 1, 0), LARGE_BYTES);
	ck_assert_mem_eq(copy, bytes, LARGE_BYTES);
	size = read(watch, events, sizeof(events));
	ck_assert_int_gt(size, 0);
	ck_assert_int_le(size, 2 * OPENS_MAX * (ssize_t)sizeof(struct inotify_event));
	ck_assert_int_eq(target_file_read(calls, PLACE, found, copy, LARGE_BYTES, 7), LARGE_BYTES - 7);
	ck_assert_mem_eq(copy, bytes + 7, LARGE_BYTES - 7);
	temporary_remove(path);
	close(watch);
	close(found);
	close(fd);
	free(copy);
	free(bytes);
}
END_TEST

static void count_descriptors(struct blocking_call *call)
{
	DIR *directory = opendir("/proc/self/fd");
	const struct dirent *entry;
	unsigned count = 0;

	while (directory && (entry = readdir(directory)))
		count += entry->d_name[0] != '.';
	closedir(directory);
	memcpy(call->result, &count, sizeof(count));
	call->result_bytes = sizeof(count);
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
	tcase_add_loop_test(tests, waiting_is_measured, 0, 2);
	tcase_add_test(tests, the_beginning_is_that_in_the_helper);
	tcase_add_test(tests, a_stop_leaves_time_for_calls);
	tcase_add_test(tests, the_recorder_opens_memory);
	tcase_add_test(tests, silence_does_not_change_a_mark);
	tcase_add_test(tests, large_reads_open_the_file_rarely);
	return suite;
}
