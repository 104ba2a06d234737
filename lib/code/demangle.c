// SPDX-License-Identifier: LGPL-2.1-or-later
#include "code/demangle.h"

#include <setjmp.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/vector.h"

/* libiberty.h asks for it; <string.h> has it. */
#define HAVE_DECL_BASENAME 1
#include <demangle.h>

/* No compiler's own names come near. References make the text of a hostile one grow exponentially. */
#define MANGLED_MAX 16384
#define TEXT_MAX (1u << 18)

struct text {
	VECTOR(char) characters;
	jmp_buf too_long;
};

/*
 * The library cannot be told to stop. It holds no memory while it writes, except for a Rust identifier in Punycode,
 * which it writes at once: never ASCII alone, so that another piece is waited for.
 */
static bool may_leave(const char *piece, size_t length)
{
	for (size_t i = 0; i < length; i++) {
		if ((unsigned char)piece[i] >= 0x80)
			return false;
	}
	return true;
}

static void write_piece(const char *piece, size_t length, void *context)
{
	struct text *text = context;

	for (size_t i = 0; i < length && text->characters.count < TEXT_MAX; i++) {
		if (!vector_push(&text->characters, piece[i]))
			longjmp(text->too_long, 1);
	}
	if (text->characters.count == TEXT_MAX && may_leave(piece, length))
		longjmp(text->too_long, 1);
}

static bool write_text(const char *name, struct text *text)
{
	if (setjmp(text->too_long))
		return false;
	if (rust_demangle_callback(name, DMGL_PARAMS | DMGL_ANSI, write_piece, text))
		return true;
	text->characters.count = 0;
	return cplus_demangle_v3_callback(name, DMGL_PARAMS | DMGL_ANSI, write_piece, text);
}

char *demangle(const char *name)
{
	struct text *text;
	char *result = NULL;

	if (strnlen(name, MANGLED_MAX) == MANGLED_MAX)
		return NULL;
	text = calloc(1, sizeof(*text)); /* what longjmp() leaves as it is */
	if (text && write_text(name, text) && vector_push(&text->characters, '\0')) {
		result = text->characters.items;
		text->characters.items = NULL;
	}
	if (text)
		vector_deinit(&text->characters);
	free(text);
	return result;
}
