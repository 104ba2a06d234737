/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Threads, and child processes that make calls which may block, need another user, or read files of strangers. */
#pragma once

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* Zeroed: there is no child. */
struct helper {
	pid_t child;
	pid_t dying;	   /* a killed child that has not exited yet; 0: none */
	uint64_t stuck_ns; /* since when the child waits in the kernel; 0: it does not */
	int answer;	   /* the parent's end of the socket */
};

/* Runs in the child, and does not return. It closes the parent's descriptors, and with them the other end. */
typedef void helper_process_main(void *context, int end, pid_t parent);

/* Forks a child that runs `main`, connected by a socket of this type. All signals are blocked in it: only the parent
 * handles those from the terminal. False: see errno. */
bool helper_process_start(struct helper *helper, int type, helper_process_main *main, void *context);

/* In a new child: closes all descriptors of the parent except these two (-1: none), which are moved, and lets the
 * kernel kill the child when the parent ends. False: they cannot be moved, or the parent has ended. */
bool helper_process_begin(int *first, int *second, pid_t parent);

/* Waits for the child to exit, for `milliseconds` at most. Returns the status of waitpid(), or -1: it still runs. */
int helper_process_wait(pid_t child, unsigned milliseconds);

/* Closes the socket, waits for the child to exit, for `milliseconds` at most, and kills it. If it does not exit soon,
 * returns -1, and helper_reap() waits for it; otherwise returns the status of waitpid(). */
int helper_end(struct helper *helper, unsigned milliseconds);

void helper_reap(struct helper *helper);

/* Start a thread of the library. It blocks all signals, which the threads of the program handle. Returns 0 or an errno.
 */
int thread_start(pthread_t *thread_ret, void *(*run)(void *), void *context);

/*
 * Takes rights from a thread that is about to parse what others wrote: confine.c.
 *
 * From now on this thread, and the threads and processes that it creates, cannot execute programs, connect to others,
 * trace them, or mount file systems, and open files only for reading. With `places`, they may create, write, rename and
 * remove files: where the kernel has Landlock (since 5.13), only at these places, which are given by descriptors of
 * directories or files; negative ones are ignored. What is open already stays usable. Of capabilities only those remain
 * that reading files needs and, with places, writing files of other users.
 *
 * If memory runs out, the kernel ends this process before others.
 *
 * If debuginfod is configured ($DEBUGINFOD_URLS), connections are possible as before, and its cache can be written;
 * without Landlock, other files, too. Builds with a sanitizer, and other architectures than x86-64 and aarch64, have
 * Landlock and capabilities alone.
 */
void confine_thread(const int *places, size_t count);

/* What the kernel does not have, or refuses, for confine_thread(): "Landlock", "seccomp" or both. NULL: nothing. */
const char *confine_missing(void);
