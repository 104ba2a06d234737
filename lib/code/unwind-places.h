/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What the callbacks of the unwinder answered lately. The few hundred places that most frames return to are asked for
 * again with every sample; finding the mapping, the file and the row each time costs more than the step itself.
 */
#ifndef CODE_UNWIND_PLACES_H
#define CODE_UNWIND_PLACES_H

#include "code/unwind.h"

#define UNWIND_PLACES 4096 /* a power of two */
#define UNWIND_CALL_NOT_ASKED INT8_MIN

struct unwind_known_place {
	uint64_t address;
	const struct cfi_row *row;
	uint32_t generation; /* 0: nothing is known */
	bool is_return_address, frame_pointer;
	uint8_t kind, stub;  /* enum code_kind, enum code_stub */
	int8_t follows_call; /* or UNWIND_CALL_NOT_ASKED */
};

struct unwind_places {
	struct unwind_known_place items[UNWIND_PLACES];
};

/* Where the answer for this address is, or is to be put. */
static inline struct unwind_known_place *unwind_places_slot(struct unwind_places *places, uint64_t address,
							    bool is_return_address)
{
	uint64_t hash = (address << 1 | is_return_address) * 0x9e3779b97f4a7c15ULL;

	return &places->items[hash >> 52];
}

static inline bool unwind_place_is(const struct unwind_known_place *place, uint64_t address, bool is_return_address,
				   uint32_t generation)
{
	return place->address == address && place->generation == generation &&
	       place->is_return_address == is_return_address && generation;
}

_Static_assert(UNWIND_PLACES == 1u << (64 - 52), "the hash has as many bits");

#endif
