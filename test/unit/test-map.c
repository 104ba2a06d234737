// SPDX-License-Identifier: LGPL-2.1-or-later
#include <check.h>
#include <stdio.h>
#include <string.h>

#include "base/map.h"
#include "support/suite.h"

#define MANY 20000u

/* Spreads, so that keys are not in the order of insertion; odd multipliers lose no bits. */
static uint64_t make_key(uint64_t number)
{
	return number * 0x9e3779b97f4a7c15ULL;
}

START_TEST(values_are_stored_found_and_replaced)
{
	struct map map = {0};

	ck_assert_ptr_null(map_get(&map, 0));
	ck_assert(!map_remove(&map, 0));
	for (uint64_t i = 0; i < MANY; i++)
		ck_assert(map_put(&map, make_key(i), i));
	for (uint64_t i = 0; i < MANY; i += 2)
		ck_assert(map_put(&map, make_key(i), i + 1));
	ck_assert_uint_eq(map.count, MANY);
	for (uint64_t i = 0; i < MANY; i++) {
		ck_assert_ptr_nonnull(map_get(&map, make_key(i)));
		ck_assert_uint_eq(*map_get(&map, make_key(i)), i % 2 ? i : i + 1);
	}
	ck_assert_ptr_null(map_get(&map, make_key(MANY)));
	map_deinit(&map);
}
END_TEST

START_TEST(removal_keeps_the_map_small)
{
	struct map map = {0};

	for (uint64_t i = 0; i < MANY; i++) {
		ck_assert(map_put(&map, make_key(i), i));
		if (i >= 16)
			ck_assert(map_remove(&map, make_key(i - 16)));
	}
	ck_assert_uint_eq(map.count, 16);
	ck_assert_uint_lt(map.capacity, 1024);
	ck_assert_ptr_null(map_get(&map, make_key(0)));
	ck_assert_uint_eq(*map_get(&map, make_key(MANY - 1)), MANY - 1);
	map_deinit(&map);
}
END_TEST

START_TEST(iteration_returns_each_key_once)
{
	struct map map = {0};
	uint64_t sum = 0, seen = 0;

	for (uint64_t i = 1; i <= 1000; i++)
		ck_assert(map_put(&map, make_key(i), i));
	ck_assert(map_remove(&map, make_key(500)));
	map_each(slot, &map, true) {
		ck_assert_uint_eq(slot->key, make_key(slot->value));
		sum += slot->value;
		seen++;
	}
	ck_assert_uint_eq(seen, 999);
	ck_assert_uint_eq(sum, 1000 * 1001 / 2 - 500);
	map_deinit(&map);
}
END_TEST

START_TEST(equal_bytes_have_one_id)
{
	struct intern intern = {0};
	size_t size;

	ck_assert_uint_eq(intern_find(&intern, "a", 1), INTERN_NONE);
	ck_assert_uint_eq(intern_put_string(&intern, "first"), 0);
	ck_assert_uint_eq(intern_put_string(&intern, "second"), 1);
	ck_assert_uint_eq(intern_put_string(&intern, "first"), 0);
	ck_assert_uint_eq(intern_put(&intern, "first", 5), 2);
	ck_assert_uint_eq(intern_put(&intern, NULL, 0), 3);
	ck_assert_uint_eq(intern_put(&intern, "", 0), 3);
	ck_assert_uint_eq(intern_find(&intern, "second", 7), 1);
	ck_assert_str_eq(intern_get(&intern, 1, &size), "second");
	ck_assert_uint_eq(size, 7);
	intern_deinit(&intern);
}
END_TEST

START_TEST(interned_bytes_survive_growth)
{
	struct intern intern = {0};

	for (uint32_t i = 0; i < MANY; i++)
		ck_assert_uint_eq(intern_put(&intern, &i, sizeof(i)), i);
	for (uint32_t i = 0; i < MANY; i++) {
		size_t size;
		const void *stored = intern_get(&intern, i, &size);

		ck_assert_uint_eq(size, sizeof(i));
		ck_assert_mem_eq(stored, &i, sizeof(i));
		ck_assert_uint_eq((uintptr_t)stored % 8, 0);
	}
	intern_deinit(&intern);
}
END_TEST

