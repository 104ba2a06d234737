/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* One-line messages on standard error; control characters and invalid UTF-8 are shown as \xNN. */
#ifndef CLI_MESSAGE_H
#define CLI_MESSAGE_H

#include "cmd.h"

/* "mmtrace NAME: ..."; command NULL: "mmtrace: ...". */
void message(const struct command *command, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Print the error's message and destroy the error. */
void message_error(const struct command *command, struct mmt_error *error);

/* The same for a recording that cannot be read: if there is none yet, suggest how to record one. */
void message_input_error(const struct command *command, const char *input, struct mmt_error *error);

/* Usage error: the message and where to find help. Returns EXIT_UNUSABLE. */
int message_usage(const struct command *command, const char *format, ...) __attribute__((format(printf, 2, 3)));

#endif
