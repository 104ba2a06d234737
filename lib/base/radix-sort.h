/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Sorting many small numbers faster than by comparing them. */
#ifndef BASE_RADIX_SORT_H
#define BASE_RADIX_SORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct sort_key {
	uint64_t key;
	uint64_t value; /* the caller's */
};

/* By key; equal ones keep their order. False: out of memory, and nothing has changed. */
bool radix_sort(struct sort_key *items, size_t count);

#endif
