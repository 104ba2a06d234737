/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The runtime helper: a forked child process that talks to a runtime with the privileges of its user. */
#ifndef CAPTURE_RUNTIMES_RUNTIME_HELPER_H
#define CAPTURE_RUNTIMES_RUNTIME_HELPER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/*
 * A question to a target, put by a child process of the recorder: it may wait for the answer and become the target's
 * user, and the recorder does neither.
 */

#define HELPER_REFUSAL_BYTES 256

/* Who is asked. */
struct helper_target {
	pid_t pid, namespace_pid;
	int pidfd;
};

enum helper_answer {
	HELPER_WAITS,
	HELPER_AGREED,
	HELPER_REFUSED,	   /* it does nothing */
	HELPER_UNANSWERED, /* it was told, perhaps, and may do it yet */
};

/* Runs in the child, which has nothing open but the target's pidfd, and ends within some seconds. `refusal_ret`, ""
 * before: why the target has not agreed. */
typedef enum helper_answer helper_ask(const struct helper_target *target, char refusal_ret[HELPER_REFUSAL_BYTES]);

/* Zeroed: none is put. */
struct helper {
	pid_t child;
	pid_t dying; /* a child that was killed, and that the kernel still holds; 0: none */
	int answer;  /* pipe */
};

/* False: no process or pipe can be made, or the one before still dies. */
bool helper_put(struct helper *helper, const struct helper_target *target, helper_ask *ask);

/* Once it is answered it is over. */
enum helper_answer helper_take_answer(struct helper *helper, char refusal_ret[HELPER_REFUSAL_BYTES]);

/* Give it up. A child that is not gone in a moment is left to helper_reap(). */
void helper_drop(struct helper *helper);

void helper_reap(struct helper *helper);

/*
 * The helper talks to a target through a socket in the target's own file system, as the target's user. It does not
 * trust the target: it follows no link out of the target's root, and every wait has a limit.
 */

/* O_PATH descriptor of a directory, as the process sees its path; -1: none. */
int target_directory_open(pid_t pid, const char *path);

/*
 * For good: this process becomes the target's user and group, by which a peer tells who asks, and of whom files are;
 * with no capability that such a user has not. *owner_ret: the user. NULL, or why that is refused.
 */
const char *target_become_user(pid_t pid, uid_t *owner_ret);

/* To a socket of the user, at which the very process listens; non-blocking. -1 and errno. */
int target_socket_connect(pid_t pid, uid_t owner, int directory, const char *name);

/* All of it by then, or false. */
bool target_socket_send(int fd, const void *data, size_t size, uint64_t until_ns);

/* Until `size` bytes are there, the peer ends, or the time is over: how many came. */
size_t target_socket_receive(int fd, void *data, size_t size, uint64_t until_ns);

#endif
