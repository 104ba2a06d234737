/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A question to a target, put by a child process of the recorder: it may wait for the answer and become the target's
 * user, and the recorder does neither.
 */
#ifndef CAPTURE_QUESTION_H
#define CAPTURE_QUESTION_H

#include <stdbool.h>
#include <sys/types.h>

#define QUESTION_REFUSAL_BYTES 256

/* Who is asked. */
struct question_target {
	pid_t pid, namespace_pid;
	int pidfd;
};

enum question_answer {
	QUESTION_WAITS,
	QUESTION_AGREED,
	QUESTION_REFUSED,    /* it does nothing */
	QUESTION_UNANSWERED, /* it was told, perhaps, and may do it yet */
};

/* Runs in the child, which has nothing open but the target's pidfd, and ends within some seconds. `refusal_ret`, ""
 * before: why the target has not agreed. */
typedef enum question_answer question_ask(const struct question_target *target,
					  char refusal_ret[QUESTION_REFUSAL_BYTES]);

/* Zeroed: none is put. */
struct question {
	pid_t child;
	pid_t dying; /* a child that was killed, and that the kernel still holds; 0: none */
	int answer;  /* pipe */
};

/* False: no process or pipe can be made, or the one before still dies. */
bool question_put(struct question *question, const struct question_target *target, question_ask *ask);

/* Once it is answered it is over. */
enum question_answer question_take_answer(struct question *question, char refusal_ret[QUESTION_REFUSAL_BYTES]);

/* Give it up. A child that is not gone in a moment is left to question_reap(). */
void question_drop(struct question *question);
void question_reap(struct question *question);

#endif
