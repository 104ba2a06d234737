/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Standard output through a pager when it is a terminal: MMTRACE_PAGER, PAGER, less. */
#ifndef CLI_PAGER_H
#define CLI_PAGER_H

#include <stdbool.h>

#include "cmd.h"

/* Call this before the first output. Does nothing if no pager is wanted or installed. */
void pager_start(const struct command *command, bool wanted);

/* Flush standard output and wait for the pager. Returns `status`, or EXIT_UNUSABLE after a message if the output could
 * not be written; quitting the pager early is no failure. */
int pager_finish(const struct command *command, int status);

/* For signal handlers and when out of memory: close standard output and wait for the pager. */
void pager_end(void);

#endif
