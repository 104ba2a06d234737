/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* An arena: all allocations are freed at once and stay valid until then. Zero-initialise an empty one. */
#pragma once

#include <stddef.h>

struct arena_chunk;

struct arena {
	struct arena_chunk *chunks;
};

/* Returns zeroed memory, aligned for an array of a type of this size; NULL when out of memory. */
void *arena_alloc(struct arena *arena, size_t count, size_t element_size);

/* NULL when out of memory. */
char *arena_string(struct arena *arena, const char *text);

void arena_deinit(struct arena *arena);
