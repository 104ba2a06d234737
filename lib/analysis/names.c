// SPDX-License-Identifier: LGPL-2.1-or-later
#include "analysis/names.h"

#include <string.h>

/* Interned, so without padding. */
struct frame_name {
	uint64_t place; /* of a frame without function: where it is */
	uint32_t module, function, source_file, source_line;
	uint32_t kind, inlined;
};

void names_deinit(struct names *names)
{
	intern_deinit(&names->strings);
	intern_deinit(&names->frames);
	intern_deinit(&names->stacks);
}

static uint32_t put_string(struct names *names, const char *text, bool *failed)
{
	uint32_t number = intern_put_string(&names->strings, text ? text : "");

	*failed |= number == INTERN_NONE;
	return number;
}

uint32_t names_frame(struct names *names, const struct mmt_frame *frame)
{
	bool failed = false;
	struct frame_name name = {
	    .module = put_string(names, frame->module, &failed),
	    .function = put_string(names, frame->function, &failed),
	    .source_file = put_string(names, frame->source_file, &failed),
	    .source_line = frame->source_line,
	    .kind = frame->kind,
	    .inlined = frame->inlined,
	};

	if (failed)
		return NAMES_NONE;
	if (!frame->function)
		name.place = frame->kind == MMT_FRAME_NATIVE ? frame->module_offset : frame->address;
	return intern_put(&names->frames, &name, sizeof(name));
}

uint32_t names_stack(struct names *names, const uint32_t *frames, size_t count)
{
	return intern_put(&names->stacks, frames, count * sizeof(*frames));
}
