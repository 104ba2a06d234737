// SPDX-License-Identifier: LGPL-2.1-or-later
#include "base/ordered-bits.h"

#include <stdlib.h>

static size_t words_for(size_t bits)
{
	return bits / 64 + (bits % 64 != 0);
}

bool ordered_bits_init(struct ordered_bits *bits, size_t limit)
{
	size_t sizes[ORDERED_BITS_LEVELS], total = 0, left = limit ? limit : 1;

	*bits = (struct ordered_bits){.limit = limit};
	do {
		if (bits->levels == ORDERED_BITS_LEVELS)
			return false;
		left = words_for(left);
		sizes[bits->levels++] = left;
		total += left;
	} while (left > 1);
	bits->words[0] = calloc(total, sizeof(**bits->words));
	for (size_t i = 1; bits->words[0] && i < bits->levels; i++)
		bits->words[i] = bits->words[i - 1] + sizes[i - 1];
	return bits->words[0] != NULL;
}

void ordered_bits_deinit(struct ordered_bits *bits)
{
	free(bits->words[0]);
	*bits = (struct ordered_bits){0};
}

void ordered_bits_set(struct ordered_bits *bits, size_t number)
{
	for (size_t level = 0; level < bits->levels; level++, number /= 64)
		bits->words[level][number / 64] |= 1ULL << number % 64;
}

void ordered_bits_clear(struct ordered_bits *bits, size_t number)
{
	for (size_t level = 0; level < bits->levels; level++, number /= 64) {
		bits->words[level][number / 64] &= ~(1ULL << number % 64);
		if (bits->words[level][number / 64])
			break;
	}
}

bool ordered_bits_has(const struct ordered_bits *bits, size_t number)
{
	return number < bits->limit && bits->words[0][number / 64] >> number % 64 & 1;
}

static size_t highest(uint64_t word)
{
	return 63 - (size_t)__builtin_clzll(word);
}

static size_t lowest(uint64_t word)
{
	return (size_t)__builtin_ctzll(word);
}

size_t ordered_bits_before(const struct ordered_bits *bits, size_t number)
{
	size_t level = 0;
	uint64_t word;

	if (!bits->limit)
		return ORDERED_BITS_NONE;
	if (number >= bits->limit)
		number = bits->limit - 1;
	/* Up, until a word has one at or below; above the lowest level the bit itself was looked at already. */
	word = bits->words[0][number / 64] & UINT64_MAX >> (63 - number % 64);
	while (!word) {
		number /= 64;
		if (++level == bits->levels)
			return ORDERED_BITS_NONE;
		word = bits->words[level][number / 64] & ((1ULL << number % 64) - 1);
	}
	number = number / 64 * 64 + highest(word);
	while (level-- > 0)
		number = number * 64 + highest(bits->words[level][number]);
	return number;
}

size_t ordered_bits_after(const struct ordered_bits *bits, size_t number)
{
	size_t level = 0;
	uint64_t word;

	if (number >= bits->limit)
		return ORDERED_BITS_NONE;
	word = bits->words[0][number / 64] & UINT64_MAX << number % 64;
	while (!word) {
		number /= 64;
		if (++level == bits->levels)
			return ORDERED_BITS_NONE;
		word = number % 64 == 63 ? 0 : bits->words[level][number / 64] & UINT64_MAX << (number % 64 + 1);
	}
	number = number / 64 * 64 + lowest(word);
	while (level-- > 0)
		number = number * 64 + lowest(bits->words[level][number]);
	return number;
}
