// SPDX-License-Identifier: LGPL-2.1-or-later
#include "capture/code-ranges.h"

#include <string.h>

void code_ranges_deinit(struct code_ranges *ranges)
{
	vector_deinit(&ranges->items);
}

/* The first range that ends behind `address`. */
static size_t find_first(const struct code_ranges *ranges, uint64_t address)
{
	size_t low = 0, high = ranges->items.count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (ranges->items.items[middle].end <= address)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static bool insert(struct code_ranges *ranges, size_t index, const struct code_range *range)
{
	size_t behind = ranges->items.count - index;

	if (!vector_append(&ranges->items))
		return false;
	memmove(&ranges->items.items[index + 1], &ranges->items.items[index], behind * sizeof(*ranges->items.items));
	ranges->items.items[index] = *range;
	return true;
}

bool code_ranges_remove(struct code_ranges *ranges, uint64_t start, uint64_t end, uint64_t time_ns)
{
	size_t first = find_first(ranges, start), kept = first, last = first;

	for (; start < end && last < ranges->items.count && ranges->items.items[last].start < end; last++) {
		struct code_range *range = &ranges->items.items[last];
		struct code_range before = {range->start, start, range->noted_ns};

		if (range->noted_ns > time_ns) {
			ranges->items.items[kept++] = *range;
		} else if (range->start < start && range->end > end) {
			range->start = end;
			return insert(ranges, last, &before);
		} else if (range->start < start) {
			ranges->items.items[kept++] = before;
		} else if (range->end > end) {
			ranges->items.items[kept++] = (struct code_range){end, range->end, range->noted_ns};
		}
	}
	if (kept < last)
		memmove(&ranges->items.items[kept], &ranges->items.items[last],
			(ranges->items.count - last) * sizeof(*ranges->items.items));
	ranges->items.count -= last - kept;
	return true;
}

bool code_ranges_add(struct code_ranges *ranges, uint64_t start, uint64_t end, uint64_t noted_ns)
{
	if (!code_ranges_remove(ranges, start, end, noted_ns))
		return false;
	/* Around what is known of later. */
	for (size_t i = find_first(ranges, start); start < end; i++) {
		const struct code_range *later = i < ranges->items.count ? &ranges->items.items[i] : NULL;
		uint64_t later_start = later && later->start < end ? later->start : end;
		uint64_t later_end = later && later->start < end ? later->end : end;
		struct code_range range = {start, later_start, noted_ns};

		if (start < later_start && ranges->items.count >= CODE_RANGES_MAX)
			ranges->cut = true;
		else if (start < later_start && !insert(ranges, i++, &range))
			return false;
		start = later_end;
	}
	return true;
}

const struct code_range *code_ranges_from(const struct code_ranges *ranges, uint64_t address)
{
	size_t index = find_first(ranges, address);

	return index < ranges->items.count ? &ranges->items.items[index] : NULL;
}

void code_ranges_clear(struct code_ranges *ranges)
{
	ranges->items.count = 0;
	ranges->cut = false;
}

void code_ranges_forget(struct code_ranges *ranges, uint64_t until_ns)
{
	size_t count = 0;

	for (size_t i = 0; i < ranges->items.count; i++) {
		if (ranges->items.items[i].noted_ns > until_ns)
			ranges->items.items[count++] = ranges->items.items[i];
	}
	ranges->items.count = count;
}
