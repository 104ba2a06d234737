// SPDX-License-Identifier: LGPL-2.1-or-later
#include <check.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "capture/procfs/proc.h"
#include "capture/runtimes/ask-runtime.h"
#include "support/suite.h"

static struct helper helper;
static struct helper_target target;
static char refusal[HELPER_REFUSAL_BYTES];

static void create(void)
{
	helper = (struct helper){0};
	target = (struct helper_target){.pid = getpid(), .namespace_pid = 7, .pidfd = -1};
	strcpy(refusal, "untouched");
}

/* The child has answered or was killed; without a CPU it ends later than the recorder waits. */
static void wait_for_end(void)
{
	for (unsigned i = 0; i < 30000 && helper.dying; i++) {
		helper_reap(&helper);
		usleep(1000);
	}
	ck_assert_int_eq(helper.dying, 0);
}

static enum helper_answer wait_for_answer(void)
{
	enum helper_answer answer;
	struct pollfd ready = {.fd = helper.answer, .events = POLLIN};

	ck_assert_int_eq(poll(&ready, 1, 30000), 1);
	answer = helper_poll(&helper, refusal);
	ck_assert_int_eq(helper.child, 0);
	wait_for_end();
	ck_assert_int_eq(waitpid(-1, NULL, WNOHANG), -1);
	ck_assert_int_eq(errno, ECHILD);
	return answer;
}

static enum helper_answer agree(const struct helper_target *asked, char *refusal_ret)
{
	if (asked->pid != getppid() || asked->namespace_pid != 7)
		strcpy(refusal_ret, "another target");
	return HELPER_AGREED;
}

static enum helper_answer refuse(const struct helper_target *asked, char *refusal_ret)
{
	(void)asked;
	memset(refusal_ret, 'r', HELPER_REFUSAL_BYTES - 1);
	return HELPER_REFUSED;
}

static enum helper_answer die(const struct helper_target *asked, char *refusal_ret)
{
	(void)asked;
	(void)refusal_ret;
	raise(SIGKILL);
	return HELPER_AGREED;
}

static enum helper_answer hang(const struct helper_target *asked, char *refusal_ret)
{
	(void)asked;
	(void)refusal_ret;
	while (pause() < 0)
		;
	return HELPER_UNANSWERED;
}

static size_t count_descriptors(void)
{
	DIR *directory = opendir("/proc/self/fd");
	size_t count = 0;

	ck_assert_ptr_nonnull(directory);
	for (const struct dirent *entry = readdir(directory); entry; entry = readdir(directory))
		count += entry->d_name[0] != '.' && atoi(entry->d_name) != dirfd(directory);
	closedir(directory);
	return count;
}

/* Nothing can be read from standard input or written to standard output; the reply pipe and the target are open. A
 * sanitizer writes to standard error. */
static enum helper_answer look_for_files(const struct helper_target *asked, char *refusal_ret)
{
	char byte = 0;

	if (read(0, &byte, 1) >= 0 || write(1, &byte, 1) >= 0)
		strcpy(refusal_ret, "the standard descriptors are open");
	else if (count_descriptors() != 4 + (asked->pidfd >= 0))
		sprintf(refusal_ret, "%zu descriptors", count_descriptors());
	else if (asked->pidfd >= 0 && fcntl(asked->pidfd, F_GETFD) != FD_CLOEXEC)
		sprintf(refusal_ret, "no pidfd");
	return HELPER_REFUSED;
}

/* Until the returned process ends, no parent learns of the child's end. */
static pid_t trace(pid_t child)
{
	int ready[2];
	char byte = 0;
	pid_t tracer;

	ck_assert_int_eq(pipe2(ready, O_CLOEXEC), 0);
	tracer = fork();
	if (tracer == 0) {
		if (ptrace(PTRACE_SEIZE, child, NULL, NULL) == 0)
			byte = 1;
		(void)!write(ready[1], &byte, 1);
		for (;;)
			pause();
	}
	close(ready[1]);
	ck_assert_int_eq(read(ready[0], &byte, 1), 1);
	close(ready[0]);
	if (byte)
		return tracer;
	kill(tracer, SIGKILL);
	waitpid(tracer, NULL, 0);
	return 0;
}

static bool start_helper(helper_ask *ask)
{
	target.ask = ask;
	return helper_start(&helper, &target);
}

START_TEST(a_target_that_agrees)
{
	ck_assert(start_helper(agree));
	ck_assert_int_eq(wait_for_answer(), HELPER_AGREED);
	ck_assert_str_eq(refusal, "");
}
END_TEST

START_TEST(a_target_that_refuses_has_a_reason)
{
	ck_assert(start_helper(refuse));
	ck_assert_int_eq(wait_for_answer(), HELPER_REFUSED);
	ck_assert_uint_eq(strlen(refusal), HELPER_REFUSAL_BYTES - 1);
	ck_assert_uint_eq(strspn(refusal, "r"), strlen(refusal));
}
END_TEST

START_TEST(helper_may_be_killed_by_the_target)
{
	ck_assert(start_helper(die));
	ck_assert_int_eq(wait_for_answer(), HELPER_UNANSWERED);
	ck_assert_str_eq(refusal, "asking it failed");
}
END_TEST

START_TEST(no_caller_waits_for_an_answer)
{
	pid_t child;

	ck_assert(start_helper(hang));
	ck_assert_int_eq(helper_poll(&helper, refusal), HELPER_WAITS);
	ck_assert_str_eq(refusal, "untouched");
	child = helper.child;
	(void)helper_end(&helper, 0);
	wait_for_end();
	ck_assert_int_eq(kill(child, 0), -1);
	ck_assert_int_eq(errno, ESRCH);
	(void)helper_end(&helper, 0);
}
END_TEST

