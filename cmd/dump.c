// SPDX-License-Identifier: LGPL-2.1-or-later
/* mmtrace dump: prints the events of a recording. */
#include <mmtrace/confine.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/message.h"
#include "cli/terminal.h"

int cmd_dump(const struct command *command, int argc, char **argv)
{
	const char *input = NULL;
	bool no_pager = false;
	const struct mmt_progress *watch = NULL;
	struct progress progress;
	struct mmt_error *error;
	struct stat output;
	int first = 0, status;
	const struct option_entry table[] = {
	    OPTION('i', "input", value_string, &input, "FILE",
		   "the recording (default " DEFAULT_FILE "); -: standard input"),
	    OPTION(0, "no-pager", value_flag, &no_pager, NULL, "write straight to the terminal"),
	    OPTIONS_END,
	};

	status = options_parse(command, table, OPTIONS_ANYWHERE, argc, argv, &first);
	if (status >= 0)
		return status;
	status = options_take_recording(command, argv + first, &input);
	if (status >= 0)
		return status;
	pager_start(command, !no_pager);
	mmt_confine(&input, 1, NULL);
	/* If the events go to the terminal, they show the progress themselves. */
	if (fstat(STDOUT_FILENO, &output) == 0 && S_ISREG(output.st_mode))
		watch = progress_begin(&progress, input);
	error = mmt_dump(input, watch, stdout);
	progress_end();
	if (!error)
		return pager_finish(command, EXIT_OK);
	fflush(stdout);
	return pager_finish(command, message_input_error(command, input, error));
}
