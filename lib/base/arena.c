// SPDX-License-Identifier: LGPL-2.1-or-later
#include "base/arena.h"

#include <stdalign.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define CHUNK_BYTES 65536

struct arena_chunk {
	struct arena_chunk *next;
	size_t used, capacity;
	alignas(max_align_t) unsigned char bytes[];
};

static struct arena_chunk *add_chunk(struct arena *arena, size_t size)
{
	size_t capacity = size > CHUNK_BYTES ? size : CHUNK_BYTES;
	struct arena_chunk *chunk = calloc(1, sizeof(*chunk) + capacity);

	if (!chunk)
		return NULL;
	chunk->capacity = capacity;
	chunk->next = arena->chunks;
	arena->chunks = chunk;
	return chunk;
}

void *arena_alloc(struct arena *arena, size_t count, size_t element_size)
{
	size_t alignment = alignof(max_align_t);
	struct arena_chunk *chunk = arena->chunks;
	size_t size;
	void *memory;

	if (__builtin_mul_overflow(count, element_size, &size) || size > SIZE_MAX / 2)
		return NULL;
	size = (size + alignment - 1) & ~(alignment - 1);
	if (!chunk || chunk->capacity - chunk->used < size)
		chunk = add_chunk(arena, size);
	if (!chunk)
		return NULL;
	memory = chunk->bytes + chunk->used;
	chunk->used += size;
	return memory;
}

char *arena_string(struct arena *arena, const char *text)
{
	size_t size = strlen(text) + 1;
	char *copy = arena_alloc(arena, size, 1);

	return copy ? memcpy(copy, text, size) : NULL;
}

void arena_reset(struct arena *arena)
{
	struct arena rest = {0};

	if (!arena->chunks)
		return;
	rest.chunks = arena->chunks->next;
	arena_deinit(&rest);
	arena->chunks->next = NULL;
	memset(arena->chunks->bytes, 0, arena->chunks->used);
	arena->chunks->used = 0;
}

void arena_deinit(struct arena *arena)
{
	while (arena->chunks) {
		struct arena_chunk *next = arena->chunks->next;

		free(arena->chunks);
		arena->chunks = next;
	}
}
