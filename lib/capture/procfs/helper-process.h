/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Child processes of the recorder that make calls which may block, or need another user. */
#ifndef CAPTURE_PROCFS_HELPER_PROCESS_H
#define CAPTURE_PROCFS_HELPER_PROCESS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* Runs in the child, and does not return. It closes the other end of the connection with all other descriptors of the
 * recorder. */
typedef void helper_process_main(void *context, int end, pid_t recorder);

/*
 * Forks a child that runs `main` with ends[1], and closes this descriptor in the recorder. Only the recorder handles
 * signals from the terminal. Returns the PID, or -1: both ends are closed.
 */
pid_t helper_process_start(int ends[2], helper_process_main *main, void *context);

/* In a new child: closes all descriptors of the recorder except these two (-1: none), which are moved, and lets the
 * kernel kill the child when the recorder ends. False: they cannot be moved, or the recorder has ended. */
bool helper_process_begin(int *first, int *second, pid_t recorder);

/* Waits for the child to exit, for `milliseconds` at most. False: it still runs. */
bool helper_process_wait(pid_t child, unsigned milliseconds);

/* A request to a runtime: see ask-runtime.h. Zeroed: none is in progress. */
struct helper {
	pid_t child;
	pid_t dying;	   /* a killed child that has not exited yet; 0: none */
	uint64_t stuck_ns; /* since when the child waits in the kernel; 0: it does not */
	int answer;	   /* pipe from which the answer is read */
};

/* Cancels the request and kills the child. helper_reap() waits for a child that does not exit at once. */
void helper_cancel(struct helper *helper);

void helper_reap(struct helper *helper);

#endif
