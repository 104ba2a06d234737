/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Sums of 64-bit numbers that may exceed 64 bits. */
#ifndef BASE_WIDE_SUM_H
#define BASE_WIDE_SUM_H

#include <stdint.h>

/* Zero-initialise an empty sum. Packed, because reports keep four of them per thread. */
struct wide_sum {
	uint64_t low;
	uint32_t high; /* how many times `low` has wrapped */
} __attribute__((packed, aligned(4)));

/* Adds `number`; a number with its highest bit set is negative (two's complement) and is subtracted. */
static inline void wide_sum_add(struct wide_sum *sum, uint64_t number)
{
	uint64_t low;

	if (number >> 63)
		sum->high -= __builtin_sub_overflow(sum->low, -number, &low);
	else
		sum->high += __builtin_add_overflow(sum->low, number, &low);
	sum->low = low;
}

/* The sum, but at most `maximum`. */
static inline uint64_t wide_sum_get(const struct wide_sum *sum, uint64_t maximum)
{
	return sum->high || sum->low > maximum ? maximum : sum->low;
}

static inline uint64_t saturating_add(uint64_t left, uint64_t right, uint64_t maximum)
{
	uint64_t sum;

	return __builtin_add_overflow(left, right, &sum) || sum > maximum ? maximum : sum;
}

#endif
