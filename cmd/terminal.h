/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What standard output can show. */
#ifndef CMD_TERMINAL_H
#define CMD_TERMINAL_H

#include <stdbool.h>

enum colour_choice { COLOUR_AUTO, COLOUR_ALWAYS, COLOUR_NEVER };
extern const char *const colour_choices[]; /* in that order */
#define COLOUR_ARGUMENT "auto|always|never"

/* Columns; 0 when it is no terminal. */
unsigned terminal_width(void);
bool terminal_colour(enum colour_choice choice);
/* The locale's characters are UTF-8; after setlocale(). */
bool terminal_utf8(void);

#endif
