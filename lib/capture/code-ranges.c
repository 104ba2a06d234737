// SPDX-License-Identifier: LGPL-2.1-or-later
#include "capture/code-ranges.h"

#include <string.h>

void code_ranges_deinit(struct code_ranges *ranges)
{
	vector_deinit(&ranges->items);
}

/* The first range that ends at `address` or behind it. */
static size_t find_first(const struct code_ranges *ranges, uint64_t address)
{
	size_t low = 0, high = ranges->items.count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (ranges->items.items[middle].end < address)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

/* Put `count` ranges in the place of those from `first` to `end`. */
static bool replace(struct code_ranges *ranges, size_t first, size_t end, const struct code_range *with, size_t count)
{
	size_t old_count = ranges->items.count, behind = old_count - end;

	while (ranges->items.count < first + count + behind) {
		if (!vector_append(&ranges->items)) {
			ranges->items.count = old_count;
			return false;
		}
	}
	if (behind)
		memmove(&ranges->items.items[first + count], &ranges->items.items[end],
			behind * sizeof(*ranges->items.items));
	for (size_t i = 0; i < count; i++)
		ranges->items.items[first + i] = with[i];
	ranges->items.count = first + count + behind;
	return true;
}

bool code_ranges_add(struct code_ranges *ranges, uint64_t start, uint64_t end, uint64_t noted_ns)
{
	struct code_range merged = {start, end, noted_ns};
	size_t first = find_first(ranges, start), last = first;

	if (start >= end)
		return true;
	for (; last < ranges->items.count && ranges->items.items[last].start <= end; last++) {
		const struct code_range *range = &ranges->items.items[last];

		merged.start = range->start < merged.start ? range->start : merged.start;
		merged.end = range->end > merged.end ? range->end : merged.end;
		merged.noted_ns = range->noted_ns > merged.noted_ns ? range->noted_ns : merged.noted_ns;
	}
	if (first == last && ranges->items.count >= CODE_RANGES_MAX) {
		ranges->cut = true;
		return true;
	}
	return replace(ranges, first, last, &merged, 1);
}

bool code_ranges_remove(struct code_ranges *ranges, uint64_t start, uint64_t end)
{
	size_t first = find_first(ranges, start), last = first, count = 0;
	struct code_range left[2];

	if (start >= end)
		return true;
	for (; last < ranges->items.count && ranges->items.items[last].start < end; last++) {
		const struct code_range range = ranges->items.items[last];

		/* Only the first and the last of them reach beyond. */
		if (range.start < start)
			left[count++] =
			    (struct code_range){range.start, range.end < start ? range.end : start, range.noted_ns};
		if (range.end > end)
			left[count++] = (struct code_range){end, range.end, range.noted_ns};
	}
	return first == last || replace(ranges, first, last, left, count);
}

void code_ranges_clear(struct code_ranges *ranges)
{
	ranges->items.count = 0;
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
