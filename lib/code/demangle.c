// SPDX-License-Identifier: LGPL-2.1-or-later
#include "code/demangle.h"

#include <string.h>

/* libiberty.h asks for it; <string.h> has it. */
#define HAVE_DECL_BASENAME 1
#include <demangle.h>

/* The work can grow much faster than the name; no compiler's own names come near. */
#define MANGLED_MAX 16384

char *demangle(const char *name)
{
	if (strnlen(name, MANGLED_MAX) == MANGLED_MAX)
		return NULL;
	return cplus_demangle(name, DMGL_AUTO | DMGL_PARAMS | DMGL_ANSI);
}
