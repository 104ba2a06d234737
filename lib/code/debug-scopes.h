/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Qualified names from DWARF. Compilers give no linkage name to a C++ function that only its own file can call: what is
 * in an anonymous namespace, local classes, lambdas, static functions. Its namespaces and classes are the entries that
 * its own entry is inside of.
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

/* "space::type::function" of a function or an inlined one; NULL: it is none of C++, or in nothing that has a name.
 * Lives as long as `scopes`. */
const char *debug_scopes_name(struct debug_scopes *scopes, Dwarf_Die *function);

/* Of the Dwarf, until now: about. */
uint64_t debug_scopes_bytes_read(const struct debug_scopes *scopes);

#endif
