// SPDX-License-Identifier: LGPL-2.1-or-later
#include "base/vector.h"

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

void vector_trim_bytes(void **items, size_t *capacity, size_t count, size_t element_size)
{
	void *moved = count && count < *capacity ? realloc(*items, count * element_size) : NULL;

	if (!moved)
		return;
	*items = moved;
	*capacity = count;
}
