/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef HELP_H
#define HELP_H

/* The list of commands, on standard output. */
void help_print(void);

#endif
