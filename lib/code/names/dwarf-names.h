/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Functions, inlined functions and lines from DWARF. */
#pragma once

#include <elfutils/libdw.h>

#include "code/elf/module.h"

/* Borrows `dwarf`. NULL: out of memory. */
struct dwarf_names *dwarf_names_create(Dwarf *dwarf);

void dwarf_names_destroy(struct dwarf_names *names);

/* The worst problem found so far, see module_known_state(). */
enum module_state dwarf_names_state(const struct dwarf_names *names);

/* The first missing file that a lookup needed, and how many others. The caller frees it. NULL: none, or unknown. */
char *dwarf_names_missing(const struct dwarf_names *names);

/* True if the file has debug information, or cannot be read. */
bool dwarf_names_expected(Elf *elf);

struct debug_frame {
	const char *linkage_name; /* NULL: unknown. Strings live as long as the names and the Dwarf */
	const char *name;	  /* NULL: no function, only a line */
	const char *source_file;
	const char *directory; /* directory to which source_file is relative; NULL: unknown */
	uint32_t source_line;
	uint64_t entry; /* of the function; 0: unknown */
	bool inlined;
	Dwarf_Die function; /* of the function, if it has a name */
};

/* Innermost first: at most LIMIT_INLINED_FRAMES - 1 inlined functions and the function itself. Returns their number;
 * 0: `address` (of the Dwarf) is unknown. */
size_t dwarf_names_find(struct dwarf_names *names, uint64_t address, struct debug_frame frames[LIMIT_INLINED_FRAMES]);

/* The qualified name, with namespaces and classes, of a function already found; NULL: none, or use the linkage name.
 * The caller frees it. */
char *dwarf_names_qualified(struct dwarf_names *names, const struct debug_frame *frame);
