/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Radix sort: faster than a comparison sort for many small numbers. */
#ifndef BASE_RADIX_SORT_H
#define BASE_RADIX_SORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct sort_key {
	uint64_t key;
	uint64_t value; /* not interpreted */
};

/* Stable sort by key. False: out of memory, and the items are unchanged. */
bool radix_sort(struct sort_key *items, size_t count);

#endif
