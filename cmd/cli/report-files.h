/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Program and debug files are read through mappings, by libraries that know no other way. When somebody cuts such a
 * file short meanwhile the kernel sends SIGBUS for the pages that are gone. They read as zeros from then on, as a
 * damaged file does, and the command ends as it would.
 */
#ifndef CLI_REPORT_FILES_H
#define CLI_REPORT_FILES_H

#include "cmd.h"

void truncated_files_ignore(void);

/* Says so when it has happened. */
void truncated_files_report(const struct command *command);

/* Where names of functions are kept from one report to the next. */

/* $XDG_CACHE_HOME/mmtrace, or ~/.cache/mmtrace; NULL: neither is set. The caller frees it. */
char *cache_directory(void);

#endif
