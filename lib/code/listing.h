/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Instructions around one of them, as text. */
#ifndef CODE_LISTING_H
#define CODE_LISTING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "base/vector.h"
#include "code/disassembly.h"

/* What is disassembled: bytes, and the address of the first, where an instruction should begin. */
struct listed_code {
	const uint8_t *bytes;
	size_t size;
	uint64_t address;
	uint64_t site; /* the instruction, or with `is_return_address` the one behind the call */
	bool is_return_address;
};

struct listed_instruction {
	uint64_t address;
	uint8_t size; /* bytes */
	bool here;    /* the call, or the instruction itself */
	char text[DISASSEMBLY_TEXT];
};

struct listing {
	VECTOR(struct listed_instruction) items;
	size_t decoded; /* how many instructions were, to find them */
};

/*
 * At most `around` instructions before the one meant, and as many behind. Empty when the architecture is not known, or
 * no instruction begins or ends at the site. What is listed is listed again from its own bytes alone, for up to eight
 * around.
 */
struct mmt_error *listing_create(struct disassembly *disassembly, const struct listed_code *code, size_t around,
				 struct listing *listing_ret) MMT_MUST_CHECK;
void listing_deinit(struct listing *listing);

#endif
