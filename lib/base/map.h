/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The hash tables of the library: `struct map` from a 64-bit key to a 64-bit value (a pointer, an index), `struct
 * intern`, which gives equal byte strings the same small id, and `struct id_table`, for callers that store the
 * identified objects themselves. Zero-initialise them.
 *
 * Keys come from recordings and recorded programs, which may be hostile. Each table has its own random seed, so that an
 * attacker cannot choose keys that collide.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* For caches of a fixed size, where a collision costs no more than a miss, so that an attacker gains nothing: one
 * multiplication. The upper bits are the good ones. The tables below spread their keys with two, and with their seed.
 */
static inline uint64_t hash_number(uint64_t number)
{
	number *= 0x9e3779b97f4a7c15ULL;
	return number ^ number >> 29;
}

struct map_slot {
	uint64_t key;
	union {
		uint64_t value;
		void *pointer; /* of map_put_pointer() */
	};
	uint8_t state;
};

struct map {
	struct map_slot *slots;
	size_t capacity; /* a power of two, or 0 */
	size_t count;
	size_t used;   /* count plus deleted slots */
	uint64_t seed; /* 0: none yet, because the map was never filled */
};

void map_deinit(struct map *map);
#define cleanup_map map_deinit /* for CLEANUP(map) */

/* Pointer to the value, valid until the next map_put(); NULL when absent. */
uint64_t *map_get(const struct map *map, uint64_t key);

/* Insert or replace; false when out of memory. */
bool map_put(struct map *map, uint64_t key, uint64_t value);

/* Add to the value, which is 0 when absent; false when out of memory. */
bool map_add(struct map *map, uint64_t key, uint64_t number);

/* False when absent. */
bool map_remove(struct map *map, uint64_t key);

/* The entry after `slot` (NULL: the first) in a random order; NULL: no more. */
struct map_slot *map_next(const struct map *map, const struct map_slot *slot);

/* Loop over the entries, to which `slot` points, while the condition holds; without map_put(). */
#define map_each(slot, map, condition)                                                                                 \
	for (struct map_slot *slot = map_next(map, NULL); slot && (condition); slot = map_next(map, slot))

/* The same as map_get() for a map whose values are pointers; NULL when absent. */
static inline void *map_get_pointer(const struct map *map, uint64_t key)
{
	const uint64_t *value = map_get(map, key);

	return value ? (void *)(uintptr_t)*value : NULL;
}

static inline bool map_put_pointer(struct map *map, uint64_t key, const void *pointer)
{
	return map_put(map, key, (uint64_t)(uintptr_t)pointer);
}

struct id_slot {
	uint32_t hash; /* lower half of the hash */
	uint32_t id;   /* plus 1; 0: free */
};

/* Ids count from 0 in the order of insertion. */
struct id_table {
	struct id_slot *slots;
	size_t capacity; /* a power of two, or 0 */
	size_t count;
	uint64_t seed; /* 0: none yet */
};

#define ID_NONE UINT32_MAX

void id_table_deinit(struct id_table *table);

/* Hash for the next two functions; valid only for this table. */
uint64_t id_table_hash(struct id_table *table, const void *data, size_t size);

/* Iterate over the ids whose hash may be equal. Start with *position 0. ID_NONE: no more. */
uint32_t id_table_next(const struct id_table *table, uint64_t hash, size_t *position);

/* Add an entry with this hash and the next id; ID_NONE: out of memory. */
uint32_t id_table_add(struct id_table *table, uint64_t hash);

struct intern_entry {
	uint32_t place; /* offset in `bytes`, in 8-byte words */
	uint32_t size;
};

struct intern {
	uint8_t *bytes;
	size_t bytes_size, bytes_capacity;
	struct intern_entry *entries;
	size_t count, capacity;
	struct id_table by_hash;
};

#define INTERN_NONE ID_NONE

void intern_deinit(struct intern *intern);

/* Returns the id of these bytes and adds them if needed. Ids count from 0 in order of insertion: an id equal to the
 * previous count is new. INTERN_NONE: out of memory, or more than 32 GiB. The stored copy is 8-byte aligned. */
uint32_t intern_put(struct intern *intern, const void *data, size_t size);

/* As intern_put(), for a string including its NUL. */
uint32_t intern_put_string(struct intern *intern, const char *text);

/* INTERN_NONE when absent. */
uint32_t intern_find(const struct intern *intern, const void *data, size_t size);

/* The stored bytes, valid until the next intern_put(). `size_ret` may be NULL. */
const void *intern_get(const struct intern *intern, uint32_t id, size_t *size_ret);

/* Stable checksum for files. */
uint64_t map_checksum(const void *data, size_t size);

/* Of XXH3: 803 is version 0.8.3. */
unsigned map_library_version(void);
