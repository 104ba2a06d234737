/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Libraries read ELF and debug files through mappings. If such a file is truncated meanwhile, the kernel sends SIGBUS
 * for the missing pages. This maps zeros in their place, so that the file reads like a damaged one. */
#ifndef CLI_REPORT_FILES_H
#define CLI_REPORT_FILES_H

#include "cmd.h"

void truncated_files_ignore(void);

/* Print a warning if that has happened. */
void truncated_files_report(const struct command *command);

/* The directory of the name cache. */

/* $XDG_CACHE_HOME/mmtrace, or ~/.cache/mmtrace; NULL: neither is set. The caller frees it. */
char *cache_directory(void);

#endif
