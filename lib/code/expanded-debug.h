/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The file of debug information whose sections are compressed, expanded into one without a name in TMPDIR, else
 * /var/tmp. libdw would expand every section in memory, and hold them all until the end; of a file only what is being
 * read need be in memory.
 */
#ifndef CODE_EXPANDED_DEBUG_H
#define CODE_EXPANDED_DEBUG_H

#include <elfutils/libdw.h>
#include <stdbool.h>
#include <stdint.h>

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
