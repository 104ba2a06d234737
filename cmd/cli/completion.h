/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Shell completion scripts, generated from the command table and the option tables. cmd/completion/ contains the
 * generated scripts; test/lint/completion.sh checks that they are up to date.
 */
#ifndef CLI_COMPLETION_H
#define CLI_COMPLETION_H

#include "cli/options.h"

#define COMPLETION_ARGUMENT "bash|zsh|fish"
extern const char *const completion_shells[]; /* in that order */

/* Prints the script for completion_shells[shell] to standard output. */
void completion_print(int shell);

/* Prints the part of one command; completion_print() runs each command for this. Returns the exit status. */
int completion_print_command(const struct command *command, const struct option_entry *table, const char *shell);

#endif
