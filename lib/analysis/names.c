// SPDX-License-Identifier: LGPL-2.1-or-later
#include "analysis/names.h"

#include <string.h>

void names_deinit(struct names *names)
{
	id_table_deinit(&names->by_hash);
	vector_deinit(&names->keys);
	intern_deinit(&names->stacks);
}

/* Where a frame without function is. */
static uint64_t place_of(const struct names *names, const struct mmt_frame *frame)
{
	if (frame->function)
		return 0;
	if (frame->kind == MMT_FRAME_NATIVE)
		return frame->module_offset;
	return names->anywhere ? 0 : frame->address;
}

static uint64_t hash_text(struct names *names, const char *text)
{
	return id_table_hash(&names->by_hash, text, text ? strlen(text) : 0);
}

static uint64_t hash_frame(struct names *names, const struct mmt_frame *frame)
{
	uint64_t key[] = {place_of(names, frame), hash_text(names, frame->module), hash_text(names, frame->function),
			  hash_text(names, frame->source_file),
			  (uint64_t)frame->source_line << 32 | (uint64_t)frame->kind << 1 | frame->inlined};

	return id_table_hash(&names->by_hash, key, sizeof(key));
}

static bool same_text(const char *left, const char *right)
{
	return left == right || !strcmp(left ? left : "", right ? right : "");
}

static bool is_same(const struct names *names, const struct mmt_frame *left, const struct mmt_frame *right)
{
	return left->kind == right->kind && left->inlined == right->inlined &&
	       left->source_line == right->source_line && place_of(names, left) == place_of(names, right) &&
	       same_text(left->module, right->module) && same_text(left->function, right->function) &&
	       same_text(left->source_file, right->source_file);
}

uint32_t names_frame(struct names *names, const struct mmt_frame *frame, uint64_t key)
{
	uint64_t hash = hash_frame(names, frame);
	size_t position = 0;
	uint32_t number;

	while ((number = id_table_next(&names->by_hash, hash, &position)) != ID_NONE) {
		const struct mmt_frame *known = names->look_up(names->context, names->keys.items[number]);

		if (!known)
			return NAMES_NONE;
		if (is_same(names, known, frame))
			return number;
	}
	if (!vector_push(&names->keys, key))
		return NAMES_NONE;
	return id_table_add(&names->by_hash, hash);
}

uint32_t names_stack(struct names *names, const uint32_t *frames, size_t count)
{
	return intern_put(&names->stacks, frames, count * sizeof(*frames));
}
