/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The runtime helper: a forked child process that talks to a runtime with the privileges of its user. */
#ifndef CAPTURE_RUNTIMES_RUNTIME_HELPER_H
#define CAPTURE_RUNTIMES_RUNTIME_HELPER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/*
 * A request to a target, made by a child process of the recorder: the child can wait for the answer and switch to the
 * target's user, and the recorder does neither.
 */

#define HELPER_REFUSAL_BYTES 256

/* The process that is asked. */
struct helper_target {
	pid_t pid, namespace_pid;
	int pidfd;
};

enum helper_answer {
	HELPER_WAITS,
	HELPER_AGREED,
	HELPER_REFUSED,	   /* it will do nothing */
	HELPER_UNANSWERED, /* it may have received the request and may still act on it */
};

/* Runs in the child, which has nothing open but the target's pidfd, and ends within some seconds. `refusal_ret`,
 * initially "": why the target refused. */
typedef enum helper_answer helper_ask(const struct helper_target *target, char refusal_ret[HELPER_REFUSAL_BYTES]);

/* Zeroed: no request in progress. */
struct helper {
	pid_t child;
	pid_t dying; /* a child that was killed but has not exited yet; 0: none */
	int answer;  /* pipe */
};

/* False: no process or pipe can be created, or the previous child has not exited yet. */
bool helper_put(struct helper *helper, const struct helper_target *target, helper_ask *ask);

/* After an answer the request is over. */
enum helper_answer helper_take_answer(struct helper *helper, char refusal_ret[HELPER_REFUSAL_BYTES]);

/* Give up. A child that does not exit at once is left to helper_reap(). */
void helper_drop(struct helper *helper);

void helper_reap(struct helper *helper);

/*
 * The helper talks to a target through a socket in the target's file system, as the target's user. It does not trust
 * the target: it follows no link out of the target's root, and every wait has a time limit.
 */

/* Opens a directory (O_PATH) by its path as seen by the process; -1: none. */
int target_directory_open(pid_t pid, const char *path);

/*
 * Permanently switches this process to the target's user and group, which determine the peer credentials and the owner
 * of new files, without any capability that this user does not have. *owner_ret: the user. Returns NULL, or the reason
 * for a failure.
 */
const char *target_become_user(pid_t pid, uid_t *owner_ret);

/* Connects, non-blocking, to a socket that the user owns and this very process listens on. Returns -1 and errno on
 * failure. */
int target_socket_connect(pid_t pid, uid_t owner, int directory, const char *name);

/* Sends everything before the deadline, or returns false. */
bool target_socket_send(int fd, const void *data, size_t size, uint64_t until_ns);

/* Reads until `size` bytes have arrived, the peer closes, or the time is over; returns the number of bytes. */
size_t target_socket_receive(int fd, void *data, size_t size, uint64_t until_ns);

#endif
