// SPDX-License-Identifier: LGPL-2.1-or-later
#include "code/names/demangle.h"

#include <stdlib.h>

#include "base/strings.h"

/* libiberty.h requires this; <string.h> declares basename(). */
#define HAVE_DECL_BASENAME 1
#include <demangle.h>

#define OPTIONS (DMGL_PARAMS | DMGL_ANSI)

char *demangle(const char *name, bool ada)
{
	char *text;

	if (starts_with(name, "_D"))
		return dlang_demangle(name, OPTIONS);
	text = rust_demangle(name, OPTIONS);
	if (!text)
		text = cplus_demangle_v3(name, OPTIONS);
	if (text || !ada)
		return text;
	text = ada_demangle(name, 0);
	/* The library puts brackets around what is not a name of Ada. */
	if (text && *text == '<') {
		free(text);
		text = NULL;
	}
	return text;
}

char *demangle_type(const char *name)
{
	/* The linker's name of a type that is not exported begins with this. */
	return cplus_demangle_v3(*name == '*' ? name + 1 : name, OPTIONS | DMGL_TYPES);
}
