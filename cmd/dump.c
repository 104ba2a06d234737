// SPDX-License-Identifier: LGPL-2.1-or-later
#include <mmtrace/confine.h>
#include <mmtrace/output.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/message.h"
#include "cli/options.h"
#include "cli/terminal.h"

/* If the events go to the terminal, they show the progress themselves. */
static bool goes_to_file(void)
{
	struct stat status;

	return fstat(STDOUT_FILENO, &status) == 0 && S_ISREG(status.st_mode);
}

static int run_dump(const struct command *command, const char *input, bool no_pager)
{
	const struct mmt_progress *watch = NULL;
	struct progress progress;
	struct mmt_error *error;
	int status = EXIT_OK;

	pager_start(command, !no_pager);
	mmt_confine(&input, 1, NULL);
	if (goes_to_file())
		watch = progress_begin(&progress, input);
	error = mmt_dump(input, watch, stdout);
	if (watch)
		progress_end(&progress);
	if (error) {
		fflush(stdout);
		status = message_input_error(command, input, error);
	}
	return pager_finish(command, status);
}

int cmd_dump(const struct command *command, int argc, char **argv)
{
	const char *input = NULL;
	bool no_pager = false;
	int first = 0, status;
	const struct option_entry table[] = {
	    OPTION('i', "input", STRING, &input, "FILE", "the recording (default " DEFAULT_FILE "); -: standard input"),
	    OPTION(0, "no-pager", FLAG, &no_pager, NULL, "write straight to the terminal"),
	    OPTIONS_END,
	};

	status = options_parse(command, table, OPTIONS_ANYWHERE, argc, argv, &first);
	if (status >= 0)
		return status;
	status = options_take_recording(command, argv + first, &input);
	return status >= 0 ? status : run_dump(command, input, no_pager);
}
