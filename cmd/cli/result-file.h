/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A file that a command writes for the user, such as report --html FILE. It gets its name when it is complete: until
 * then an existing FILE stays as it is, and nothing is left behind if the command fails or is killed. "-" is standard
 * output; devices and pipes are written directly. */
#ifndef CLI_RESULT_FILE_H
#define CLI_RESULT_FILE_H

#include <stdio.h>

#include "cmd.h"

/*
 * Write to `path` what `write` writes to the stream. Returns EXIT_OK, or EXIT_UNUSABLE after a message, also if `path`
 * is a recording.
 */
int result_file_write(const struct command *command, const char *path,
		      struct mmt_error *(*write)(const void *context, FILE *stream), const void *context);

#endif
