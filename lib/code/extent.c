// SPDX-License-Identifier: LGPL-2.1-or-later
#include "code/extent.h"

static uint64_t least(uint64_t left, uint64_t right)
{
	return left < right ? left : right;
}

/* From `address` on nothing is known, except that the function comes to `furthest`. */
static uint64_t guess(uint64_t start, uint64_t address, uint64_t furthest, uint64_t limit)
{
	uint64_t known = address > furthest ? address : furthest;
	uint64_t guessed = start + EXTENT_GUESSED;

	return least(known > guessed ? known : guessed, limit);
}

uint64_t extent_find(struct disassembly *disassembly, const struct epilogue_code *code, uint64_t start, uint64_t limit)
{
	uint64_t address = start, furthest = start;

	if (limit <= start || limit - start > EXTENT_MAX)
		limit = start + EXTENT_MAX;
	while (address < limit) {
		const uint8_t *bytes = NULL;
		size_t size = code->read(code->context, address, DISASSEMBLY_INSTRUCTION_MAX, &bytes);
		struct instruction instruction;

		disassembly_decode(disassembly, bytes, size, address, &instruction);
		address += instruction.size;
		if (instruction.flow == FLOW_UNKNOWN)
			return guess(start, address, furthest, limit);
		if ((instruction.kind == INSTRUCTION_JUMP || instruction.kind == INSTRUCTION_BRANCH) &&
		    instruction.target > furthest && instruction.target < limit)
			furthest = instruction.target;
		if (instruction.flow == FLOW_ENDS && address > furthest)
			break;
	}
	return least(address, limit);
}
