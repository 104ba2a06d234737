// SPDX-License-Identifier: LGPL-2.1-or-later
/* Confines a program that reads recordings: finds the places where it must write all the same. */
#include <fcntl.h>
#include <sys/stat.h>

#include <mmtrace/confine.h>

#include "base/helper-process.h"
#include "trace/read/recording-file.h"
#include "trace/write/output-file.h"

/* Will the reader copy the recording to a temporary file? */
static bool is_piped(const char *input)
{
	CLEANUP(close) int fd = -1;
	struct stat status;

	if (!strcmp(input, "-"))
		return true;
	if (stat(input, &status) < 0)
		return false; /* the reader reports it */
	if (!S_ISREG(status.st_mode))
		return true;
	fd = open(input, O_RDONLY | O_CLOEXEC);
	return fd >= 0 && pipe_input_is_pipe_format(fd);
}

void mmt_confine(const char *const *inputs, size_t input_count, const char *output)
{
	CLEANUP(close) int spill = -1;
	CLEANUP(close) int written = -1;
	bool pipes = array_find(input, inputs, input_count, is_piped(*input));
	bool writes = output && strcmp(output, "-");

	if (pipes)
		spill = open(pipe_input_directory(), O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (writes)
		written = output_file_place(output);
	confine_thread((const int[]){spill, written}, pipes || writes ? 2 : 0);
}
