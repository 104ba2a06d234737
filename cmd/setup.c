// SPDX-License-Identifier: LGPL-2.1-or-later
/* mmtrace setup: saves the numbers of tracepoints. */
#include <mmtrace/machine.h>

#include "cli/message.h"
#include "cli/options.h"

int cmd_setup(const struct command *command, int argc, char **argv)
{
	bool quiet = false;
	const struct option_entry table[] = {
	    OPTION('q', "quiet", value_flag, &quiet, NULL, "print nothing on success"),
	    OPTIONS_END,
	};
	int first = 0, status = options_parse(command, table, OPTIONS_ANYWHERE, argc, argv, &first);
	const char *path;
	struct mmt_error *error;

	if (status >= 0)
		return status;
	if (argv[first])
		return message_usage(command, "unexpected argument '%s'", argv[first]);
	error = mmt_setup(&path);
	if (error)
		return message_error(command, error);
	if (!quiet)
		message(command,
			"wrote %s: until the next boot users can record their own processes; see `mmtrace check`",
			path);
	return EXIT_OK;
}
