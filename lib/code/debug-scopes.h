/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Qualified names from DWARF. Compilers give no linkage name to C++ functions with internal linkage: those in an
 * anonymous namespace or of local classes, lambdas, static functions. Their namespaces and classes are the DWARF
 * entries that contain the function's entry.
 */
#ifndef CODE_DEBUG_SCOPES_H
#define CODE_DEBUG_SCOPES_H

#include <elfutils/libdw.h>
#include <stdint.h>

struct debug_scopes;

/* NULL: out of memory. */
struct debug_scopes *debug_scopes_create(void);
/* Accepts NULL. */
void debug_scopes_destroy(struct debug_scopes *scopes);

/* "space::type::function" for a function or an inlined instance; NULL: it is not C++, or is in no named scope. Lives as
 * long as `scopes`. */
const char *debug_scopes_name(struct debug_scopes *scopes, Dwarf_Die *function);

/* Of the Dwarf, until now: about. */
uint64_t debug_scopes_bytes_read(const struct debug_scopes *scopes);

#endif
