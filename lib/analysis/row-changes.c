// SPDX-License-Identifier: LGPL-2.1-or-later
#include "analysis/row-changes.h"

#include <string.h>

void row_changes_deinit(struct row_changes *changes)
{
	vector_deinit(&changes->items);
}

const struct row_change *row_changes_first(const struct row_changes *changes)
{
	return row_changes_count(changes) ? &changes->items.items[changes->first] : NULL;
}

/* What is done goes when it is half of all, so that each change is copied once on average. */
void row_changes_remove_first(struct row_changes *changes)
{
	size_t left;

	changes->first++;
	left = row_changes_count(changes);
	if (left > changes->first)
		return;
	if (left)
		memmove(changes->items.items, changes->items.items + changes->first,
			left * sizeof(*changes->items.items));
	changes->done += changes->first;
	changes->items.count = left;
	changes->first = 0;
}

uint64_t row_changes_add(struct row_changes *changes, const struct row_change *change)
{
	return vector_push(&changes->items, *change) ? changes->done + changes->items.count : 0;
}

void row_changes_tell(struct row_changes *changes, uint64_t last, uint32_t row)
{
	for (uint64_t number = last; number;) {
		struct row_change *change = &changes->items.items[number - 1 - changes->done];

		change->birth = 0;
		change->row = row;
		number = change->previous;
	}
}
