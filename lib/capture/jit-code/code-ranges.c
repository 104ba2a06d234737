// SPDX-License-Identifier: LGPL-2.1-or-later
#include "capture/jit-code/code-ranges.h"

#include <string.h>

/* The position of a range, or where it would be inserted; behind all of them: the block does not exist. */
struct range_position {
	size_t block, index;
};

static void remove_all(struct code_ranges *ranges)
{
	for (size_t i = 0; i < ranges->blocks.count; i++)
		vector_deinit(&ranges->blocks.items[i].items);
	ranges->blocks.count = ranges->count = 0;
}

void code_ranges_deinit(struct code_ranges *ranges)
{
	remove_all(ranges);
	vector_deinit(&ranges->blocks);
}

/* The first range that ends above `address`. */
static struct range_position find_first(const struct code_ranges *ranges, uint64_t address)
{
	const struct code_ranges_block *block;
	struct range_position place = {0};
	size_t high = ranges->blocks.count;

	while (place.block < high) {
		size_t middle = place.block + (high - place.block) / 2;

		block = &ranges->blocks.items[middle];
		if (block->items.items[block->items.count - 1].end <= address)
			place.block = middle + 1;
		else
			high = middle;
	}
	if (place.block == ranges->blocks.count)
		return place;
	block = &ranges->blocks.items[place.block];
	high = block->items.count;
	while (place.index < high) {
		size_t middle = place.index + (high - place.index) / 2;

		if (block->items.items[middle].end <= address)
			place.index = middle + 1;
		else
			high = middle;
	}
	return place;
}

/* NULL: the position is behind all ranges. */
static struct code_range *range_at(const struct code_ranges *ranges, struct range_position place)
{
	return place.block < ranges->blocks.count ? &ranges->blocks.items[place.block].items.items[place.index] : NULL;
}

static struct range_position next_place(const struct code_ranges *ranges, struct range_position place)
{
	if (place.index + 1 < ranges->blocks.items[place.block].items.count)
		return (struct range_position){place.block, place.index + 1};
	return (struct range_position){place.block + 1, 0};
}

static bool insert_block(struct code_ranges *ranges, size_t index, const struct code_ranges_block *block)
{
	struct code_ranges_block *place;

	if (!vector_append(&ranges->blocks))
		return false;
	place = &ranges->blocks.items[index];
	memmove(place + 1, place, (ranges->blocks.count - 1 - index) * sizeof(*place));
	*place = *block;
	return true;
}

/* The memory of the block now belongs to another block, or is no longer needed. */
static void remove_block(struct code_ranges *ranges, size_t index)
{
	struct code_ranges_block *place = &ranges->blocks.items[index];

	ranges->blocks.count--;
	memmove(place, place + 1, (ranges->blocks.count - index) * sizeof(*place));
}

/* Split a block: its upper half becomes a new block. */
static bool split_block(struct code_ranges *ranges, size_t index)
{
	const struct code_ranges_block *block = &ranges->blocks.items[index];
	struct code_ranges_block upper = {0};
	size_t half = block->items.count / 2;
	bool done = true;

	for (size_t i = half; done && i < block->items.count; i++)
		done = vector_push(&upper.items, block->items.items[i]);
	done = done && insert_block(ranges, index + 1, &upper);
	if (done)
		ranges->blocks.items[index].items.count = half;
	else
		vector_deinit(&upper.items);
	return done;
}

/* Merge the block with the next if the result is small. If out of memory, leave them as they are. */
static bool join_blocks(struct code_ranges *ranges, size_t index)
{
	struct code_ranges_block *block, *next;
	size_t count;

	if (index + 1 >= ranges->blocks.count)
		return false;
	block = &ranges->blocks.items[index];
	next = block + 1;
	count = block->items.count;
	if (count + next->items.count > CODE_RANGES_BLOCK / 2)
		return false;
	for (size_t i = 0; i < next->items.count; i++) {
		if (!vector_push(&block->items, next->items.items[i])) {
			block->items.count = count;
			return false;
		}
	}
	vector_deinit(&next->items);
	remove_block(ranges, index + 1);
	return true;
}

