/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Starts the command to record and holds it before exec(). */
#ifndef CAPTURE_PROCESS_COMMAND_H
#define CAPTURE_PROCESS_COMMAND_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/errors.h"

struct traced_command {
	pid_t pid; /* 0: none, or reaped */
	int pidfd; /* readable when the command has ended; -1: none */
	const char *name;
	int go_pipe[2];		   /* also holds the read end, so that writing to a killed command raises no SIGPIPE */
	int error_pipe;		   /* read end */
	uint64_t descriptor_limit; /* soft limit for the command; 0: the recorder's */
	bool output_to_stderr;	   /* standard output is used for the recording */
	/* Signals for the command to ignore and to block, 0-terminated; NULL: none. The command also ignores those that
	 * the recorder ignores, but SIGPIPE only if listed here. */
	const int *ignores;
	const int *blocks;
	int status; /* wait status; -1: it had not ended by itself */
};

/* Initialises a command that is not started. */
void command_init(struct traced_command *command);
/* Kills a command that was not released. */
void command_deinit(struct traced_command *command);

/* `arguments` must outlive the command. */
struct mmt_error *command_start(struct traced_command *command, char *const *arguments) MMT_MUST_CHECK;

/* Let the command run. Returns after its exec, or MMT_ERROR_COMMAND if the exec failed. */
struct mmt_error *command_release(struct traced_command *command) MMT_MUST_CHECK;

/* Whether there was a command and it has ended. */
bool command_has_ended(const struct traced_command *command);

/* Send SIGTERM to a command that still runs and wait for its end, at most a second. Its status stays -1. False: it
 * still runs. */
bool command_stop(struct traced_command *command);

/*
 * Holds a process and its children at their exit (ptrace), so that their maps can be read after their last change. A
 * separate thread waits for them, because the kernel reports only to the tracing thread. Each signal and each new
 * thread also stops the traced thread briefly; set-user-ID programs run without their privileges.
 */

struct exit_watch;

struct mmt_error *exit_watch_start(pid_t pid, struct exit_watch **watch_ret) MMT_MUST_CHECK;

/* Releases all processes. Accepts NULL. */
void exit_watch_stop(struct exit_watch *watch);

/* Readable when a process is held at its end; -1 for NULL. */
int exit_watch_descriptor(const struct exit_watch *watch);

/* The process that is held; 0: none. The next one is held only after exit_watch_release(). */
pid_t exit_watch_next(struct exit_watch *watch);
void exit_watch_release(struct exit_watch *watch);

#endif
