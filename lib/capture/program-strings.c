// SPDX-License-Identifier: LGPL-2.1-or-later
#include "capture/program-strings.h"

#include <elf.h>
#include <stdbool.h>
#include <string.h>

#define WORD_BYTES sizeof(uint64_t)
#define ENTRY_BYTES (2 * WORD_BYTES) /* type and value */
#define ENTRIES_MAX 128
#define GAP_BYTES_MAX 256 /* between the vector and the strings: for alignment, or words that the loader has removed */

static uint64_t read_word(const uint8_t *stack, size_t offset)
{
	uint64_t word;

	memcpy(&word, stack + offset, sizeof(word));
	return word;
}

/* The kernel writes these three entries in this order. */
static bool is_in_vector(const uint8_t *stack, size_t offset)
{
	return read_word(stack, offset) == AT_PHDR && read_word(stack, offset + ENTRY_BYTES) == AT_PHENT &&
	       read_word(stack, offset + 2 * ENTRY_BYTES) == AT_PHNUM;
}

/* The end of the vector with entries from `offset` on, and the address of its lowest string. False: cut off, or no vector.
 */
static bool find_end(const uint8_t *stack, size_t size, size_t offset, size_t *end_ret, uint64_t *string_ret)
{
	bool found = false;

	for (unsigned i = 0; i < ENTRIES_MAX && size - offset >= ENTRY_BYTES; i++, offset += ENTRY_BYTES) {
		uint64_t type = read_word(stack, offset);

		if (type == AT_RANDOM) {
			*string_ret = read_word(stack, offset + WORD_BYTES);
			found = true;
		}
		if (type == AT_NULL) {
			*end_ret = offset + ENTRY_BYTES;
			return found;
		}
	}
	return false;
}

size_t program_strings_find(const uint8_t *stack, size_t size, uint64_t address)
{
	size_t end;
	uint64_t string;

	for (size_t offset = -address % WORD_BYTES; offset + 3 * ENTRY_BYTES <= size; offset += WORD_BYTES) {
		if (!is_in_vector(stack, offset) || !find_end(stack, size, offset, &end, &string))
			continue;
		/* The strings of a copy of the vector are far away. */
		if (string - (address + end) < GAP_BYTES_MAX)
			return string - address < size ? (size_t)(string - address) : size;
	}
	return size;
}
