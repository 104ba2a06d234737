/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Separate debug files: where to search for them, parts that a file refers to (.gnu_debugaltlink, split DWARF), and
 * copies with expanded sections. */
#ifndef CODE_NAMES_DEBUG_FILES_H
#define CODE_NAMES_DEBUG_FILES_H

#include <elfutils/libdw.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Other files with parts of a module's debug information, as named in the module. */

/* Formats it as "PATH (id HEX)", without unknown parts. The caller frees the result; NULL: there is none, or out of
 * memory. */
char *debug_part_of_unit(Dwarf_Die *skeleton);

char *debug_part_supplement(Dwarf *dwarf);

/* Whether libdw would block on one of the paths where it looks for the file, such as a FIFO. `path`: the file that
 * contains the unit or `dwarf`. */
bool debug_part_of_unit_blocks(Dwarf_Die *skeleton, const char *path);

/* Whether the file refers to a supplementary one. */
bool debug_part_has_supplement(Dwarf *dwarf);

/* Also true if the supplementary file has one itself. After this the library may search for it. */
bool debug_part_supplement_blocks(Dwarf *dwarf, const char *path);

/*
 * libdwfl and libdw search for debug information themselves, and open whatever is at a possible path: a FIFO would
 * block forever, and opening a device can have side effects. A caller cannot choose how they open it. So these
 * functions check the paths first; test-debug-files compares them with what the installed version opens. A file created
 * between the check and the open is not detected.
 */

/* A candidate path for the separate debug file of a program, searched by name. `link`: name in the program's debug
 * link; NULL: it has none. */
bool debug_places_block(const char *module, const char *link);

/* The path of a file with this build-id. */
bool debug_place_of_id_blocks(const uint8_t *build_id, size_t size);

/* Opens the separate debug file with the module's build-id, which it verifies, and stores its real path, which the
 * caller frees. -1: there is none, or only libdwfl finds it, by name or on a server. */
int debug_open_by_id(Elf *module, char **path_ret);

/* The path of the .dwp file of `file`, whatever its units refer to. */
bool debug_place_of_parts_blocks(const char *file);

/* The candidate paths of a file that `file` calls `name`; its compiler ran in `directory` (NULL: unknown). */
bool debug_places_of_part_block(const char *file, const char *directory, const char *name);

/* Expands a debug file with compressed sections into an unnamed file in TMPDIR, else /var/tmp. libdw would expand every
 * section in memory and keep them all; a file only needs memory for what is being read. */

/* Files that expand to less are not worth the copy. */
#define EXPANDED_DEBUG_BYTES_MIN (48u << 20)

/*
 * Create an equal ELF file without compressed sections and without the contents of sections that names do not need. -1:
 * the kept sections expand to less than `minimum` bytes (zlib only), or to more than 8 GiB or half of the free disk
 * space, or the file refers to other files, or an error occurred. All blocks are written, so that its mapping needs no
 * disk space later.
 */
int expanded_debug_create(int fd, uint64_t minimum);

/* Whether the file's debug information is compressed with zstd, which libelf cannot expand before version 0.189: expand
 * it whatever its size. */
bool debug_is_zstd(Elf *elf);

/* Reads an expanded file. */
struct debug_image;

/* Does not keep `fd`. NULL: unreadable. */
struct debug_image *debug_image_open(int fd);

/* Accepts NULL. */
void debug_image_close(struct debug_image *image);

Dwarf *debug_image_dwarf(const struct debug_image *image);

/* Address of its first segment; false: it has none. */
bool debug_image_address(const struct debug_image *image, uint64_t *address_ret);

/* Release the memory of pages already read; the kernel reads them from the file again if needed. */
void debug_image_release(const struct debug_image *image);

#endif
