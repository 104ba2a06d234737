// SPDX-License-Identifier: LGPL-2.1-or-later
#include "analysis/annotate.h"

#include <string.h>

#include "base/cleanup.h"
#include "code/listing.h"

static struct mmt_error *describe_instruction(struct code_view *code, struct arena *arena, uint32_t frame,
					      const struct listed_instruction *listed,
					      struct mmt_instruction *instruction)
{
	const char *file = code_view_line(code, frame, listed->address, &instruction->source_line);

	instruction->address = listed->address;
	instruction->here = listed->here;
	instruction->text = arena_string(arena, listed->text);
	instruction->source_file = file ? arena_string(arena, file) : NULL;
	return instruction->text && (!file || instruction->source_file) ? NULL : &error_no_memory;
}

struct mmt_error *annotate_frame(struct code_view *code, struct arena *arena, const struct mmt_frame *frame,
				 size_t around, bool ends_early, struct mmt_annotation *annotation_ret)
{
	struct mmt_instruction *instructions;
	struct listing listing = {0};
	struct viewed_code viewed;
	struct mmt_error *error;

	*annotation_ret = (struct mmt_annotation){.frame = frame};
	annotation_ret->left_out = code_view_code_left_out(code);
	if (!frame->code || !code_view_code(code, frame->code - 1, &viewed))
		return NULL;
	if (viewed.is_copy && ends_early)
		return NULL;
	error = listing_create(viewed.disassembly, &viewed.code, around, &listing);
	if (error)
		return error;
	instructions = arena_alloc(arena, listing.items.count, sizeof(*instructions));
	error = instructions ? NULL : &error_no_memory;
	for (size_t i = 0; !error && i < listing.items.count; i++)
		error = describe_instruction(code, arena, frame->code - 1, &listing.items.items[i], &instructions[i]);
	if (!error) {
		annotation_ret->is_copy = viewed.is_copy;
		annotation_ret->instructions = instructions;
		annotation_ret->instruction_count = listing.items.count;
	}
	listing_deinit(&listing);
	return error;
}
