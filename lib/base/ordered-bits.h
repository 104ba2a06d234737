/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A set of numbers below a limit, of which the nearest one to a number is found in a few steps. */
#ifndef BASE_ORDERED_BITS_H
#define BASE_ORDERED_BITS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define ORDERED_BITS_LEVELS 6 /* of 64 each: numbers below 2^36 */
#define ORDERED_BITS_NONE SIZE_MAX

struct ordered_bits {
	uint64_t *
	    words[ORDERED_BITS_LEVELS]; /* one block, owned by the first; a bit stands for a word below that is not 0 */
	size_t levels, limit;
};

/* Numbers from 0 to limit - 1, none in the set; false: out of memory, or too large. */
bool ordered_bits_init(struct ordered_bits *bits, size_t limit);
void ordered_bits_deinit(struct ordered_bits *bits);

void ordered_bits_set(struct ordered_bits *bits, size_t number);
void ordered_bits_clear(struct ordered_bits *bits, size_t number);
bool ordered_bits_has(const struct ordered_bits *bits, size_t number);

/* The largest at or below `number`, and the smallest at or above; ORDERED_BITS_NONE: there is none. */
size_t ordered_bits_before(const struct ordered_bits *bits, size_t number);
size_t ordered_bits_after(const struct ordered_bits *bits, size_t number);

#endif
