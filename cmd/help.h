/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef CMD_HELP_H
#define CMD_HELP_H

/* The list of commands, on standard output. */
void help_print(void);

#endif
