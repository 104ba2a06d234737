// SPDX-License-Identifier: LGPL-2.1-or-later
#include "capture/code-pages.h"

#include <string.h>

void code_pages_deinit(struct code_pages *pages)
{
	vector_deinit(&pages->items);
	map_deinit(&pages->index_of_address);
	vector_deinit(&pages->changes);
}

static bool is_due(const struct code_pages *pages, uint64_t address, uint64_t now_ns)
{
	const uint64_t *index = map_get(&pages->index_of_address, address);

	return index ? pages->items.items[*index].due_ns <= now_ns : pages->items.count < CODE_PAGES_MAX;
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

/* What was written where nothing was before replaces nothing. */
static void keep_replaced(struct code_pages *pages, struct buffer *bytes, const struct code_page *page,
			  const uint8_t *seen)
{
	const uint8_t *known = bytes->data + page->offset;
	size_t count = 0, first = 0, end = 0;
	struct code_change change;

	for (size_t i = 0; i < pages->page_bytes; i++) {
		if (!known[i] || known[i] == seen[i])
			continue;
		first = count++ ? first : i;
		end = i + 1;
	}
	if (count < CODE_CHANGE_BYTES || pages->changes.count >= CODE_CHANGES_MAX ||
	    bytes->size + (end - first) > bytes->maximum)
		return;
	change = (struct code_change){.start = page->address + first,
				      .size = end - first,
				      .offset = bytes->size,
				      .until_ns = page->due_ns - page->again_ns};
	if (!buffer_extend(bytes, change.size))
		return;
	memcpy(bytes->data + change.offset, bytes->data + page->offset + first, change.size);
	/* Out of memory: as if it had not been seen. */
	(void)vector_push(&pages->changes, change);
}

/* True: it is another than it was. */
static bool take_bytes(struct code_pages *pages, struct buffer *bytes, struct code_page *page, const uint8_t *seen)
{
	if (page->offset != CODE_PAGE_BLANK) {
		if (!memcmp(bytes->data + page->offset, seen, pages->page_bytes) || is_blank(seen, pages->page_bytes))
			return false;
		keep_replaced(pages, bytes, page, seen);
		memcpy(bytes->data + page->offset, seen, pages->page_bytes);
		return true;
	}
	if (is_blank(seen, pages->page_bytes) || bytes->error || bytes->size + pages->page_bytes > bytes->maximum)
		return false;
	page->offset = bytes->size;
	buffer_put(bytes, seen, pages->page_bytes);
	if (bytes->error)
		page->offset = CODE_PAGE_BLANK;
	return true;
}

struct mmt_error *code_pages_put(struct code_pages *pages, struct buffer *bytes, uint64_t address, const uint8_t *page,
				 uint64_t now_ns)
{
	const uint64_t *index = map_get(&pages->index_of_address, address);
	struct code_page *known = index ? &pages->items.items[*index] : NULL;

	if (!known) {
		if (!map_put(&pages->index_of_address, address, pages->items.count))
			return &error_no_memory;
		known = vector_append(&pages->items);
		if (!known) {
			map_remove(&pages->index_of_address, address);
			return &error_no_memory;
		}
		*known = (struct code_page){
		    .address = address, .offset = CODE_PAGE_BLANK, .again_ns = CODE_PAGE_AGAIN_NS / 2};
	}
	if (take_bytes(pages, bytes, known, page))
		known->again_ns = CODE_PAGE_AGAIN_NS;
	else if (known->again_ns < CODE_PAGE_AGAIN_NS_MAX)
		known->again_ns *= 2;
	known->due_ns = now_ns + known->again_ns;
	/* There is no room for it, and there will be none. */
	if (known->offset == CODE_PAGE_BLANK && !is_blank(page, pages->page_bytes))
		known->due_ns = CODE_PAGE_NEVER;
	return buffer_finish(bytes);
}
