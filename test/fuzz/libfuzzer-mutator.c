// SPDX-License-Identifier: LGPL-2.1-or-later
/* libFuzzer changes recordings with mutate-recording.c, or any bytes as it does otherwise. */
#include <string.h>

#include "mutate-recording.h"

size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t size_max);
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t size_max, unsigned seed);

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t size_max, unsigned seed)
{
	struct recording_parts *parts = seed % 8 ? recording_parts_read(data, size) : NULL;
	struct buffer mutant;
	size_t mutant_size;

	if (!parts)
		return LLVMFuzzerMutate(data, size, size_max);
	buffer_init(&mutant, 16u << 20);
	recording_parts_mutate(parts, seed, &mutant);
	recording_parts_destroy(parts);
	mutant_size = mutant.size < size_max ? mutant.size : size_max;
	memcpy(data, mutant.data, mutant_size);
	buffer_deinit(&mutant);
	return mutant_size;
}
