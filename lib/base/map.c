// SPDX-License-Identifier: LGPL-2.1-or-later
#include "base/map.h"

#include <sys/random.h>
#include <time.h>
#include <xxhash.h>

#include "base/vector.h"

#define WORD_BYTES 8 /* alignment of interned bytes */

enum { SLOT_EMPTY, SLOT_USED, SLOT_REMOVED };

/* A random seed, so that hashes cannot be predicted from outside; never 0. */
static uint64_t draw_seed(const void *table)
{
	struct timespec now = {0};
	uint64_t seed;

	if (getrandom(&seed, sizeof(seed), GRND_NONBLOCK) != sizeof(seed)) {
		(void)clock_gettime(CLOCK_MONOTONIC, &now);
		seed = (uintptr_t)table ^ (uint64_t)now.tv_nsec << 32;
	}
	return seed | 1;
}

/* The finaliser of MurmurHash3 (public domain) spreads both addresses and small integers. */
static uint64_t spread(uint64_t key)
{
	key ^= key >> 33;
	key *= 0xff51afd7ed558ccdULL;
	key ^= key >> 33;
	key *= 0xc4ceb9fe1a85ec53ULL;
	return key ^ (key >> 33);
}

static struct map_slot *find_slot(const struct map *map, uint64_t key)
{
	struct map_slot *removed = NULL;
	size_t position = spread(key ^ map->seed) & (map->capacity - 1);

	for (;; position = (position + 1) & (map->capacity - 1)) {
		struct map_slot *slot = &map->slots[position];

		if (slot->state == SLOT_EMPTY)
			return removed ? removed : slot;
		if (slot->state == SLOT_USED && slot->key == key)
			return slot;
		if (slot->state == SLOT_REMOVED && !removed)
			removed = slot;
	}
}

static bool rehash(struct map *map)
{
	struct map larger = {.capacity = 16, .seed = map->seed ? map->seed : draw_seed(map)};

	while (larger.capacity < map->count * 4)
		larger.capacity *= 2;
	larger.slots = calloc(larger.capacity, sizeof(*larger.slots));
	if (!larger.slots)
		return false;
	for (size_t i = 0; i < map->capacity; i++) {
		if (map->slots[i].state == SLOT_USED)
			*find_slot(&larger, map->slots[i].key) = map->slots[i];
	}
	larger.count = larger.used = map->count;
	free(map->slots);
	*map = larger;
	return true;
}

void map_deinit(struct map *map)
{
	free(map->slots);
	*map = (struct map){0};
}

uint64_t *map_get(const struct map *map, uint64_t key)
{
	struct map_slot *slot = map->capacity ? find_slot(map, key) : NULL;

	return slot && slot->state == SLOT_USED ? &slot->value : NULL;
}

bool map_put(struct map *map, uint64_t key, uint64_t value)
{
	struct map_slot *slot;

	if ((map->used + 1) * 4 > map->capacity * 3 && !rehash(map))
		return false;
	slot = find_slot(map, key);
	if (slot->state == SLOT_EMPTY)
		map->used++;
	if (slot->state != SLOT_USED)
		map->count++;
	*slot = (struct map_slot){.key = key, .value = value, .state = SLOT_USED};
	return true;
}

bool map_add(struct map *map, uint64_t key, uint64_t number)
{
	uint64_t *value = map_get(map, key);

	if (value)
		*value += number;
	return value || map_put(map, key, number);
}

bool map_remove(struct map *map, uint64_t key)
{
	struct map_slot *slot = map->capacity ? find_slot(map, key) : NULL;

	if (!slot || slot->state != SLOT_USED)
		return false;
	slot->state = SLOT_REMOVED;
	map->count--;
	return true;
}

struct map_slot *map_next(const struct map *map, const struct map_slot *slot)
{
	size_t position = slot ? (size_t)(slot - map->slots) + 1 : 0;

	while (position < map->capacity && map->slots[position].state != SLOT_USED)
		position++;
	return position < map->capacity ? &map->slots[position] : NULL;
}

void id_table_deinit(struct id_table *table)
{
	free(table->slots);
	*table = (struct id_table){0};
}

uint64_t id_table_hash(struct id_table *table, const void *data, size_t size)
{
	if (!table->seed)
		table->seed = draw_seed(table);
	return XXH3_64bits_withSeed(data, size, table->seed);
}

