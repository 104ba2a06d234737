/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Makes names from recordings safe to print: control characters, bidirectional control characters and invalid UTF-8
 * become \xNN. mmt_write_escaped() uses ESCAPE_FOR_TERMINAL. */
#pragma once

#include <stdio.h>

#include "base/bytes.h"

enum escape_mode {
	ESCAPE_FOR_TERMINAL,
	ESCAPE_FOR_ASCII,  /* everything beyond ASCII too */
	ESCAPE_FOR_QUOTES, /* double quotes and backslashes too */
	ESCAPE_FOR_WORD,   /* and spaces */
	ESCAPE_FOR_STACK,  /* semicolons, which separate frames, become colons */
};

struct escape_piece {
	char text[20]; /* one character, or the escapes of its bytes */
	size_t size;
	unsigned columns; /* on a terminal, in a UTF-8 locale */
};

/* The number of bytes of the valid UTF-8 character at `text`; 0: it is invalid. */
size_t escape_decode(const char *text, uint32_t *character_ret);

/* The next character of a string; false at its end. */
bool escape_next(const char **position, enum escape_mode mode, struct escape_piece *piece_ret);

void escape_write(const char *text, enum escape_mode mode, FILE *stream);
void escape_put(const char *text, enum escape_mode mode, struct buffer *buffer);
