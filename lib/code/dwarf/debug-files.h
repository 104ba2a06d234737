/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Separate debug files: where they are looked for, parts that a file refers to (.gnu_debugaltlink, split DWARF), and
 * copies with their compressed sections expanded.
 */
#ifndef CODE_DWARF_DEBUG_FILES_H
#define CODE_DWARF_DEBUG_FILES_H

#include <elfutils/libdw.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The other files that have a part of a program's debug information, as it names them itself. */

/* As "PATH (id HEX)", without what is not said. The caller frees it; NULL: there is none, or no memory. */
char *debug_part_of_unit(Dwarf_Die *skeleton);

char *debug_part_supplement(Dwarf *dwarf);

/* Whether libdw would block on one of the paths where it looks for the file, such as a FIFO. `path`: the file that
 * contains the unit or `dwarf`. */
bool debug_part_of_unit_blocks(Dwarf_Die *skeleton, const char *path);

/* The file refers to a supplementary one. */
bool debug_part_has_supplement(Dwarf *dwarf);

/* True as well when the supplementary file has one in its turn. After this the library may look for it. */
bool debug_part_supplement_blocks(Dwarf *dwarf, const char *path);

/*
 * The libraries open what stands where debug information may be, whatever it is: a FIFO would hold them for ever, and a
 * device feels it. So these places are looked at before. What is put there between the look and the open is not seen.
 */

/* Neither a file nor a directory, but something that is there. */
bool debug_place_blocks(const char *path);

/* One of the places where the separate file of a program is looked for by its name; `link`: of the file, as the program
 * says it; NULL: it does not. */
bool debug_places_block(const char *program, const char *link);

/* The place of a file with this build-id. */
bool debug_place_of_id_blocks(const uint8_t *build_id, size_t size);

/* The place of a file with all that was split off from `file`, whatever its units say. */
bool debug_place_of_parts_blocks(const char *file);

/* The places of a file that is named `name` in `file`, whose compiler stood in `directory` (NULL: not known). */
bool debug_places_of_part_block(const char *file, const char *directory, const char *name);

/*
 * The file of debug information whose sections are compressed, expanded into one without a name in TMPDIR, else
 * /var/tmp. libdw would expand every section in memory, and hold them all until the end; of a file only what is being
 * read need be in memory.
 */

/* What expands to less is not worth the file. */
#define EXPANDED_DEBUG_BYTES_MIN (48u << 20)

/* The same ELF file, without compressed sections, and without those of them that names are not taken from. -1: `minimum`
 * bytes do not come of those it keeps, it would have more than 8 GiB or half of what is free on the disk, refers to other
 * files, or cannot be had. All of it is written, so that no page of its mapping needs room on the disk later. */
int expanded_debug_create(int fd, uint64_t minimum);

/* What is read of such a file. */
struct debug_image;

/* Does not keep `fd`. NULL: it cannot be read. */
struct debug_image *debug_image_open(int fd);

/* Accepts NULL. */
void debug_image_close(struct debug_image *image);

Dwarf *debug_image_dwarf(const struct debug_image *image);

/* Where its first segment is loaded; false: it has none. */
bool debug_image_address(const struct debug_image *image, uint64_t *address_ret);

/* Give back the memory of what was read; what is read again comes from the file. */
void debug_image_release(const struct debug_image *image);

#endif
