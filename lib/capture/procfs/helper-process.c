// SPDX-License-Identifier: LGPL-2.1-or-later
#include "capture/procfs/helper-process.h"

#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#define END_MILLISECONDS 200 /* wait this long for a killed child; later, helper_reap() waits for it */
#define FIRST_FREE 3	     /* the first descriptor after standard error */

static int move_up(int fd)
{
	return fd < 0 || fd >= FIRST_FREE ? fd : fcntl(fd, F_DUPFD_CLOEXEC, FIRST_FREE);
}

static bool close_between(int first, int last)
{
	return first > last || close_range((unsigned)first, (unsigned)last, 0) == 0;
}

/* If the kernel keeps the child alive for longer than the recorder, the child must not keep a pipe of the recorder's
 * output open, nor an event of a target. False: the descriptors cannot be moved. */
static bool close_others(int *answer, int *pidfd)
{
	int nothing, lower, upper;

	*answer = move_up(*answer);
	*pidfd = move_up(*pidfd);
	lower = *answer < *pidfd ? *answer : *pidfd;
	upper = *answer < *pidfd ? *pidfd : *answer;
	if (lower < 0)
		lower = upper;
	if (!close_between(FIRST_FREE, lower - 1) || !close_between(lower + 1, upper - 1) ||
	    !close_between(upper + 1, INT_MAX))
		return false;
	/* At least one descriptor is free now, however many the recorder had open. */
	nothing = open("/dev/null", O_RDWR | O_CLOEXEC);
	for (int fd = 0; nothing >= 0 && fd < FIRST_FREE; fd++)
		(void)dup2(nothing, fd);
	if (nothing >= FIRST_FREE)
		close(nothing);
	return nothing >= 0;
}

bool helper_process_begin(int *first, int *second, pid_t recorder)
{
	bool closed = close_others(first, second);

	/* A change of user resets this. */
	(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	return closed && getppid() == recorder;
}

pid_t helper_process_start(int ends[2], helper_process_main *main, void *context)
{
	pid_t recorder = getpid(), child;
	sigset_t all, before;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	child = fork();
	if (child == 0) {
		main(context, ends[1], recorder);
		_exit(1);
	}
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	close(ends[1]);
	if (child < 0)
		close(ends[0]);
	return child;
}

bool helper_process_wait(pid_t child, unsigned milliseconds)
{
	bool gone = waitpid(child, NULL, WNOHANG) != 0;

	for (unsigned i = 0; i < milliseconds && !gone; i++) {
		usleep(1000);
		gone = waitpid(child, NULL, WNOHANG) != 0;
	}
	return gone;
}

void helper_cancel(struct helper *helper)
{
	if (!helper->child)
		return;
	close(helper->answer);
	kill(helper->child, SIGKILL);
	*helper = (struct helper){.dying = helper->child};
	if (helper_process_wait(helper->dying, END_MILLISECONDS))
		helper->dying = 0;
}

void helper_reap(struct helper *helper)
{
	if (helper->dying && helper_process_wait(helper->dying, 0))
		helper->dying = 0;
}
