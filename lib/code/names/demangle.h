/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef CODE_NAMES_DEMANGLE_H
#define CODE_NAMES_DEMANGLE_H

#include <stdbool.h>

/* Demangle a C++, Rust, D or, with `ada`, Ada name with libiberty; NULL if it is not mangled. The caller frees it. A
 * hostile name takes exponential time and memory. */
char *demangle(const char *name, bool ada);

/* Likewise, the name of a C++ type as std::type_info has it, such as "N3app7SessionE". */
char *demangle_type(const char *name);

#endif
