/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Sums that stop at a maximum, differences that stop at 0, and sizes of changes. */
#pragma once

#include <stdint.h>

/* At most `maximum`. */
static inline uint64_t saturating_add(uint64_t left, uint64_t right, uint64_t maximum)
{
	uint64_t sum;

	return __builtin_add_overflow(left, right, &sum) || sum > maximum ? maximum : sum;
}

/* Not below 0. */
static inline uint64_t subtract(uint64_t left, uint64_t right)
{
	return left > right ? left - right : 0;
}

/* The absolute value. */
static inline uint64_t magnitude_of(int64_t change)
{
	return change < 0 ? -(uint64_t)change : (uint64_t)change;
}
