// SPDX-License-Identifier: LGPL-2.1-or-later
#include "capture/question.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#define END_MILLISECONDS 200 /* for a child that was killed; one that the kernel holds longer is looked after later */
#define FIRST_FREE 3	     /* descriptor, above those of input, output and errors */

static int move_up(int fd)
{
	return fd < 0 || fd >= FIRST_FREE ? fd : fcntl(fd, F_DUPFD_CLOEXEC, FIRST_FREE);
}

static bool close_between(int first, int last)
{
	return first > last || close_range((unsigned)first, (unsigned)last, 0) == 0;
}

/* Of the recorder's files it keeps these two: should the kernel hold the child longer than the recorder lives, nobody
 * who reads what the recorder wrote waits for that, and no event of a target lives on. False: that cannot be had. */
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
	/* Now there is room for one more, however many the recorder has. */
	nothing = open("/dev/null", O_RDWR | O_CLOEXEC);
	for (int fd = 0; nothing >= 0 && fd < FIRST_FREE; fd++)
		(void)dup2(nothing, fd);
	if (nothing >= FIRST_FREE)
		close(nothing);
	return nothing >= 0;
}

/* The answer is one write: a byte, and the refusal. */
_Noreturn static void run_child(struct question_target target, question_ask *ask, int answer, pid_t recorder)
{
	char text[1 + QUESTION_REFUSAL_BYTES] = {QUESTION_UNANSWERED};
	bool ready = close_others(&answer, &target.pidfd);

	/* Not longer than the recorder. A change of user takes this back: target_become_user() repeats it. */
	(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (!ready)
		snprintf(text, sizeof(text), "%c%s", QUESTION_REFUSED,
			 "the recorder's files cannot be kept from whoever asks it");
	else if (getppid() == recorder)
		text[0] = (char)ask(&target, text + 1);
	_exit(write(answer, text, 1 + strlen(text + 1)) < 0);
}

bool question_put(struct question *question, const struct question_target *target, question_ask *ask)
{
	pid_t recorder = getpid();
	sigset_t all, before;
	int ends[2];

	question_reap(question);
	if (question->dying)
		return false;
	if (pipe2(ends, O_CLOEXEC | O_NONBLOCK) < 0)
		return false;
	/* Signals of the terminal are the recorder's business. */
	sigfillset(&all);
	sigprocmask(SIG_SETMASK, &all, &before);
	question->child = fork();
	if (question->child == 0)
		run_child(*target, ask, ends[1], recorder);
	sigprocmask(SIG_SETMASK, &before, NULL);
	close(ends[1]);
	question->answer = ends[0];
	if (question->child > 0)
		return true;
	close(ends[0]);
	*question = (struct question){0};
	return false;
}

enum question_answer question_take_answer(struct question *question, char refusal_ret[QUESTION_REFUSAL_BYTES])
{
	char text[1 + QUESTION_REFUSAL_BYTES] = {QUESTION_UNANSWERED};
	ssize_t count = read(question->answer, text, sizeof(text) - 1);

	if (count < 0 && (errno == EAGAIN || errno == EINTR))
		return QUESTION_WAITS;
	snprintf(refusal_ret, QUESTION_REFUSAL_BYTES, "%s", count > 0 ? text + 1 : "asking it failed");
	question_drop(question);
	return (enum question_answer)text[0];
}

void question_drop(struct question *question)
{
	if (!question->child)
		return;
	close(question->answer);
	kill(question->child, SIGKILL);
	*question = (struct question){.dying = question->child};
	question_reap(question);
	for (unsigned i = 0; i < END_MILLISECONDS && question->dying; i++) {
		usleep(1000);
		question_reap(question);
	}
}

void question_reap(struct question *question)
{
	if (question->dying && waitpid(question->dying, NULL, WNOHANG) != 0)
		question->dying = 0;
}
