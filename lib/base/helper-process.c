// SPDX-License-Identifier: LGPL-2.1-or-later
#include "base/helper-process.h"

#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#ifdef __has_feature
#if __has_feature(address_sanitizer)
#define __SANITIZE_ADDRESS__ 1
#endif
#endif

/* Builds with a sanitizer show its report about a child, and end with it. */
#ifdef __SANITIZE_ADDRESS__
#define SANITIZED 1
#define SANITIZER_STATUS 86
__attribute__((weak, visibility("default"))) const char *__asan_default_options(void);
__attribute__((weak, visibility("default"))) const char *__ubsan_default_options(void);

const char *__asan_default_options(void)
{
	return "exitcode=86";
}

const char *__ubsan_default_options(void)
{
	return "exitcode=86";
}
#else
#define SANITIZED 0
#define SANITIZER_STATUS 0
#endif

#define FIRST_FREE 3		/* the first descriptor after standard error */
#define KILLED_MILLISECONDS 200 /* wait this long for a killed child */

static int move_up(int fd)
{
	return fd < 0 || fd >= FIRST_FREE ? fd : fcntl(fd, F_DUPFD_CLOEXEC, FIRST_FREE);
}

static bool close_between(int first, int last)
{
	return first > last || close_range((unsigned)first, (unsigned)last, 0) == 0;
}

bool helper_process_begin(int *first, int *second, pid_t parent)
{
	int nothing = -1, lower, upper;

	/* If the kernel keeps the child alive for longer than the parent, the child must not keep a pipe of the
	 * parent's output open, nor a perf event. */
	*first = move_up(*first);
	*second = move_up(*second);
	lower = *first < *second ? *first : *second;
	upper = *first < *second ? *second : *first;
	if (lower < 0)
		lower = upper;
	/* Then at least one descriptor is free, however many the parent had open. */
	if (close_between(FIRST_FREE, lower - 1) && close_between(lower + 1, upper - 1) &&
	    close_between(upper + 1, INT_MAX))
		nothing = open("/", O_PATH | O_CLOEXEC);
	for (int fd = 0; nothing >= 0 && fd < FIRST_FREE - SANITIZED; fd++)
		(void)dup2(nothing, fd);
	if (nothing >= FIRST_FREE)
		close(nothing);
	/* Libraries that crash end the child as in other builds. */
	if (SANITIZED)
		(void)signal(SIGSEGV, SIG_DFL);
	/* A change of user resets this. */
	(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	return nothing >= 0 && getppid() == parent;
}

bool helper_process_start(struct helper *helper, int type, helper_process_main *main, void *context)
{
	pid_t parent = getpid(), child;
	sigset_t all, before;
	int ends[2];

	if (socketpair(AF_UNIX, type | SOCK_CLOEXEC, 0, ends) < 0)
		return false;
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	child = fork();
	if (child == 0) {
		main(context, ends[1], parent);
		_exit(1);
	}
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	close(ends[1]);
	if (child < 0)
		close(ends[0]);
	else
		*helper = (struct helper){.child = child, .answer = ends[0]};
	return child > 0;
}

int helper_process_wait(pid_t child, unsigned milliseconds)
{
	int status = 0;

	for (unsigned i = 0; waitpid(child, &status, WNOHANG) == 0; i++) {
		if (i == milliseconds)
			return -1;
		usleep(1000);
	}
	if (SANITIZED && WIFEXITED(status) && WEXITSTATUS(status) == SANITIZER_STATUS)
		(void)raise(SIGABRT);
	return status;
}

int helper_end(struct helper *helper, unsigned milliseconds)
{
	int status;

	if (!helper->child)
		return 0;
	close(helper->answer);
	status = helper_process_wait(helper->child, milliseconds);
	if (status < 0) {
		kill(helper->child, SIGKILL);
		status = helper_process_wait(helper->child, KILLED_MILLISECONDS);
	}
	*helper = (struct helper){.dying = status < 0 ? helper->child : 0};
	return status;
}

void helper_reap(struct helper *helper)
{
	if (helper->dying && helper_process_wait(helper->dying, 0) >= 0)
		helper->dying = 0;
}

int thread_start(pthread_t *thread_ret, void *(*run)(void *), void *context)
{
	sigset_t all, before;
	int failure;

	sigfillset(&all);
	failure = pthread_sigmask(SIG_SETMASK, &all, &before); /* the new thread inherits the mask */
	if (failure)
		return failure;
	failure = pthread_create(thread_ret, NULL, run, context);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return failure;
}
