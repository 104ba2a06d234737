// SPDX-License-Identifier: LGPL-2.1-or-later
#include "analysis/pack-code.h"

#include <mmtrace/report.h>

#include "code/listing.h"

#define INSTRUCTIONS_MAX (2 * MMT_ANNOTATION_AROUND + 1)

/* Lines where they change. */
static struct mmt_error *find_lines(struct resolved_stacks *resolved, struct code_view *code, uint32_t frame,
				    const struct listing *listing, struct resolved_line lines[INSTRUCTIONS_MAX],
				    uint32_t *count_ret)
{
	struct resolved_line last = {.source_file = RESOLVED_NO_TEXT};
	uint32_t count = 0;

	for (size_t i = 0; i < listing->items.count && i < INSTRUCTIONS_MAX; i++) {
		uint64_t address = listing->items.items[i].address;
		struct resolved_line line = {.offset = (uint32_t)(address - listing->items.items[0].address)};
		const char *file = code_view_line(code, frame, address, &line.source_line);

		if (!resolved_stacks_put_text(resolved, file, &line.source_file))
			return &error_no_memory;
		if (line.source_file != last.source_file || line.source_line != last.source_line)
			lines[count++] = line;
		last = line;
	}
	*count_ret = count;
	return NULL;
}

static struct mmt_error *put_code(struct resolved_stacks *resolved, struct code_view *code, uint32_t frame,
				  const struct viewed_code *viewed, const struct listing *listing, uint32_t *number_ret)
{
	const struct listed_code *listed = &viewed->code;
	const struct listed_instruction *first = listing->items.items;
	const struct listed_instruction *last = first + listing->items.count - 1;
	struct resolved_line lines[INSTRUCTIONS_MAX];
	struct resolved_code kept = {.address = first->address,
				     .site = listed->site,
				     .is_return_address = listed->is_return_address,
				     .is_copy = viewed->is_copy,
				     .bytes = listed->bytes + (first->address - listed->address),
				     .size = (uint32_t)(last->address + last->size - first->address)};
	struct mmt_error *error = find_lines(resolved, code, frame, listing, lines, &kept.line_count);

	return error ? error : resolved_code_put(&resolved->codes, &kept, lines, number_ret);
}

struct mmt_error *pack_code(struct resolved_stacks *resolved, struct code_view *code, uint32_t frame,
			    uint32_t *code_ret)
{
	struct listing listing = {0};
	struct viewed_code viewed;
	struct mmt_error *error;
	uint32_t number = 0;

	*code_ret = 0;
	if (!code_view_code(code, frame, &viewed))
		return NULL;
	error = listing_create(viewed.disassembly, &viewed.code, MMT_ANNOTATION_AROUND, &listing);
	if (!error && listing.items.count) {
		error = put_code(resolved, code, frame, &viewed, &listing, &number);
		*code_ret = number + 1;
	}
	listing_deinit(&listing);
	return error;
}