START_TEST(helper_has_no_descriptors_of_the_recorder)
{
	int ends[2], pidfd = (int)syscall(SYS_pidfd_open, getpid(), 0);

	ck_assert_int_ge(pidfd, 0);
	ck_assert_int_eq(pipe2(ends, O_CLOEXEC), 0);
	for (int with = 0; with < 2; with++) {
		target.pidfd = with ? pidfd : -1;
		ck_assert(start_helper(look_for_files));
		ck_assert_int_eq(wait_for_answer(), HELPER_REFUSED);
		ck_assert_str_eq(refusal, "");
	}
	close(ends[0]);
	close(ends[1]);
	close(pidfd);
}
END_TEST

START_TEST(a_helper_that_exits_late_is_still_reaped)
{
	pid_t child, tracer;

	ck_assert(start_helper(hang));
	child = helper.child;
	tracer = trace(child);
	(void)helper_end(&helper, 0);
	ck_assert_int_eq(helper.child, 0);
	if (!tracer)
		SKIP_TEST("tracing is not permitted here");
	ck_assert_int_eq(helper.dying, child);
	ck_assert(!start_helper(agree));
	kill(tracer, SIGKILL);
	ck_assert_int_eq(waitpid(tracer, NULL, 0), tracer);
	wait_for_end();
	ck_assert_int_eq(waitpid(-1, NULL, WNOHANG), -1);
	ck_assert(start_helper(agree));
	ck_assert_int_eq(wait_for_answer(), HELPER_AGREED);
}
END_TEST

#define ONE_USER 65533
#define OTHER_USER 65534

static void become(uid_t user)
{
	ck_assert_int_eq(setresgid(user, user, user), 0);
	ck_assert_int_eq(setresuid(user, user, user), 0);
}

/* Like a recorder whose file has capabilities. */
static void become_with_capabilities(uid_t user)
{
	struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3];

	ck_assert_int_eq(prctl(PR_SET_KEEPCAPS, 1), 0);
	become(user);
	ck_assert_int_eq(syscall(SYS_capget, &header, data), 0);
	for (unsigned i = 0; i < _LINUX_CAPABILITY_U32S_3; i++)
		data[i].effective = data[i].permitted;
	ck_assert_int_eq(syscall(SYS_capset, &header, data), 0);
}

static bool has_capabilities(void)
{
	struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3] = {0};

	ck_assert_int_eq(syscall(SYS_capget, &header, data), 0);
	return data[0].permitted || data[1].permitted || data[0].effective || data[1].effective;
}

static pid_t start_of(uid_t user)
{
	pid_t child = fork();

	if (child == 0) {
		become(user);
		raise(SIGSTOP);
		for (;;)
			pause();
	}
	ck_assert_int_eq(waitpid(child, NULL, WUNTRACED), child);
	return child;
}

/* In a child, which drops its privileges: 0, or what is wrong. */
static int become_user_of(pid_t asked)
{
	uid_t owner = 0;

	become_with_capabilities(ONE_USER);
	if (!has_capabilities())
		return 1;
	if (target_become_user(asked, &owner))
		return 2;
	return owner != geteuid() ? 3 : has_capabilities() ? 4 : 0;
}

START_TEST(helper_has_the_privileges_of_its_target)
{
	static const uid_t users[] = {ONE_USER, OTHER_USER};

	if (geteuid() != 0)
		SKIP_TEST("it needs root, which can drop its capabilities");
	for (unsigned i = 0; i < 2; i++) {
		pid_t asked = start_of(users[i]), child = fork();
		int status;

		if (child == 0)
			_exit(become_user_of(asked));
		ck_assert_int_eq(waitpid(child, &status, 0), child);
		ck_assert(WIFEXITED(status));
		ck_assert_int_eq(WEXITSTATUS(status), 0);
		kill(asked, SIGKILL);
		ck_assert_int_eq(waitpid(asked, NULL, 0), asked);
	}
}
END_TEST

/* It has them some time after the exec has closed its descriptors. */
static void wait_for_environment(pid_t process)
{
	ssize_t count = 0;
	char path[64], byte;

	snprintf(path, sizeof(path), "/proc/%d/environ", (int)process);
	for (unsigned i = 0; i < 30000 && count <= 0; i++) {
		int fd = open(path, O_RDONLY | O_CLOEXEC);

		ck_assert_int_ge(fd, 0);
		count = read(fd, &byte, 1);
		close(fd);
		if (count <= 0)
			usleep(1000);
	}
	ck_assert_int_eq(count, 1);
}

/* Started with `count` strings of 100 KiB before the one to find. */
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
	wait_for_environment(child);
	value = proc_environment(child, "TMPDIR");
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
	close(started[0]);
	for (unsigned i = 0; i < count; i++)
		free(environment[i]);
	free(environment);
	return value;
}

START_TEST(a_variable_is_found_in_a_large_environment)
{
	char *value = find_behind(1);

	ck_assert_str_eq(value, "/somewhere");
	free(value);
	ck_assert_ptr_null(find_behind(11));
}
END_TEST

Suite *test_suite(void)
{
	Suite *suite = suite_create("runtime-helper");
	TCase *tests = add_tcase(suite, "helper");

	tcase_add_checked_fixture(tests, create, NULL);
	tcase_add_tests(tests, a_target_that_agrees, a_target_that_refuses_has_a_reason,
			helper_may_be_killed_by_the_target, no_caller_waits_for_an_answer,
			helper_has_no_descriptors_of_the_recorder, a_helper_that_exits_late_is_still_reaped,
			helper_has_the_privileges_of_its_target, a_variable_is_found_in_a_large_environment);
	return suite;
}
