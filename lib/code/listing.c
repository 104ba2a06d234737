// SPDX-License-Identifier: LGPL-2.1-or-later
#include "code/listing.h"

/*
 * So far before the site decoding begins, where the function does not begin behind that: after a few instructions,
 * decoding from any byte falls into step with the true ones. However long a function is, a listing costs no more than
 * these bytes. Eight of the longest instructions are within them: where these begin the code, none of them is left out.
 */
#define LOOK_BACK_BYTES 128

/* Where instructions begin before the site, the last one ending there: offsets in the code. */
struct approach {
	size_t first; /* the earliest beginning there can be */
	bool tried[LOOK_BACK_BYTES];
	size_t starts[LOOK_BACK_BYTES];
	size_t count;
};

void listing_deinit(struct listing *listing)
{
	vector_deinit(&listing->items);
}

/*
 * Decode from `start` on; true: an instruction ends at `site`. Two ways that meet go on as one, so each beginning is
 * tried once only.
 */
static bool find_approach(struct disassembly *disassembly, const struct listed_code *code, size_t start, size_t site,
			  struct approach *approach, size_t *decoded)
{
	size_t offset = start;

	approach->count = 0;
	while (offset < site && !approach->tried[offset - approach->first]) {
		size_t length = disassembly_text(disassembly, code->bytes + offset, code->size - offset, 0, NULL);

		(*decoded)++;
		if (!length)
			return false;
		approach->tried[offset - approach->first] = true;
		approach->starts[approach->count++] = offset;
		offset += length;
	}
	return offset == site;
}

/* From an offset on, with as many behind the one meant. */
static struct mmt_error *list(struct disassembly *disassembly, const struct listed_code *code, size_t offset,
			      size_t around, struct listing *listing)
{
	bool found = false;
	size_t behind = 0;

	while (offset < code->size && behind < around) {
		struct listed_instruction next = {.address = code->address + offset};
		size_t length =
		    disassembly_text(disassembly, code->bytes + offset, code->size - offset, next.address, next.text);

		listing->decoded++;
		if (!length)
			break;
		next.size = (uint8_t)length;
		next.here = (code->is_return_address ? next.address + length : next.address) == code->site;
		behind += found;
		found |= next.here;
		if (!vector_push(&listing->items, next))
			return &error_no_memory;
		offset += length;
	}
	return NULL;
}

struct mmt_error *listing_create(struct disassembly *disassembly, const struct listed_code *code, size_t around,
				 struct listing *listing_ret)
{
	size_t site = (size_t)(code->site - code->address), kept = around + code->is_return_address;
	struct approach approach = {0};
	struct mmt_error *error;
	bool found = false;

	*listing_ret = (struct listing){0};
	if (code->site < code->address || code->site - code->address > code->size || !code->size ||
	    (code->is_return_address ? !site : site == code->size))
		return NULL;
	approach.first = site > LOOK_BACK_BYTES ? site - LOOK_BACK_BYTES : 0;
	for (size_t start = approach.first; start <= site - code->is_return_address && !found; start++)
		found = find_approach(disassembly, code, start, site, &approach, &listing_ret->decoded);
	if (!found)
		return NULL;
	kept = kept < approach.count ? kept : approach.count;
	error = list(disassembly, code, kept ? approach.starts[approach.count - kept] : site, around, listing_ret);
	if (error)
		listing_deinit(listing_ret);
	return error;
}