/* Makes room for one more range in its block, which may become another block by this. */
static bool find_room(struct code_ranges *ranges, struct range_position *place)
{
	static const struct code_ranges_block none;
	size_t count = ranges->blocks.count;

	/* Append behind all others. A snapshot adds ranges in ascending order, which fills the blocks. */
	if (place->block == count && count && ranges->blocks.items[count - 1].items.count < CODE_RANGES_BLOCK)
		*place = (struct range_position){count - 1, ranges->blocks.items[count - 1].items.count};
	if (place->block == count)
		return insert_block(ranges, count, &none);
	if (ranges->blocks.items[place->block].items.count < CODE_RANGES_BLOCK)
		return true;
	if (!split_block(ranges, place->block))
		return false;
	count = ranges->blocks.items[place->block].items.count;
	if (place->index > count)
		*place = (struct range_position){place->block + 1, place->index - count};
	return true;
}

/* Insert before the position. A range beyond the limit is dropped. */
static bool insert(struct code_ranges *ranges, struct range_position place, const struct code_range *range)
{
	struct code_ranges_block *block;
	size_t behind;

	if (ranges->count >= CODE_RANGES_MAX) {
		ranges->cut = true;
		return true;
	}
	if (!find_room(ranges, &place))
		return false;
	block = &ranges->blocks.items[place.block];
	behind = block->items.count - place.index;
	if (!vector_append(&block->items)) {
		if (!block->items.count)
			remove_block(ranges, place.block);
		return false;
	}
	memmove(&block->items.items[place.index + 1], &block->items.items[place.index], behind * sizeof(*range));
	block->items.items[place.index] = *range;
	ranges->count++;
	return true;
}

static void erase(struct code_ranges *ranges, struct range_position place)
{
	struct code_ranges_block *block = &ranges->blocks.items[place.block];
	struct code_range *range = &block->items.items[place.index];

	block->items.count--;
	ranges->count--;
	memmove(range, range + 1, (block->items.count - place.index) * sizeof(*range));
	if (!block->items.count) {
		vector_deinit(&block->items);
		remove_block(ranges, place.block);
	}
	if (place.block && join_blocks(ranges, place.block - 1))
		place.block--;
	(void)join_blocks(ranges, place.block);
}

bool code_ranges_remove(struct code_ranges *ranges, uint64_t start, uint64_t end, uint64_t time_ns)
{
	struct range_position place = find_first(ranges, start);
	struct code_range *range;

	while (start < end && (range = range_at(ranges, place)) && range->start < end) {
		const struct code_range behind = {end, range->end, range->noted_ns};

		if (range->noted_ns > time_ns) {
			place = next_place(ranges, place);
		} else if (range->start < start) {
			range->end = start;
			place = next_place(ranges, place);
			if (behind.end > end)
				return insert(ranges, place, &behind);
		} else if (range->end > end) {
			range->start = end;
		} else {
			erase(ranges, place);
			place = find_first(ranges, behind.end);
		}
	}
	return true;
}

bool code_ranges_add(struct code_ranges *ranges, uint64_t start, uint64_t end, uint64_t noted_ns)
{
	struct range_position place;

	if (!code_ranges_remove(ranges, start, end, noted_ns))
		return false;
	/* Add the parts that do not overlap ranges noted at a later time. */
	for (place = find_first(ranges, start); start < end; place = find_first(ranges, start)) {
		const struct code_range *later = range_at(ranges, place);
		uint64_t later_start = later && later->start < end ? later->start : end;
		uint64_t later_end = later && later->start < end ? later->end : end;
		const struct code_range range = {start, later_start, noted_ns};

		if (start < later_start && !insert(ranges, place, &range))
			return false;
		start = later_end;
	}
	return true;
}

const struct code_range *code_ranges_from(const struct code_ranges *ranges, uint64_t address)
{
	return range_at(ranges, find_first(ranges, address));
}

void code_ranges_clear(struct code_ranges *ranges)
{
	remove_all(ranges);
	ranges->cut = false;
}

void code_ranges_forget(struct code_ranges *ranges, uint64_t until_ns)
{
	size_t blocks = 0;

	ranges->count = 0;
	for (size_t i = 0; i < ranges->blocks.count; i++) {
		struct code_ranges_block block = ranges->blocks.items[i];
		size_t count = 0;

		for (size_t j = 0; j < block.items.count; j++) {
			if (block.items.items[j].noted_ns > until_ns)
				block.items.items[count++] = block.items.items[j];
		}
		block.items.count = count;
		ranges->count += count;
		if (count)
			ranges->blocks.items[blocks++] = block;
		else
			vector_deinit(&block.items);
	}
	ranges->blocks.count = blocks;
	for (size_t i = 0; i < ranges->blocks.count; i++) {
		while (join_blocks(ranges, i))
			continue;
	}
}
