/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Converts a recording that comes through a pipe to a file: a report first needs what comes last (build-ids, perf
 * maps), and may search for the ends of its window before it replays. The file has no name and is in TMPDIR (/var/tmp);
 * memory is bounded. perf's pipe format is converted to its file format; a file that comes through a pipe is copied. */
#ifndef TRACE_READ_PIPE_INPUT_H
#define TRACE_READ_PIPE_INPUT_H

#include <stdbool.h>

#include <mmtrace/progress.h>

#include "base/errors.h"

/* A regular file, not parsed yet, with the content of the pipe. */
bool pipe_input_is_pipe_format(int fd);

/* Where the unnamed files are. */
const char *pipe_input_directory(void);

/* Reads all of `input` from its current position. *cut_ret: it ended in the middle of a record. `progress` may be NULL.
 * Every message begins with `name`. */
struct mmt_error *pipe_input_keep(int input, const char *name, const struct mmt_progress *progress, int *fd_ret,
				  bool *cut_ret) MMT_MUST_CHECK;

#endif
