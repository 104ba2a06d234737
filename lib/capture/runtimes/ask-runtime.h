/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * --ask-runtime: makes a runtime that runs without a perf map write one, and restores the previous state afterwards.
 * .NET is asked when it is first seen and asked to stop when recording ends. Java, whose map is a snapshot, is asked
 * when recording ends. Only the end of the recording waits for answers. Failures are warnings. To add a runtime,
 * write a file ask-NAME.c with a struct askable_runtime, and see lib/analysis/resolver/known-runtimes.h.
 */
#ifndef CAPTURE_RUNTIMES_ASK_RUNTIME_H
#define CAPTURE_RUNTIMES_ASK_RUNTIME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct recorder;
struct traced_process;

/* The runtime helper: a forked child process that talks to a runtime with the privileges of its user. */

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

/* Asking the runtimes of the recorded processes. */

/* Number of processes without a perf map, and the PID of one of them. */
struct unasked {
	uint64_t count;
	pid_t first;
};

void unasked_count(struct unasked *unasked, pid_t pid);

/* An executable mapping: a file shows which runtime the process runs; anonymous memory shows that it generates code. */
void ask_runtime_note_module(struct traced_process *process, const char *path);

/* The process has called exec. */
void ask_runtime_forget(struct traced_process *process);

/* Call this often: asks the processes that can be asked by now. Does nothing without --ask-runtime; so do the functions
 * below. */
void ask_runtimes(struct recorder *recorder);

/* Recording has ended: ask the runtimes whose map is a snapshot, and ask the others to stop. Call this before the maps
 * are copied. Warns about processes that were not asked. */
void ask_runtimes_at_end(struct recorder *recorder);

/* The map of a process has been copied: remove it if it was created for mmtrace. */
void ask_runtime_clean_up(struct recorder *recorder, struct traced_process *process);

/* The same for the program before an exec; a map written by the current program is kept. */
void ask_runtime_end_program(struct recorder *recorder, struct traced_process *process);

/* A process has ended, and its map has been copied. */
void ask_runtime_ended(struct recorder *recorder, struct traced_process *process);

/*
 * A runtime that can be asked for a perf map. Each is defined in a file of its own and listed in ask-runtime.c; other
 * code does not distinguish between them.
 */
struct askable_runtime {
	const char *name;   /* in messages */
	const char *module; /* file name of the module that every process of the runtime maps */
	bool at_end;	    /* its map is a snapshot: it is asked when recording ends */
	helper_ask *begin;  /* ask for a perf map */
	helper_ask *end;    /* ask it to stop writing; NULL: it writes the map once */
	/* Called before the process is asked and when the attempt ends; NULL: nothing to do. */
	void (*prepare)(struct traced_process *process);
	void (*give_up)(const struct traced_process *process);
};

extern const struct askable_runtime runtime_dotnet, runtime_java;

#endif
