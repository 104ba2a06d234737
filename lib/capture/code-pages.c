// SPDX-License-Identifier: LGPL-2.1-or-later
#include "capture/code-pages.h"

#include <string.h>

void code_pages_deinit(struct code_pages *pages)
{
	vector_deinit(&pages->items);
	map_deinit(&pages->index_of_address);
	vector_deinit(&pages->changes);
}

void code_pages_give_up(struct code_pages *pages, struct code_store *store)
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
	if (count < CODE_CHANGE_BYTES || pages->changes.count >= CODE_CHANGES_MAX)
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

/* *changed_ret: it is another than it was. */
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
	/* There is no room for it, and there will be none. */
	if (known->kept == CODE_STORE_NONE && !is_blank(page, pages->page_bytes))
		known->due_ns = CODE_PAGE_NEVER;
	return error;
}
