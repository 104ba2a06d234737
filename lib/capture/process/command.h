/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The command to record: starts it and holds it before exec() until recording has begun. */
#pragma once

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
	uint64_t exec_ns;  /* when its program began; 0: not seen yet */
	bool options_read; /* of this program */
	int status;	   /* wait status; -1: it has not ended by itself */
};

/* Kills a command that has not been released. */
void command_deinit(struct traced_command *command);

/* Start the command, which then waits for command_release(). `arguments` must outlive the command. */
struct mmt_error *command_start(struct traced_command *command, char *const *arguments) MMT_MUST_CHECK;

/* Let the command run. Return after its exec, or when `stop_fd` is readable or at `until_ns`: the program's file
 * system may not answer. MMT_ERROR_COMMAND: the exec failed; MMT_ERROR_UNSUPPORTED: a 32-bit program. */
struct mmt_error *command_release(struct traced_command *command, int stop_fd, uint64_t until_ns) MMT_MUST_CHECK;

/* Was a command started, and has it ended? */
bool command_has_ended(const struct traced_command *command);

/* The wait status of a command that has ended, which stays to be reaped; -1: it runs, or it is not known. */
int command_status(const struct traced_command *command);

/* Send SIGTERM to a running command and wait for its end, at most a second. Its status stays -1. False: the command
 * is still running. */
bool command_stop(struct traced_command *command);
