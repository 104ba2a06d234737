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
	int pidfd; /* readable when it has ended; -1: none */
	const char *name;
	int go_pipe[2];		   /* the read end too, so that writing to a command that was killed is no SIGPIPE */
	int error_pipe;		   /* read end */
	uint64_t descriptor_limit; /* soft limit for the command; 0: the recorder's */
	bool output_to_stderr;	   /* its standard output is taken */
	/* Numbers with a 0 behind; NULL: none. Beside what the recorder ignores, of which SIGPIPE counts only if it is
	 * here. */
	const int *ignores;
	const int *blocks;
	int status; /* wait status; -1: had not ended by itself */
};

/* A command that was never started. */
void command_init(struct traced_command *command);
/* Kills a command that was not let go. */
void command_deinit(struct traced_command *command);

/* `arguments` must outlive the command. */
struct mmt_error *command_start(struct traced_command *command, char *const *arguments) MMT_MUST_CHECK;

/* Let it run; returns when it has executed its program, or MMT_ERROR_COMMAND when that failed. */
struct mmt_error *command_release(struct traced_command *command) MMT_MUST_CHECK;

/* There was one. */
bool command_has_ended(const struct traced_command *command);

/* Send SIGTERM to a command that still runs and wait for its end, at most a second. Its status stays -1. False: it
   still runs. */
bool command_stop(struct traced_command *command);

#endif
