// SPDX-License-Identifier: LGPL-2.1-or-later
#include "base/vector.h"

#include <stdlib.h>
#include <string.h>

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
	if (!moved)
		return false;
	*items = moved;
	*capacity = larger;
	return true;
}

void vector_trim_bytes(void **items, size_t *capacity, size_t count, size_t element_size)
{
	void *moved = count && count < *capacity ? realloc(*items, count * element_size) : NULL;

	if (!moved)
		return;
	*items = moved;
	*capacity = count;
}

void *vector_zero(void *element, size_t size)
{
	return memset(element, 0, size);
}

void vector_free(void *items)
{
	free(items);
}

#define DIGIT_BITS 11
#define DIGITS (1u << DIGIT_BITS)

static unsigned digit_of(uint64_t key, unsigned shift)
{
	return key >> shift & (DIGITS - 1);
}

static void sort_by_digit(const struct sort_key *from, struct sort_key *to, size_t count, unsigned shift)
{
	size_t starts[DIGITS] = {0}, start = 0;

	for (size_t i = 0; i < count; i++)
		starts[digit_of(from[i].key, shift)]++;
	for (unsigned digit = 0; digit < DIGITS; digit++) {
		size_t number = starts[digit];

		starts[digit] = start;
		start += number;
	}
	for (size_t i = 0; i < count; i++)
		to[starts[digit_of(from[i].key, shift)]++] = from[i];
}

bool radix_sort(struct sort_key *items, size_t count)
{
	struct sort_key *room = calloc(count + 1, sizeof(*room)), *from = items, *to = room;
	uint64_t different = 0;

	if (!room)
		return false;
	for (size_t i = 1; i < count; i++)
		different |= items[i].key ^ items[0].key;
	for (unsigned shift = 0; shift < 64; shift += DIGIT_BITS) {
		struct sort_key *sorted = to;

		if (!digit_of(different, shift))
			continue;
		sort_by_digit(from, to, count, shift);
		to = from;
		from = sorted;
	}
	if (from != items)
		memcpy(items, from, count * sizeof(*items));
	free(room);
	return true;
}
