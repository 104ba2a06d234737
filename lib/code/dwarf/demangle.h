/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Demangles C++, Rust and D names with libiberty. */
#ifndef CODE_DWARF_DEMANGLE_H
#define CODE_DWARF_DEMANGLE_H

/* C++ or Rust name as its programmer wrote it; NULL when it is not mangled. The caller frees it. */
char *demangle(const char *name);

#endif
