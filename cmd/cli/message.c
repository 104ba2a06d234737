// SPDX-License-Identifier: LGPL-2.1-or-later
#include "cli/message.h"

#include <errno.h>
#include <mmtrace/output.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void put_line(const struct command *command, const char *format, va_list arguments)
{
	char *line = NULL;

	if (vasprintf(&line, format, arguments) < 0)
		line = NULL;
	if (command)
		fprintf(stderr, "mmtrace %s: ", command->name);
	else
		fputs("mmtrace: ", stderr);
	mmt_write_escaped(line ? line : "out of memory", stderr);
	putc('\n', stderr);
	free(line);
}

void message(const struct command *command, const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	put_line(command, format, arguments);
	va_end(arguments);
}

void message_error(const struct command *command, struct mmt_error *error)
{
	message(command, "%s", mmt_error_get_message(error));
	mmt_error_destroy(error);
}

void message_input_error(const struct command *command, const char *input, struct mmt_error *error)
{
	if (mmt_error_get_errno(error) == ENOENT && !strcmp(input, DEFAULT_FILE)) {
		message(command, "there is no " DEFAULT_FILE " in this directory; record first: mmtrace record -p PID");
		mmt_error_destroy(error);
	} else {
		message_error(command, error);
	}
}

int message_usage(const struct command *command, const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	put_line(command, format, arguments);
	va_end(arguments);
	if (command)
		fprintf(stderr, "See 'mmtrace %s --help'.\n", command->name);
	else
		fputs("See 'mmtrace --help'.\n", stderr);
	return EXIT_UNUSABLE;
}
