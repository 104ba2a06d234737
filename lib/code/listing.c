// SPDX-License-Identifier: LGPL-2.1-or-later
#include "code/listing.h"

#include <string.h>

/* Instructions of unknown beginning are looked for so far before the site: after a few, decoding from any byte falls
 * into step with the true ones. */
#define SYNCHRONISING_BYTES 96
#define FUNCTION_BYTES_MAX (1u << 20) /* of a function before the site, decoded from its start */

void listing_deinit(struct listing *listing)
{
	vector_deinit(&listing->items);
}

static bool is_site(const struct listed_code *code, uint64_t start, uint64_t end)
{
	return code->is_return_address ? end == code->site : start == code->site;
}

/* Drops instructions from the front so that no more than `count` are left. */
static void keep_last(struct listing *listing, size_t count)
{
	size_t dropped = listing->items.count > count ? listing->items.count - count : 0;

	if (!dropped)
		return;
	listing->items.count -= dropped;
	memmove(listing->items.items, listing->items.items + dropped,
		listing->items.count * sizeof(*listing->items.items));
}

/* Decode from `offset` on; *found_ret: the site was met. Without it the listing is of no use. */
static struct mmt_error *decode(struct disassembly *disassembly, const struct listed_code *code, size_t offset,
				size_t around, struct listing *listing, bool *found_ret)
{
	size_t behind = 0;

	*found_ret = false;
	listing->items.count = 0;
	while (offset < code->size && behind < around) {
		struct listed_instruction next = {.address = code->address + offset};
		size_t length =
		    disassembly_text(disassembly, code->bytes + offset, code->size - offset, next.address, next.text);

		if (!length)
			break;
		next.size = (uint8_t)length;
		behind += *found_ret;
		next.here = !*found_ret && is_site(code, next.address, next.address + length);
		*found_ret |= next.here;
		if (!*found_ret && next.address > code->site)
			break;
		if (!vector_push(&listing->items, next))
			return &error_no_memory;
		if (!*found_ret && listing->items.count > 2 * around + 64)
			keep_last(listing, around);
		else if (next.here)
			keep_last(listing, around + 1);
		offset += length;
	}
	return NULL;
}

struct mmt_error *listing_create(struct disassembly *disassembly, const struct listed_code *code, size_t around,
				 struct listing *listing_ret)
{
	struct listing listing = {0};
	struct mmt_error *error = NULL;
	uint64_t before = code->site - code->address;
	bool found = false;

	*listing_ret = listing;
	if (code->site < code->address || before > code->size)
		return NULL;
	if (code->begins_with_instruction && before <= FUNCTION_BYTES_MAX)
		error = decode(disassembly, code, 0, around, &listing, &found);
	for (size_t back = before < SYNCHRONISING_BYTES ? (size_t)before : SYNCHRONISING_BYTES; !error && !found;
	     back--) {
		error = decode(disassembly, code, (size_t)before - back, around, &listing, &found);
		if (!back)
			break;
	}
	if (error || !found)
		listing_deinit(&listing);
	else
		*listing_ret = listing;
	return error;
}
