/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Converts a recording that comes through a pipe to a file: a report first needs what comes last (build-ids, perf
 * maps), and may search for the ends of its window before it replays. The file has no name and is in TMPDIR (/var/tmp);
 * memory is bounded. Of perf's pipe format, the records are stored first, and then each section; a file that comes
 * through a pipe is copied. */
#ifndef TRACE_READ_PIPE_INPUT_H
#define TRACE_READ_PIPE_INPUT_H

#include <mmtrace/progress.h>

#include "trace/read/recording-file.h"

/* Does the file begin with the header of perf's pipe format? */
bool pipe_input_is_pipe_format(int fd);

/* Where the unnamed files are. */
const char *pipe_input_directory(void);

/* Reads all of `input` from its current position into a file that becomes the descriptor of `file`, whose path is for
 * messages. If it has perf's pipe format, the file is complete afterwards; else its data_end is 0. `progress` may be
 * NULL. */
struct mmt_error *pipe_input_keep(int input, struct recording_file *file,
				  const struct mmt_progress *progress) MMT_MUST_CHECK;

#endif
