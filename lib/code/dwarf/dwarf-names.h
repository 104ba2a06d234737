/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Functions, inlined functions and lines from DWARF. */
#ifndef CODE_DWARF_DWARF_NAMES_H
#define CODE_DWARF_DWARF_NAMES_H

#include <elfutils/libdw.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/errors.h"

struct dwarf_names;

/* Borrows `dwarf`, which is read from `path`: parts of it may be beside that. */
struct mmt_error *dwarf_names_create(Dwarf *dwarf, const char *path, struct dwarf_names **names_ret) MMT_MUST_CHECK;

void dwarf_names_destroy(struct dwarf_names *names);

/* False: some files with parts of it (split DWARF, a supplementary file) are missing. */
bool dwarf_names_complete(const struct dwarf_names *names);

/* The worst problem found so far. */
enum dwarf_names_state {
	DWARF_NAMES_SOUND,
	DWARF_NAMES_MISSING, /* a lookup needed a missing file */
	DWARF_NAMES_LIMITED, /* something exceeds a limit */
	DWARF_NAMES_DAMAGED, /* something cannot be decoded */
};

enum dwarf_names_state dwarf_names_state(const struct dwarf_names *names);

/* The first missing file that a lookup needed, and the number of others. The caller frees it. NULL: none, or unknown.
 */
char *dwarf_names_missing(const struct dwarf_names *names, size_t *others_ret);

/* Approximate number of bytes read from the Dwarf so far. */
uint64_t dwarf_names_bytes_read(const struct dwarf_names *names);

/* True if the file has debug information, or cannot be read. */
bool dwarf_names_expected(Elf *elf);

struct debug_frame {
	const char *linkage_name; /* NULL: none. Strings live as long as the names and the Dwarf */
	const char *name;	  /* NULL: no function, only a line */
	const char *source_file;
	const char *directory; /* that a relative source_file is relative to; NULL: unknown */
	uint32_t source_line;
	uint64_t entry; /* of the function, 0 unknown */
	bool inlined;
	Dwarf_Die function; /* of the function, if there is a name */
};

#define DWARF_NAMES_INLINE_MAX 64

/* Innermost first, the function and DWARF_NAMES_INLINE_MAX - 1 inlined ones at most; 0: nothing is known about
 * `address` (of the Dwarf). */
size_t dwarf_names_find(struct dwarf_names *names, uint64_t address, struct debug_frame *frames, size_t limit);

/* The qualified name, with namespaces and classes, of a function that was found; NULL: there is none, or the linkage
 * name has to be used. */
const char *dwarf_names_qualified(struct dwarf_names *names, const struct debug_frame *frame);

#endif
