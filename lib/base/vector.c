// SPDX-License-Identifier: LGPL-2.1-or-later
#include "base/vector.h"

#include <stdalign.h>

#include "base/errors.h"

bool vector_reserve_bytes(void **items, size_t *capacity, size_t needed, size_t element_size)
{
	size_t larger = *capacity ? *capacity : 8;
	void *moved;

	if (needed <= *capacity)
		return true;
	while (larger < needed)
		larger *= 2;
	if (larger > SIZE_MAX / element_size)
		return false;
	moved = realloc(*items, larger * element_size);
	if (!moved) {
		memory_failed();
		return false;
	}
	*items = moved;
	*capacity = larger;
	return true;
}

#define CHUNK_BYTES 65536

struct arena_chunk {
	struct arena_chunk *next;
	size_t used, capacity;
	alignas(max_align_t) unsigned char bytes[];
};

void *arena_alloc(struct arena *arena, size_t count, size_t element_size)
{
	/* The size of a type is a multiple of its alignment. */
	size_t alignment = (element_size & -element_size) | alignof(max_align_t);
	struct arena_chunk *chunk = arena->chunks;
	size_t size, start = 0;

	alignment &= -alignment;
	if (__builtin_mul_overflow(count, element_size, &size) || size > SIZE_MAX / 2)
		return NULL;
	if (chunk)
		start = (chunk->used + alignment - 1) & ~(alignment - 1);
	if (!chunk || start > chunk->capacity || chunk->capacity - start < size) {
		size_t capacity = size > CHUNK_BYTES ? size : CHUNK_BYTES;

		chunk = calloc(1, sizeof(*chunk) + capacity);
		if (!chunk) {
			memory_failed();
			return NULL;
		}
		chunk->capacity = capacity;
		chunk->next = arena->chunks;
		arena->chunks = chunk;
		start = 0;
	}
	chunk->used = start + size;
	return chunk->bytes + start;
}

char *arena_string(struct arena *arena, const char *text)
{
	size_t size = strlen(text) + 1;
	char *copy = arena_alloc(arena, size, 1);

	return copy ? memcpy(copy, text, size) : NULL;
}

void arena_deinit(struct arena *arena)
{
	while (arena->chunks) {
		struct arena_chunk *next = arena->chunks->next;

		free(arena->chunks);
		arena->chunks = next;
	}
}
