/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A recording that comes through a pipe becomes a file: what a report needs first (build-ids, perf maps) comes last,
 * and it may look for the ends of its window before it replays. The file has no name and lies in TMPDIR (/var/tmp);
 * memory is bounded. perf's pipe format is turned into that of files; a file that comes through a pipe stays as it is.
 */
#ifndef TRACE_READ_PIPE_INPUT_H
#define TRACE_READ_PIPE_INPUT_H

#include <stdbool.h>

#include <mmtrace/progress.h>

#include "base/errors.h"

/* A regular file, not read yet, that holds what came out of a pipe. */
bool pipe_input_is_pipe_format(int fd);

/* All of `input`, from where it stands. *cut_ret: it ended in the middle of a record. `progress` may be NULL. Every
 * message begins with `name`. */
struct mmt_error *pipe_input_keep(int input, const char *name, const struct mmt_progress *progress, int *fd_ret,
				  bool *cut_ret) MMT_MUST_CHECK;

#endif
