// SPDX-License-Identifier: LGPL-2.1-or-later
#include "analysis/replay/row-history.h"

#include <string.h>

void row_changes_deinit(struct row_changes *changes)
{
	vector_deinit(&changes->items);
}

const struct row_change *row_changes_first(const struct row_changes *changes)
{
	return row_changes_count(changes) ? &changes->items.items[changes->first] : NULL;
}

/* Drop applied changes when they are half of the items, so that each change is copied once on average. */
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

void row_changes_resolve(struct row_changes *changes, uint64_t last, uint32_t row)
{
	for (uint64_t number = last; number;) {
		struct row_change *change = &changes->items.items[number - 1 - changes->done];

		change->allocation = 0;
		change->row = row;
		number = change->previous;
	}
}

void steps_of_rows_deinit(struct steps_of_rows *steps)
{
	for (size_t i = 0; i < steps->rows.count; i++)
		vector_deinit(&steps->rows.items[i].items);
	vector_deinit(&steps->rows);
}

/* Changes are nearly in time order: a call whose stack arrived late counts at the time of the call. */
static bool add(struct row_steps *row, uint32_t step, uint64_t bytes)
{
	size_t place = row->items.count;

	while (place && row->items.items[place - 1].step > step)
		place--;
	if (place && row->items.items[place - 1].step == step) {
		row->items.items[place - 1].change += bytes;
		return true;
	}
	if (!vector_append(&row->items))
		return false;
	for (size_t i = row->items.count - 1; i > place; i--)
		row->items.items[i] = row->items.items[i - 1];
	row->items.items[place] = (struct row_step){.step = step, .change = bytes};
	return true;
}

bool steps_of_rows_add(struct steps_of_rows *steps, uint32_t row, uint32_t step, uint64_t bytes)
{
	while (steps->rows.count <= row) {
		if (!vector_append(&steps->rows))
			return false;
	}
	return add(&steps->rows.items[row], step, bytes);
}

void steps_of_rows_get(const struct steps_of_rows *steps, uint32_t row, uint64_t *bytes_ret, size_t count)
{
	const struct row_steps *changes = row < steps->rows.count ? &steps->rows.items[row] : NULL;
	uint64_t bytes = 0;
	size_t next = 0;

	for (size_t i = 0; i < count; i++) {
		while (changes && next < changes->items.count &&
		       (changes->items.items[next].step <= i || i + 1 == count))
			bytes += changes->items.items[next++].change;
		bytes_ret[i] = (int64_t)bytes > 0 ? bytes : 0;
	}
}
