/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A file that a command writes for the user, such as report --html FILE. It takes its name when it is complete: until
 * then an earlier FILE stays as it is, and nothing is left behind if the command fails or is killed. "-" is standard
 * output; devices and pipes are written directly.
 */
#ifndef CLI_RESULT_FILE_H
#define CLI_RESULT_FILE_H

#include <stdbool.h>
#include <stdio.h>

#include "cmd.h"

struct result_file {
	const char *path; /* as the user gave it */
	FILE *stream;
	char *target;	 /* what gets replaced, symbolic links resolved; NULL: written directly */
	char *temporary; /* beside the target; in the file system only while `named` */
	bool named;
};

/* False after a message, also if `path` is a recording. Then there is nothing to finish. */
bool result_file_open(const struct command *command, const char *path, struct result_file *file_ret);

/* `complete`: let the file take its name; otherwise remove it. False after a message: it could not be written. */
bool result_file_finish(const struct command *command, struct result_file *file, bool complete);

#endif
