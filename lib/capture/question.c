// SPDX-License-Identifier: LGPL-2.1-or-later
#include "capture/question.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#define END_MILLISECONDS 200 /* for a child that was killed; one that the kernel holds longer is left to its end */

/* The answer is one write: a byte, and the refusal. */
_Noreturn static void run_child(const struct question_target *target, question_ask *ask, int answer, pid_t recorder)
{
	char text[1 + QUESTION_REFUSAL_BYTES] = {QUESTION_UNANSWERED};

	/* Not longer than the recorder. A change of user takes this back: target_become_user() repeats it. */
	(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() == recorder)
		text[0] = (char)ask(target, text + 1);
	_exit(write(answer, text, 1 + strlen(text + 1)) < 0);
}

bool question_put(struct question *question, const struct question_target *target, question_ask *ask)
{
	pid_t recorder = getpid();
	sigset_t all, before;
	int ends[2];

	if (pipe2(ends, O_CLOEXEC | O_NONBLOCK) < 0)
		return false;
	/* Signals of the terminal are the recorder's business. */
	sigfillset(&all);
	sigprocmask(SIG_SETMASK, &all, &before);
	question->child = fork();
	if (question->child == 0)
		run_child(target, ask, ends[1], recorder);
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
	for (unsigned i = 0; i < END_MILLISECONDS && waitpid(question->child, NULL, WNOHANG) == 0; i++)
		usleep(1000);
	*question = (struct question){0};
}
