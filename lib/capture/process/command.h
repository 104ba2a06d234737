/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The command to record: starts it, holds it before exec() until recording has begun, and holds it and its children at
 * their exit if their maps are to be checked. */
#ifndef CAPTURE_PROCESS_COMMAND_H
#define CAPTURE_PROCESS_COMMAND_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/errors.h"

struct traced_command {
	pid_t pid; /* 0: not started, or reaped */
	int pidfd; /* readable when the command has ended; -1: none */
	const char *name;
	int go_pipe[2];		   /* the read end stays open: writing to a killed command raises no SIGPIPE */
	int error_pipe;		   /* read end */
	uint64_t descriptor_limit; /* soft limit of open files for the command; 0: the recorder's limit */
	bool output_to_stderr;	   /* redirect standard output: the recording uses it */
	/* Signals for the command to ignore and to block, 0-terminated; NULL: none. The command also ignores the
	 * signals that the recorder ignores, except SIGPIPE, which must be listed here. */
	const int *ignores;
	const int *blocks;
	int status; /* wait status; -1: it has not ended by itself */
};

/* Initialises a command that has not been started. */
void command_init(struct traced_command *command);
/* Kills a command that has not been released. */
void command_deinit(struct traced_command *command);

/* Starts the command, which then waits for command_release(). `arguments` must outlive the command. */
struct mmt_error *command_start(struct traced_command *command, char *const *arguments) MMT_MUST_CHECK;

/* Lets the command run. Returns after its exec. MMT_ERROR_COMMAND: the exec failed. */
struct mmt_error *command_release(struct traced_command *command) MMT_MUST_CHECK;

/* Was a command started, and has it ended? */
bool command_has_ended(const struct traced_command *command);

/* Sends SIGTERM to a running command and waits for its end, at most a second. Its status stays -1. False: the command
 * is still running. */
bool command_stop(struct traced_command *command);

/*
 * Holds a process and its children at their exit with ptrace, so that their maps can be read after the last change. A
 * separate thread waits for the stops, because the kernel reports them only to the tracing thread. Tracing has side
 * effects: each signal and each new thread stops the traced thread briefly, and set-user-ID programs run without their
 * privileges.
 */

struct exit_watch;

struct mmt_error *exit_watch_start(pid_t pid, struct exit_watch **watch_ret) MMT_MUST_CHECK;

/* Releases all processes. Accepts NULL. */
void exit_watch_stop(struct exit_watch *watch);

/* A descriptor that is readable when a process is held at its exit; -1 if `watch` is NULL. */
int exit_watch_descriptor(const struct exit_watch *watch);

/* Returns the PID of the process that is held; 0: none. After it, exit_watch_release() must be called before another
 * process is held. */
pid_t exit_watch_next(struct exit_watch *watch);
void exit_watch_release(struct exit_watch *watch);

#endif
