// SPDX-License-Identifier: LGPL-2.1-or-later
#include "capture/jit-code/code-pages.h"

#include <stdlib.h>
#include <string.h>

#include "base/compression.h"
#include "base/limits.h"

#define ITEM_BYTES (sizeof(struct kept_code) + 16) /* memory used by a piece besides its bytes */

/* The position of a range, or where it would be inserted. After the last range, `block` is the number of blocks. */
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

/* Finds the first range that ends above `address`. */
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

/* Returns NULL if the position is after the last range. */
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

/* Removes the block from the list without freeing its ranges. */
static void remove_block(struct code_ranges *ranges, size_t index)
{
	struct code_ranges_block *place = &ranges->blocks.items[index];

	ranges->blocks.count--;
	memmove(place, place + 1, (ranges->blocks.count - index) * sizeof(*place));
}

/* Splits a block in two. The new block gets the upper half of the ranges. */
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

/* Merges the block with the next one if the result is small. Without memory for that, the blocks stay as they are. */
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

/* Makes room for one more range in its block. Splitting a full block may move the position into the new block. */
static bool find_block_with_room(struct code_ranges *ranges, struct range_position *place)
{
	static const struct code_ranges_block none;
	size_t count = ranges->blocks.count;

	/* Start a new block after the last one. A snapshot adds ranges in ascending order, so this keeps the blocks
	 * full. */
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

/* Inserts the range before the position. Above LIMIT_CODE_RANGES the range is dropped. */
static bool insert(struct code_ranges *ranges, struct range_position place, const struct code_range *range)
{
	struct code_ranges_block *block;
	size_t behind;

	if (ranges->count >= LIMIT_CODE_RANGES) {
		ranges->cut = true;
		return true;
	}
	if (!find_block_with_room(ranges, &place))
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
	/* Add those parts of the range that do not overlap ranges noted at a later time. */
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

void code_pages_deinit(struct code_pages *pages)
{
	vector_deinit(&pages->items);
	map_deinit(&pages->index_of_address);
	vector_deinit(&pages->changes);
}

static size_t get_cost(const struct kept_code *kept)
{
	return kept->bytes ? kept->size + ITEM_BYTES : 0;
}

/* Frees the piece; its slot may be reused. Does nothing for CODE_STORE_NONE. */
static void code_store_remove(struct code_store *store, size_t index)
{
	struct kept_code *kept = index == CODE_STORE_NONE ? NULL : &store->items.items[index];

	if (!kept)
		return;
	store->kept_bytes -= get_cost(kept);
	store->plain_bytes -= kept->plain_size;
	free(kept->bytes);
	*kept = (struct kept_code){0};
	/* Without memory for the index, the slot stays unused. */
	(void)vector_push(&store->unused, index);
}

void code_pages_discard(struct code_pages *pages, struct code_store *store)
{
	for (size_t i = 0; i < pages->items.count; i++)
		code_store_remove(store, pages->items.items[i].kept);
	for (size_t i = 0; i < pages->changes.count; i++)
		code_store_remove(store, pages->changes.items[i].offset);
	code_pages_deinit(pages);
	*pages = (struct code_pages){.page_bytes = pages->page_bytes};
}

void code_pages_end(struct code_pages *pages)
{
	size_t count = 0;

	for (size_t i = 0; i < pages->items.count; i++) {
		if (pages->items.items[i].kept != CODE_STORE_NONE)
			pages->items.items[count++] = pages->items.items[i];
	}
	pages->items.count = count;
	if (count)
		vector_trim(&pages->items);
	else
		vector_deinit(&pages->items);
	vector_trim(&pages->changes);
	map_deinit(&pages->index_of_address);
}

static bool is_due(const struct code_pages *pages, uint64_t address, uint64_t now_ns)
{
	const uint64_t *index = map_get(&pages->index_of_address, address);

	return index ? pages->items.items[*index].due_ns <= now_ns : pages->items.count < LIMIT_CODE_PAGES;
}

uint64_t code_pages_due(const struct code_pages *pages, uint64_t start, uint64_t end, uint64_t size_max,
			uint64_t now_ns, uint64_t *start_ret)
{
	uint64_t size = 0;

	while (start < end && !is_due(pages, start, now_ns))
		start += pages->page_bytes;
	*start_ret = start;
	while (start < end && size + pages->page_bytes <= size_max && is_due(pages, start, now_ns)) {
		start += pages->page_bytes;
		size += pages->page_bytes;
	}
	return size;
}

static bool is_blank(const uint8_t *page, size_t size)
{
	return !page[0] && !memcmp(page, page + 1, size - 1);
}

/* Is there room for `kept`, which replaces `before`? */
static bool has_room(const struct code_store *store, const struct kept_code *before, const struct kept_code *kept)
{
	return store->plain_bytes - before->plain_size + kept->plain_size <= store->plain_bytes_max &&
	       store->kept_bytes - get_cost(before) + kept->size + ITEM_BYTES <= store->kept_bytes_max;
}

static bool find_room(const struct code_store *store, const struct kept_code *before, const struct kept_code *kept)
{
	while (!has_room(store, before, kept)) {
		if (!store->make_room || !store->make_room(store->context))
			return false;
	}
	return true;
}

/* Replaces the piece at `*index`, or stores a new one if `*index` is CODE_STORE_NONE. If the store is full, *kept_ret
 * is false and nothing changes. */
static struct mmt_error *code_store_put(struct code_store *store, size_t *index, const void *code, size_t size,
					bool *kept_ret)
{
	struct kept_code before = *index == CODE_STORE_NONE ? (struct kept_code){0} : store->items.items[*index];
	struct kept_code kept = {.plain_size = size};
	struct mmt_error *error = NULL;

	*kept_ret = false;
	buffer_clear(&store->scratch);
	if (find_room(store, &before, &kept)) {
		error = compressor_frame(store->compressor, code, size, &store->scratch);
		kept.size = store->scratch.size;
	}
	if (error || !kept.size || !find_room(store, &before, &kept)) {
		store->full |= !error;
		return error;
	}
	kept.bytes = malloc(kept.size);
	if (!kept.bytes)
		return &error_no_memory;
	memcpy(kept.bytes, store->scratch.data, kept.size);
	if (*index != CODE_STORE_NONE) {
		free(before.bytes);
		store->items.items[*index] = kept;
	} else if (store->unused.count) {
		*index = store->unused.items[--store->unused.count];
		store->items.items[*index] = kept;
	} else if (vector_push(&store->items, kept)) {
		*index = store->items.count - 1;
	} else {
		free(kept.bytes);
		return &error_no_memory;
	}
	store->plain_bytes += size - before.plain_size;
	store->kept_bytes += get_cost(&kept) - get_cost(&before);
	*kept_ret = true;
	return NULL;
}

/* Keeps the old content of a page whose code was replaced. Writing into blank memory replaces no code. */
static struct mmt_error *keep_replaced(struct code_pages *pages, struct code_store *store, const struct code_page *page,
				       const uint8_t *known, const uint8_t *seen)
{
	struct code_change change = {.offset = CODE_STORE_NONE, .until_ns = page->due_ns - page->again_ns};
	size_t count = 0, first = 0, end = 0;
	struct mmt_error *error;
	bool kept;

	for (size_t i = 0; i < pages->page_bytes; i++) {
		if (!known[i] || known[i] == seen[i])
			continue;
		first = count++ ? first : i;
		end = i + 1;
	}
	if (count < CODE_CHANGE_BYTES || pages->changes.count >= LIMIT_CODE_CHANGES_KEPT)
		return NULL;
	change.start = page->address + first;
	change.size = end - first;
	error = code_store_put(store, &change.offset, known + first, change.size, &kept);
	if (!error && kept && !vector_push(&pages->changes, change))
		error = &error_no_memory;
	return error;
}

static struct mmt_error *replace(struct code_pages *pages, struct code_store *store, struct code_page *page,
				 const uint8_t *seen)
{
	struct mmt_error *error;
	struct buffer known;
	bool kept;

	buffer_init(&known, pages->page_bytes);
	error = code_store_get(store, page->kept, &known);
	if (!error)
		error = code_store_put(store, &page->kept, seen, pages->page_bytes, &kept);
	if (!error && kept)
		error = keep_replaced(pages, store, page, known.data, seen);
	buffer_deinit(&known);
	return error;
}

/* Stores the new content of a page. *changed_ret: it differs from the content read before. */
static struct mmt_error *take_bytes(struct code_pages *pages, struct code_store *store, struct code_page *page,
				    const uint8_t *seen, bool *changed_ret)
{
	uint64_t checksum;

	*changed_ret = false;
	if (is_blank(seen, pages->page_bytes))
		return NULL;
	checksum = map_checksum(seen, pages->page_bytes);
	if (page->kept == CODE_STORE_NONE) {
		page->checksum = checksum;
		return code_store_put(store, &page->kept, seen, pages->page_bytes, changed_ret);
	}
	*changed_ret = checksum != page->checksum;
	page->checksum = checksum;
	return *changed_ret ? replace(pages, store, page, seen) : NULL;
}

struct mmt_error *code_pages_put(struct code_pages *pages, struct code_store *store, uint64_t address,
				 const uint8_t *page, uint64_t now_ns)
{
	const uint64_t *index = map_get(&pages->index_of_address, address);
	struct code_page *known = index ? &pages->items.items[*index] : NULL;
	struct mmt_error *error;
	bool changed;

	if (!known) {
		if (!map_put(&pages->index_of_address, address, pages->items.count))
			return &error_no_memory;
		known = vector_append(&pages->items);
		if (!known) {
			map_remove(&pages->index_of_address, address);
			return &error_no_memory;
		}
		*known =
		    (struct code_page){.address = address, .kept = CODE_STORE_NONE, .again_ns = CODE_PAGE_AGAIN_NS / 2};
	}
	error = take_bytes(pages, store, known, page, &changed);
	if (changed)
		known->again_ns = CODE_PAGE_AGAIN_NS;
	else if (known->again_ns < CODE_PAGE_AGAIN_NS_MAX)
		known->again_ns *= 2;
	known->due_ns = now_ns + known->again_ns;
	/* The store is full and will stay full: do not read this page again. */
	if (known->kept == CODE_STORE_NONE && !is_blank(page, pages->page_bytes))
		known->due_ns = CODE_PAGE_NEVER;
	return error;
}

#define SCRATCH_BYTES_MAX (1u << 20)

struct mmt_error *code_store_init(struct code_store *store, size_t plain_bytes_max, size_t kept_bytes_max)
{
	struct mmt_error *error;

	*store = (struct code_store){.plain_bytes_max = plain_bytes_max, .kept_bytes_max = kept_bytes_max};
	buffer_init(&store->scratch, SCRATCH_BYTES_MAX);
	error = compressor_create(&store->compressor);
	return error ? error : decompressor_create(&store->decompressor);
}

void code_store_deinit(struct code_store *store)
{
	for (size_t i = 0; i < store->items.count; i++)
		free(store->items.items[i].bytes);
	vector_deinit(&store->items);
	vector_deinit(&store->unused);
	compressor_destroy(store->compressor);
	decompressor_destroy(store->decompressor);
	buffer_deinit(&store->scratch);
	*store = (struct code_store){0};
}

struct mmt_error *code_store_get(const struct code_store *store, size_t index, struct buffer *plain)
{
	const struct kept_code *kept = &store->items.items[index];

	return decompressor_feed(store->decompressor, kept->bytes, kept->size, plain);
}
