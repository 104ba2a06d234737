// SPDX-License-Identifier: LGPL-2.1-or-later
/* Reads the known options of runtimes from /proc/PID/cmdline and environ: see trace/sections/runtime-options.h. */
#include "capture/runtimes/ask-runtime.h"

#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/limits.h"
#include "capture/recorder/recorder.h"

struct mmt_error *read_options(struct recorder *recorder, struct traced_process *process)
{
	uint64_t began_ns = process->program_ns;
	size_t arguments_size = 0, variables_size = 0;
	CLEANUP(free) char *arguments = NULL;
	CLEANUP(free) char *variables = NULL;
	bool complete, stored;

	if ((process->options_read && process->options_ns == began_ns) ||
	    recorder->jobs.runtimes->options.values.count >= LIMIT_OPTIONS)
		return NULL;
	arguments = malloc(LIMIT_OPTION_TEXT_BYTES + 1);
	variables = malloc(LIMIT_OPTION_TEXT_BYTES + 1);
	if (!arguments || !variables)
		return &error_no_memory;
	/* If the process is stuck or its exec has not set the arguments yet, try again later. */
	process->options_read = process_text_read(&recorder->calls, process->pid, "cmdline", LIMIT_OPTION_TEXT_BYTES,
						  arguments, &arguments_size) &&
				arguments_size;
	process->options_ns = began_ns;
	complete = process_text_read(&recorder->calls, process->pid, "environ", LIMIT_OPTION_TEXT_BYTES, variables,
				     &variables_size);
	stored = !process->options_read ||
		 /* A text that was cut may end within a value. */
		 runtime_options_scan(&recorder->jobs.runtimes->options, process->pid, began_ns, arguments,
				      arguments_size, variables, complete ? variables_size : 0);
	/* Both may contain passwords. */
	explicit_bzero(arguments, arguments_size);
	explicit_bzero(variables, variables_size);
	return stored ? NULL : &error_no_memory;
}
