/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Standard output through a pager when it is a terminal: MMTRACE_PAGER, PAGER, less. */
#ifndef CLI_PAGER_H
#define CLI_PAGER_H

#include <stdbool.h>

#include "cmd.h"

/* Before the first output. Does nothing where no pager is wanted or there is none. */
void pager_start(const struct command *command, bool wanted);

/*
 * Flush standard output, end it and wait for the pager. Returns `status`, or EXIT_UNUSABLE when the output could not be
 * written, which is said; a reader that had enough is no failure.
 */
int pager_finish(const struct command *command, int status);

/* For signal handlers and when out of memory: closes standard output and waits for the pager, which has the terminal. */
void pager_end(void);

#endif
