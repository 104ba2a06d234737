/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Demangling, and names that are made of a module's names. */
#ifndef CODE_NAMES_DEMANGLE_H
#define CODE_NAMES_DEMANGLE_H

#include <stdbool.h>

#include "base/arena.h"
#include "base/map.h"
#include "base/vector.h"

/* Names derived from those of a module, each stored once: demangled names and full paths. */

/* An all-zero value is empty. */
struct synthesized_names {
	bool ada;		    /* names that nothing else demangles are Ada's; set it before the first name */
	struct intern keys;	    /* addresses of the arguments */
	VECTOR(const char *) texts; /* by number of the key; NULL: none */
	struct arena arena;
};

void synthesized_names_deinit(struct synthesized_names *names);

/* Arguments are identified by their addresses, so they must live as long as `names`, as do results. NULL: out of
 * memory. */

/* Also NULL if the name is not mangled. */
const char *synthesized_names_demangle(struct synthesized_names *names, const char *name);

const char *synthesized_names_path(struct synthesized_names *names, const char *directory, const char *file);

/* A symbol's name without its version, which begins at `end`. */
const char *synthesized_names_without_version(struct synthesized_names *names, const char *name, const char *end);

/* Demangle a C++, Rust, D or, with `ada`, Ada name with libiberty; NULL if it is not mangled. The caller frees it. A
 * hostile name takes exponential time and memory. */
char *demangle(const char *name, bool ada);

/* Likewise, the name of a C++ type as std::type_info has it, such as "N3app7SessionE". */
char *demangle_type(const char *name);

#endif