uint32_t id_table_next(const struct id_table *table, uint64_t hash, size_t *position)
{
	while (table->capacity) {
		const struct id_slot *slot = &table->slots[((uint32_t)hash + *position) & (table->capacity - 1)];

		++*position;
		if (!slot->id)
			break;
		if (slot->hash == (uint32_t)hash)
			return slot->id - 1;
	}
	return ID_NONE;
}

static void put_slot(struct id_table *table, struct id_slot slot)
{
	size_t position = slot.hash & (table->capacity - 1);

	while (table->slots[position].id)
		position = (position + 1) & (table->capacity - 1);
	table->slots[position] = slot;
}

static bool enlarge(struct id_table *table)
{
	struct id_table larger = {
	    .capacity = table->capacity ? table->capacity * 2 : 16, .count = table->count, .seed = table->seed};

	larger.slots = calloc(larger.capacity, sizeof(*larger.slots));
	if (!larger.slots)
		return false;
	for (size_t i = 0; i < table->capacity; i++) {
		if (table->slots[i].id)
			put_slot(&larger, table->slots[i]);
	}
	free(table->slots);
	*table = larger;
	return true;
}

uint32_t id_table_add(struct id_table *table, uint64_t hash)
{
	if (table->count >= ID_NONE - 1 || ((table->count + 1) * 4 > table->capacity * 3 && !enlarge(table)))
		return ID_NONE;
	put_slot(table, (struct id_slot){.hash = (uint32_t)hash, .id = (uint32_t)++table->count});
	return (uint32_t)table->count - 1;
}

void intern_deinit(struct intern *intern)
{
	free(intern->bytes);
	free(intern->entries);
	id_table_deinit(&intern->by_hash);
	*intern = (struct intern){0};
}

static const uint8_t *stored(const struct intern *intern, const struct intern_entry *entry)
{
	return intern->bytes + (size_t)entry->place * WORD_BYTES;
}

static uint32_t find_entry(const struct intern *intern, uint64_t hash, const void *data, size_t size)
{
	size_t position = 0;
	uint32_t id;

	while ((id = id_table_next(&intern->by_hash, hash, &position)) != ID_NONE) {
		const struct intern_entry *entry = &intern->entries[id];

		if (entry->size == size && (!size || !memcmp(stored(intern, entry), data, size)))
			return id;
	}
	return INTERN_NONE;
}

uint64_t map_checksum(const void *data, size_t size)
{
	return XXH3_64bits(data, size);
}

uint32_t intern_find(const struct intern *intern, const void *data, size_t size)
{
	if (!intern->count)
		return INTERN_NONE;
	return find_entry(intern, XXH3_64bits_withSeed(data, size, intern->by_hash.seed), data, size);
}

uint32_t intern_put(struct intern *intern, const void *data, size_t size)
{
	uint64_t hash = id_table_hash(&intern->by_hash, data, size);
	uint32_t id = find_entry(intern, hash, data, size);
	size_t padded = (size + WORD_BYTES - 1) & ~(size_t)(WORD_BYTES - 1);

	if (id != INTERN_NONE)
		return id;
	if (size > UINT32_MAX || intern->bytes_size / WORD_BYTES > UINT32_MAX ||
	    !vector_reserve_bytes((void **)&intern->bytes, &intern->bytes_capacity, intern->bytes_size + padded + 1,
				  1) ||
	    !vector_reserve_bytes((void **)&intern->entries, &intern->capacity, intern->count + 1,
				  sizeof(*intern->entries)))
		return INTERN_NONE;
	id = id_table_add(&intern->by_hash, hash);
	if (id == ID_NONE)
		return INTERN_NONE;
	intern->entries[id] =
	    (struct intern_entry){.place = (uint32_t)(intern->bytes_size / WORD_BYTES), .size = (uint32_t)size};
	if (size)
		memcpy(intern->bytes + intern->bytes_size, data, size);
	intern->bytes_size += padded;
	intern->count++;
	return id;
}

uint32_t intern_put_string(struct intern *intern, const char *text)
{
	return intern_put(intern, text, strlen(text) + 1);
}

const void *intern_get(const struct intern *intern, uint32_t id, size_t *size_ret)
{
	const struct intern_entry *entry = &intern->entries[id];

	if (size_ret)
		*size_ret = entry->size;
	return stored(intern, entry);
}

unsigned map_library_version(void)
{
	return XXH_versionNumber();
}
