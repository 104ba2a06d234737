/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The libraries open what stands where debug information may be, whatever it is: a FIFO would hold them for ever, and a
 * device feels it. So these places are looked at before. What is put there between the look and the open is not seen.
 */
#ifndef CODE_DEBUG_PLACES_H
#define CODE_DEBUG_PLACES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

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

#endif
