// SPDX-License-Identifier: LGPL-2.1-or-later
/* Reads the known options of runtimes from /proc/PID/cmdline and environ: see trace/sections/runtime-options.h. */
#include "capture/runtimes/ask-runtime.h"

#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/limits.h"
#include "capture/recorder/recorder.h"

struct process_text {
	char *bytes; /* a zero byte follows */
	size_t size;
	bool complete;
};

static void read_text(struct blocking_calls *calls, pid_t pid, const char *name, struct process_text *text)
{
	CLEANUP(close) int fd = process_file_open(calls, pid, name);
	ssize_t count = fd < 0 ? -1 : 1;

	while (count > 0 && text->size < LIMIT_OPTION_TEXT_BYTES) {
		size_t room = LIMIT_OPTION_TEXT_BYTES - text->size;

		count =
		    process_file_read(calls, pid, fd, text->bytes + text->size,
				      room < BLOCKING_RESULT_BYTES ? room : BLOCKING_RESULT_BYTES, (int64_t)text->size);
		text->size += count > 0 ? (size_t)count : 0;
	}
	text->bytes[text->size] = '\0';
	text->complete = count == 0;
}

struct mmt_error *read_options(struct recorder *recorder, struct traced_process *process)
{
	struct process_text arguments = {0}, variables = {0};
	uint64_t began_ns = process->program_ns;
	bool stored = false;

	if ((process->options_read && process->options_ns == began_ns) ||
	    recorder->jobs.runtimes->options.values.count >= LIMIT_OPTIONS)
		return NULL;
	arguments.bytes = malloc(LIMIT_OPTION_TEXT_BYTES + 1);
	variables.bytes = malloc(LIMIT_OPTION_TEXT_BYTES + 1);
	if (arguments.bytes && variables.bytes) {
		read_text(&recorder->calls, process->pid, "cmdline", &arguments);
		read_text(&recorder->calls, process->pid, "environ", &variables);
		/* If the process is stuck or its exec has not set the arguments yet, try again later. */
		process->options_read = arguments.complete && arguments.size;
		process->options_ns = began_ns;
		stored =
		    !process->options_read ||
		    /* A text that was cut may end within a value. */
		    runtime_options_scan(&recorder->jobs.runtimes->options, process->pid, began_ns, arguments.bytes,
					 arguments.size, variables.bytes, variables.complete ? variables.size : 0);
		/* Both may contain passwords. */
		explicit_bzero(arguments.bytes, arguments.size);
		explicit_bzero(variables.bytes, variables.size);
	}
	free(arguments.bytes);
	free(variables.bytes);
	return stored ? NULL : &error_no_memory;
}
