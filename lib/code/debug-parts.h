/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The other files that have a part of a program's debug information, as it names them itself. */
#ifndef CODE_DEBUG_PARTS_H
#define CODE_DEBUG_PARTS_H

#include <elfutils/libdw.h>

/* As "PATH (id HEX)", without what is not said. The caller frees it; NULL: there is none, or no memory. */
char *debug_part_of_unit(Dwarf_Die *skeleton);
char *debug_part_supplement(Dwarf *dwarf);

#endif
