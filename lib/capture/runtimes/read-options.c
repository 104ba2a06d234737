// SPDX-License-Identifier: LGPL-2.1-or-later
/* Reads the known options of runtimes from /proc/PID/cmdline and environ: see trace/sections/runtime-options.h. */
#include "capture/runtimes/ask-runtime.h"

#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/limits.h"
#include "capture/recorder/recorder.h"

/* Reads a file of the process; a zero byte follows. Returns whether it is complete. */
static bool read_text(struct blocking_calls *calls, pid_t pid, const char *name, char *text, size_t *size_ret)
{
	CLEANUP(close) int fd = process_file_open(calls, pid, name);
	ssize_t count = fd < 0 ? -1 : 1;
	size_t size = 0;

	while (count > 0 && size < LIMIT_OPTION_TEXT_BYTES) {
		size_t room = LIMIT_OPTION_TEXT_BYTES - size;

		count = process_file_read(calls, pid, fd, text + size,
					  room < BLOCKING_RESULT_BYTES ? room : BLOCKING_RESULT_BYTES, (int64_t)size);
		size += count > 0 ? (size_t)count : 0;
	}
	text[size] = '\0';
	*size_ret = size;
	return count == 0;
}

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
	process->options_read =
	    read_text(&recorder->calls, process->pid, "cmdline", arguments, &arguments_size) && arguments_size;
	process->options_ns = began_ns;
	complete = read_text(&recorder->calls, process->pid, "environ", variables, &variables_size);
	stored = !process->options_read ||
		 /* A text that was cut may end within a value. */
		 runtime_options_scan(&recorder->jobs.runtimes->options, process->pid, began_ns, arguments,
				      arguments_size, variables, complete ? variables_size : 0);
	/* Both may contain passwords. */
	explicit_bzero(arguments, arguments_size);
	explicit_bzero(variables, variables_size);
	return stored ? NULL : &error_no_memory;
}
