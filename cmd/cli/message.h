/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What the tool writes to standard error: messages and the progress line. */
#pragma once

#include <mmtrace/progress.h>

#include "cmd.h"

/* Print a line: "mmtrace NAME: ..."; command NULL: "mmtrace: ...". Control characters and invalid UTF-8 become \xNN. */
void message(const struct command *command, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* When out of memory: what to do if the limit of the address space is the cause, else "". Static; allocates nothing. */
const char *message_no_memory_cause(void);

/* Print the error's message and destroy the error. Returns EXIT_UNUSABLE, as the next two do. */
int message_error(const struct command *command, struct mmt_error *error);

/* The same for a recording that cannot be read: if there is none yet, suggest how to record one. */
int message_input_error(const struct command *command, const char *input, struct mmt_error *error);

/* Usage error: the message and where to find help. */
int message_usage(const struct command *command, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* A progress line on the terminal, with an estimate, while reading a recording takes more than a second. It is removed
 * before anything else is written. */
struct progress {
	struct mmt_progress watch;
	const char *name; /* of the recording */
	uint64_t start_ns, told_ns;
};

/* For the options of a report. NULL: standard error is not a terminal, or belongs to another job. */
const struct mmt_progress *progress_begin(struct progress *progress, const char *name);
void progress_end(void);

/* CLOCK_MONOTONIC; also for signal handlers. */
uint64_t clock_ns(void);

/* For signal handlers: removes the progress line. */
void progress_wipe(void);
