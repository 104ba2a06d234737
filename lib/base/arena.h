/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Memory that is given back all at once. Pointers stay valid until then. Zero initialisation makes an empty one. */
#ifndef BASE_ARENA_H
#define BASE_ARENA_H

#include <stddef.h>

struct arena_chunk;

struct arena {
	struct arena_chunk *chunks;
};

/* Zeroed, and aligned for an array of a type of this size; NULL when out of memory. */
void *arena_alloc(struct arena *arena, size_t count, size_t element_size);

/* NULL when out of memory. */
char *arena_string(struct arena *arena, const char *text);

void arena_deinit(struct arena *arena);

#endif
