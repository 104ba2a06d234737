/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The other files that have a part of a program's debug information, as it names them itself. */
#ifndef CODE_DEBUG_PARTS_H
#define CODE_DEBUG_PARTS_H

#include <elfutils/libdw.h>
#include <stdbool.h>

/* As "PATH (id HEX)", without what is not said. The caller frees it; NULL: there is none, or no memory. */
char *debug_part_of_unit(Dwarf_Die *skeleton);
char *debug_part_supplement(Dwarf *dwarf);

/* Whether the library would wait for what stands at one of the places of the file: debug-places.h. `path`: of the file with
 * the unit, or with `dwarf`. */
bool debug_part_of_unit_blocks(Dwarf_Die *skeleton, const char *path);
/* The file refers to a supplementary one. */
bool debug_part_has_supplement(Dwarf *dwarf);
/* True as well when the supplementary file has one in its turn. After this the library may look for it. */
bool debug_part_supplement_blocks(Dwarf *dwarf, const char *path);

#endif
