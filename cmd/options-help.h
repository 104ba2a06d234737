/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* An option table, told to people and to programs. Both return the exit status. */
#ifndef CMD_OPTIONS_HELP_H
#define CMD_OPTIONS_HELP_H

#include "options.h"

extern const struct option_entry options_help_entry; /* of --help */

int options_help(const struct command *command, const struct option_entry *table);

/* One line an option: "--pid -p PID[,PID...]"; "-" stands for no letter or no argument. */
int options_list(const struct option_entry *table);

#endif
