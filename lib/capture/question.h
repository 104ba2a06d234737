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

/* Runs in the child, and ends within some seconds. `refusal_ret`, "" before: why the target has not agreed. */
typedef enum question_answer question_ask(const struct question_target *target,
					  char refusal_ret[QUESTION_REFUSAL_BYTES]);

/* Zeroed: none is put. */
struct question {
	pid_t child;
	int answer; /* pipe */
};

/* False: no process or pipe can be made. */
bool question_put(struct question *question, const struct question_target *target, question_ask *ask);

/* Once it is answered it is over. */
enum question_answer question_take_answer(struct question *question, char refusal_ret[QUESTION_REFUSAL_BYTES]);

/* Give it up. */
void question_drop(struct question *question);

#endif
