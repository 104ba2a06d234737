// SPDX-License-Identifier: LGPL-2.1-or-later
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "base/vector.h"
#include "support/suite.h"

#define MANY 20000u

static int compare_keys(const void *left, const void *right)
{
	const struct sort_key *a = left, *b = right;

	if (a->key != b->key)
		return a->key < b->key ? -1 : 1;
	return (a->value > b->value) - (a->value < b->value);
}

/* Numbers the values, so that only one order by key and value is right. */
static void check_sort(struct sort_key *items, size_t count)
{
	struct sort_key *expected = malloc((count + 1) * sizeof(*expected));

	ck_assert_ptr_nonnull(expected);
	for (size_t i = 0; i < count; i++)
		items[i].value = i;
	memcpy(expected, items, count * sizeof(*items));
	qsort(expected, count, sizeof(*expected), compare_keys);
	ck_assert(radix_sort(items, count));
	for (size_t i = 0; i < count; i++) {
		ck_assert_uint_eq(items[i].key, expected[i].key);
		ck_assert_uint_eq(items[i].value, expected[i].value);
	}
	free(expected);
}

static uint64_t next_random(uint64_t *state)
{
	*state = *state * 6364136223846793005u + 1442695040888963407u;
	return *state ^ *state >> 29;
}

START_TEST(random_keys_of_any_width)
{
	static struct sort_key items[MANY];
	uint64_t state = 1;

	for (unsigned bits = 1; bits <= 64; bits++) {
		for (size_t i = 0; i < MANY; i++)
			items[i].key = next_random(&state) >> (64 - bits);
		check_sort(items, bits % 8 ? 1000 : MANY);
	}
}
END_TEST

START_TEST(equal_keys_keep_their_order)
{
	static struct sort_key items[MANY];

	for (size_t i = 0; i < MANY; i++)
		items[i].key = (i * 7919) % 10 << 40;
	check_sort(items, MANY);
	for (size_t i = 0; i < MANY; i++)
		items[i].key = 0x7f1234567890;
	check_sort(items, MANY);
}
END_TEST

START_TEST(zero_and_one_item)
{
	struct sort_key item = {.key = UINT64_MAX};

	ck_assert(radix_sort(NULL, 0));
	check_sort(&item, 0);
	check_sort(&item, 1);
	ck_assert_uint_eq(item.key, UINT64_MAX);
}
END_TEST

START_TEST(extremes)
{
	struct sort_key items[2 + 2 * 64];
	size_t count = 0;

	items[count++].key = UINT64_MAX;
	items[count++].key = 0;
	for (unsigned bit = 0; bit < 64; bit++) {
		items[count++].key = UINT64_C(1) << (63 - bit);
		items[count++].key = UINT64_MAX << bit;
	}
	check_sort(items, count);
	for (unsigned bit = 0; bit < 64; bit++) {
		struct sort_key two[] = {{.key = UINT64_C(1) << bit}, {.key = 0}};

		check_sort(two, 2);
	}
}
END_TEST

/* All lengths up to 17, and every number of items that satisfy the condition. */
START_TEST(partition_point_counts_what_comes_first)
{
	for (size_t count = 0; count <= 17; count++) {
		for (size_t first = 0; first <= count; first++)
			ck_assert_uint_eq(partition_point(count, i, i < first), first);
	}
}
END_TEST

Suite *test_suite(void)
{
	Suite *suite = suite_create("sort");
	TCase *tcase = add_tcase(suite, "radix-sort");

	tcase_add_tests(tcase, random_keys_of_any_width, equal_keys_keep_their_order, zero_and_one_item, extremes,
			partition_point_counts_what_comes_first);
	return suite;
}
