// SPDX-License-Identifier: LGPL-2.1-or-later
#include "trace/callchain-numbers.h"

#include <stdlib.h>
#include <string.h>

#include "base/map.h"

#define PLACES 16384  /* a power of two */
#define TRIES 4	      /* places where one may stand */
#define COUNT_MAX 256 /* so that there is a limit to what all of them take: 32 MiB */

struct place {
	uint64_t hash, number; /* number 0: free */
	uint64_t *callchain;
	uint32_t count;
};

struct callchain_numbers {
	uint64_t last;
	struct id_table hashing; /* for its seed alone */
	struct place places[PLACES];
};

struct mmt_error *callchain_numbers_create(struct callchain_numbers **numbers_ret)
{
	*numbers_ret = calloc(1, sizeof(**numbers_ret));
	return *numbers_ret ? NULL : &error_no_memory;
}

void callchain_numbers_destroy(struct callchain_numbers *numbers)
{
	if (!numbers)
		return;
	for (size_t i = 0; i < PLACES; i++)
		free(numbers->places[i].callchain);
	free(numbers);
}

static uint64_t enter(struct callchain_numbers *numbers, struct place *place, uint64_t hash, const uint64_t *callchain,
		      size_t count)
{
	uint64_t *copy = realloc(place->callchain, count * sizeof(*copy));

	if (!copy)
		return 0;
	memcpy(copy, callchain, count * sizeof(*copy));
	*place = (struct place){.hash = hash, .number = ++numbers->last, .callchain = copy, .count = (uint32_t)count};
	return place->number;
}

uint64_t callchain_numbers_find(struct callchain_numbers *numbers, const uint64_t *callchain, size_t count,
				uint64_t *hash_ret)
{
	uint64_t hash;

	if (!count || count > COUNT_MAX)
		return 0;
	*hash_ret = hash = id_table_hash(&numbers->hashing, callchain, count * sizeof(*callchain));
	for (size_t i = 0; i < TRIES; i++) {
		const struct place *place = &numbers->places[(hash + i) & (PLACES - 1)];

		if (!place->number)
			return 0;
		if (place->hash == hash && place->count == count &&
		    !memcmp(place->callchain, callchain, count * sizeof(*callchain)))
			return place->number;
	}
	return 0;
}

uint64_t callchain_numbers_add(struct callchain_numbers *numbers, const uint64_t *callchain, size_t count,
			       uint64_t hash)
{
	/* The others stay for a while: which one goes follows from the newcomer. */
	struct place *place = &numbers->places[(hash + (hash >> 32) % TRIES) & (PLACES - 1)];

	if (!count || count > COUNT_MAX)
		return 0;
	for (size_t i = TRIES; i-- > 0;) {
		struct place *free_one = &numbers->places[(hash + i) & (PLACES - 1)];

		if (!free_one->number)
			place = free_one;
	}
	return enter(numbers, place, hash, callchain, count);
}