/* The longest run of used slots: the maximum cost of a lookup. */
static size_t longest_run(const struct map *map)
{
	size_t longest = 0, run = 0;

	for (size_t i = 0; i < 2 * map->capacity; i++) {
		run = map->slots[i & (map->capacity - 1)].state ? run + 1 : 0;
		longest = run > longest ? run : longest;
	}
	return longest;
}

static uint64_t inverse(uint64_t odd)
{
	uint64_t result = odd;

	for (int i = 0; i < 5; i++)
		result *= 2 - odd * result;
	return result;
}

/* The owner of this hash, apart from the seed. */
static uint64_t unspread(uint64_t hash)
{
	hash = (hash ^ hash >> 33) * inverse(0xc4ceb9fe1a85ec53ULL);
	hash = (hash ^ hash >> 33) * inverse(0xff51afd7ed558ccdULL);
	return hash ^ hash >> 33;
}

/* Keys made to collide: without a seed, and with that of another map. */
START_TEST(chosen_keys_collide_only_in_their_map)
{
	struct map maps[3] = {0};
	uint64_t first_seed;

	ck_assert(map_put(&maps[0], 0, 0));
	first_seed = maps[0].seed;
	map_deinit(&maps[0]);
	ck_assert(map_put(&maps[0], 0, 0));
	ck_assert_uint_ne(maps[0].seed, first_seed);
	for (uint64_t i = 0; i < 4000; i++) {
		ck_assert(map_put(&maps[0], unspread(i << 20) ^ maps[0].seed, i));
		ck_assert(map_put(&maps[1], unspread(i << 20) ^ maps[0].seed, i));
		ck_assert(map_put(&maps[2], unspread(i << 20), i));
	}
	ck_assert_uint_ge(longest_run(&maps[0]), 4000);
	ck_assert_uint_lt(longest_run(&maps[1]), 500);
	ck_assert_uint_lt(longest_run(&maps[2]), 500);
	for (size_t i = 0; i < 3; i++)
		map_deinit(&maps[i]);
}
END_TEST

/* All of these have the same hash without a seed: the products of the first words are 0. */
START_TEST(chosen_strings_have_different_hashes)
{
	struct intern interns[2] = {0};
	char text[] = "\xb8\xfe\x6c\x39\x23\xa4\x4b\xbe........................";
	struct map seen = {0};

	for (unsigned i = 0; i < 1000; i++) {
		snprintf(text + 8, 8, "%07x", i);
		ck_assert_uint_eq(intern_put(&interns[0], text, 31), i);
		ck_assert_uint_eq(intern_put(&interns[1], text, 31), i);
		ck_assert_uint_eq(intern_find(&interns[0], text, 31), i);
	}
	ck_assert_uint_ne(interns[0].by_hash.seed, interns[1].by_hash.seed);
	for (size_t i = 0; i < 2; i++) {
		for (size_t j = 0; j < interns[i].by_hash.capacity; j++) {
			if (interns[i].by_hash.slots[j].id)
				ck_assert(map_put(&seen, interns[i].by_hash.slots[j].hash, 1));
		}
		intern_deinit(&interns[i]);
	}
	/* Out of 2000, in 32 bits. */
	ck_assert_uint_gt(seen.count, 1990);
	map_deinit(&seen);
}
END_TEST

START_TEST(checksum_never_changes)
{
	ck_assert_uint_eq(map_checksum("mmtrace", 7), 0x795bf8d0aa24e45eULL);
}
END_TEST

Suite *test_suite(void)
{
	Suite *suite = suite_create("map");
	TCase *cases = add_tcase(suite, "map and intern");

	tcase_add_tests(cases, values_are_stored_found_and_replaced, removal_keeps_the_map_small,
			iteration_returns_each_key_once, equal_bytes_have_one_id, interned_bytes_survive_growth,
			chosen_keys_collide_only_in_their_map, chosen_strings_have_different_hashes,
			checksum_never_changes);
	return suite;
}
