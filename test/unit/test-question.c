// SPDX-License-Identifier: LGPL-2.1-or-later
#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "capture/proc.h"
#include "capture/question.h"
#include "support/run-suite.h"

static struct question question;
static struct question_target target;
static char refusal[QUESTION_REFUSAL_BYTES];

static void create(void)
{
	question = (struct question){0};
	target = (struct question_target){.pid = getpid(), .namespace_pid = 7, .pidfd = -1};
	strcpy(refusal, "untouched");
}

static enum question_answer wait_for_answer(void)
{
	enum question_answer answer;
	struct pollfd ready = {.fd = question.answer, .events = POLLIN};

	ck_assert_int_eq(poll(&ready, 1, 30000), 1);
	answer = question_take_answer(&question, refusal);
	ck_assert_int_eq(question.child, 0);
	ck_assert_int_eq(waitpid(-1, NULL, WNOHANG), -1);
	ck_assert_int_eq(errno, ECHILD);
	return answer;
}

static enum question_answer agree(const struct question_target *asked, char *refusal_ret)
{
	if (asked->pid != getppid() || asked->namespace_pid != 7)
		strcpy(refusal_ret, "another target");
	return QUESTION_AGREED;
}

static enum question_answer refuse(const struct question_target *asked, char *refusal_ret)
{
	(void)asked;
	memset(refusal_ret, 'r', QUESTION_REFUSAL_BYTES - 1);
	return QUESTION_REFUSED;
}

static enum question_answer die(const struct question_target *asked, char *refusal_ret)
{
	(void)asked;
	(void)refusal_ret;
	raise(SIGKILL);
	return QUESTION_AGREED;
}

static enum question_answer hang(const struct question_target *asked, char *refusal_ret)
{
	(void)asked;
	(void)refusal_ret;
	while (pause() < 0)
		;
	return QUESTION_UNANSWERED;
}

START_TEST(a_target_that_agrees)
{
	ck_assert(question_put(&question, &target, agree));
	ck_assert_int_eq(wait_for_answer(), QUESTION_AGREED);
	ck_assert_str_eq(refusal, "");
}
END_TEST

START_TEST(a_target_that_refuses_has_a_reason)
{
	ck_assert(question_put(&question, &target, refuse));
	ck_assert_int_eq(wait_for_answer(), QUESTION_REFUSED);
	ck_assert_uint_eq(strlen(refusal), QUESTION_REFUSAL_BYTES - 1);
	ck_assert_uint_eq(strspn(refusal, "r"), strlen(refusal));
}
END_TEST

START_TEST(whoever_asks_may_die_of_it)
{
	ck_assert(question_put(&question, &target, die));
	ck_assert_int_eq(wait_for_answer(), QUESTION_UNANSWERED);
	ck_assert_str_eq(refusal, "asking it failed");
}
END_TEST

START_TEST(nothing_waits_for_an_answer)
{
	pid_t child;

	ck_assert(question_put(&question, &target, hang));
	ck_assert_int_eq(question_take_answer(&question, refusal), QUESTION_WAITS);
	ck_assert_str_eq(refusal, "untouched");
	child = question.child;
	question_drop(&question);
	ck_assert_int_eq(kill(child, 0), -1);
	ck_assert_int_eq(errno, ESRCH);
	question_drop(&question);
}
END_TEST

/* Started with `count` strings of 100 KiB before the one that is looked for. */
static char *find_behind(unsigned count)
{
	char *arguments[] = {(char *)"sleep", (char *)"60", NULL};
	char **environment = calloc(count + 2, sizeof(*environment));
	int started[2];
	char *value, byte;
	pid_t child;

	for (unsigned i = 0; i < count; i++) {
		environment[i] = malloc(100 << 10);
		memset(environment[i], 'x', 100 << 10);
		environment[i][(100 << 10) - 1] = '\0';
	}
	environment[count] = (char *)"TMPDIR=/somewhere";
	ck_assert_int_eq(pipe2(started, O_CLOEXEC), 0);
	child = fork();
	if (child == 0) {
		execvpe("sleep", arguments, environment);
		_exit(127);
	}
	close(started[1]);
	ck_assert_int_eq(read(started[0], &byte, 1), 0);
	value = proc_environment(child, "TMPDIR");
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
	close(started[0]);
	for (unsigned i = 0; i < count; i++)
		free(environment[i]);
	free(environment);
	return value;
}

START_TEST(a_variable_is_found_in_so_much_environment)
{
	char *value = find_behind(1);

	ck_assert_str_eq(value, "/somewhere");
	free(value);
	ck_assert_ptr_null(find_behind(11));
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("question");
	TCase *tests = tcase_create("question");

	tcase_add_checked_fixture(tests, create, NULL);
	tcase_add_test(tests, a_target_that_agrees);
	tcase_add_test(tests, a_target_that_refuses_has_a_reason);
	tcase_add_test(tests, whoever_asks_may_die_of_it);
	tcase_add_test(tests, nothing_waits_for_an_answer);
	tcase_add_test(tests, a_variable_is_found_in_so_much_environment);
	suite_add_tcase(suite, tests);
	return run_suite(suite);
}
