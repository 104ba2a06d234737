/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Files with parts of a module's debug information: their names (.gnu_debugaltlink, split DWARF), and files that are
 * compressed with zstd, which libelf cannot expand before version 0.189. */
#ifndef CODE_NAMES_DEBUG_FILES_H
#define CODE_NAMES_DEBUG_FILES_H

#include <elfutils/libdw.h>
#include <stdbool.h>

/* Format a missing file as "PATH (id HEX)", without unknown parts. The caller frees the result; NULL: there is none, or
 * out of memory. */
char *debug_part_of_unit(Dwarf_Die *skeleton);

char *debug_part_supplement(Dwarf *dwarf);

/* Whether the file refers to a supplementary one. */
bool debug_part_has_supplement(Dwarf *dwarf);

/* Expand the sections that are compressed with zstd. Their memory is never freed. False: there are none. `elf` was
 * opened with ELF_C_READ_MMAP_PRIVATE. */
bool debug_expand_zstd(Elf *elf);

/* A separate debug file. */
struct debug_file {
	Elf *elf; /* NULL: not open */
	Dwarf *dwarf;
};

/* Open and expand it. False: it is not compressed with zstd, or unreadable. */
bool debug_file_open(const char *path, struct debug_file *file_ret);
void debug_file_close(struct debug_file *file);

#endif
