// SPDX-License-Identifier: LGPL-2.1-or-later
#include "capture/jit-code/jit-pages.h"

#include <stdlib.h>
#include <string.h>

#include "base/compression.h"
#include "base/limits.h"

#define OVERHEAD_BYTES 16 /* of an allocation */
#define SCRATCH_BYTES_MAX (1u << 20)

struct mmt_error *jit_store_init(struct jit_store *store, size_t plain_bytes_max, size_t stored_bytes_max)
{
	struct mmt_error *error;

	*store = (struct jit_store){.plain_bytes_max = plain_bytes_max, .stored_bytes_max = stored_bytes_max};
	buffer_init(&store->scratch, SCRATCH_BYTES_MAX);
	error = compressor_create(&store->compressor);
	return error ? error : decompressor_create(&store->decompressor);
}

void jit_store_deinit(struct jit_store *store)
{
	compressor_destroy(store->compressor);
	decompressor_destroy(store->decompressor);
	buffer_deinit(&store->scratch);
	*store = (struct jit_store){0};
}

static void drop_bytes(struct jit_page *page, size_t page_bytes, struct jit_store *store)
{
	if (!page->bytes)
		return;
	store->stored_bytes -= page->size + OVERHEAD_BYTES;
	store->plain_bytes -= page_bytes;
	free(page->bytes);
	page->bytes = NULL;
	page->size = 0;
}

void jit_pages_discard(struct jit_pages *pages, struct jit_store *store)
{
	for (size_t i = 0; i < pages->items.count; i++)
		drop_bytes(&pages->items.items[i], pages->page_bytes, store);
	vector_deinit(&pages->items);
	map_deinit(&pages->index_of_address);
	*pages = (struct jit_pages){.page_bytes = pages->page_bytes};
}

void jit_pages_end(struct jit_pages *pages)
{
	size_t count = 0;

	for (size_t i = 0; i < pages->items.count; i++) {
		if (pages->items.items[i].bytes)
			pages->items.items[count++] = pages->items.items[i];
	}
	pages->items.count = count;
	if (count)
		vector_trim(&pages->items);
	else
		vector_deinit(&pages->items);
	map_deinit(&pages->index_of_address);
}

static bool is_due(const struct jit_pages *pages, uint64_t address, uint64_t now_ns)
{
	const uint64_t *index = map_get(&pages->index_of_address, address);

	return index ? pages->items.items[*index].due_ns <= now_ns : pages->items.count < LIMIT_CODE_PAGES;
}

uint64_t jit_pages_due(const struct jit_pages *pages, uint64_t start, uint64_t end, uint64_t size_max, uint64_t now_ns,
		       uint64_t *start_ret)
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

/* Replaces the stored bytes of the page. If the store is full, *stored_ret is false and they stay. */
static struct mmt_error *store_bytes(const struct jit_pages *pages, struct jit_store *store, struct jit_page *page,
				     const uint8_t *seen, bool *stored_ret)
{
	struct mmt_error *error;
	uint8_t *bytes;
	size_t size;

	*stored_ret = false;
	buffer_clear(&store->scratch);
	error = compressor_frame(store->compressor, seen, pages->page_bytes, &store->scratch);
	if (error)
		return error;
	size = store->scratch.size;
	/* The page's own bytes are replaced. */
	while (store->plain_bytes + (page->bytes ? 0 : pages->page_bytes) > store->plain_bytes_max ||
	       store->stored_bytes + size + OVERHEAD_BYTES >
		   store->stored_bytes_max + (page->bytes ? page->size + OVERHEAD_BYTES : 0)) {
		if (store->make_room && store->make_room(store->context))
			continue;
		store->full = true;
		return NULL;
	}
	bytes = malloc(size);
	if (!bytes)
		return &error_no_memory;
	memcpy(bytes, store->scratch.data, size);
	drop_bytes(page, pages->page_bytes, store);
	page->bytes = bytes;
	page->size = size;
	store->plain_bytes += pages->page_bytes;
	store->stored_bytes += size + OVERHEAD_BYTES;
	*stored_ret = true;
	return NULL;
}

struct mmt_error *jit_page_get(const struct jit_page *page, const struct jit_store *store, struct buffer *plain)
{
	return decompressor_feed(store->decompressor, page->bytes, page->size, plain);
}

/* Notes where new code replaced code, which was there until `until_ns`; if the new code is not stored, the stored bytes
 * are never right again. Writing into blank memory replaces none. */
static void note_replaced(struct jit_page *page, size_t page_bytes, const uint8_t *known, const uint8_t *seen,
			  uint64_t until_ns)
{
	uint64_t start = page->replaced.size ? page->replaced.start : UINT64_MAX;
	uint64_t end = page->replaced.size ? page->replaced.start + page->replaced.size : 0;
	size_t count = 0;

	for (size_t i = 0; i < page_bytes; i++) {
		if (!known[i] || known[i] == seen[i])
			continue;
		count++;
		start = page->address + i < start ? page->address + i : start;
		end = page->address + i >= end ? page->address + i + 1 : end;
	}
	if (count >= JIT_REPLACED_BYTES_MIN)
		page->replaced = (struct jit_code_change){start, end - start, until_ns};
}

static struct mmt_error *replace_bytes(const struct jit_pages *pages, struct jit_store *store, struct jit_page *page,
				       const uint8_t *seen, bool *stored_ret)
{
	struct mmt_error *error;
	struct buffer known;

	buffer_init(&known, pages->page_bytes);
	error = jit_page_get(page, store, &known);
	if (!error)
		error = store_bytes(pages, store, page, seen, stored_ret);
	if (!error)
		note_replaced(page, pages->page_bytes, known.data, seen,
			      *stored_ret ? page->due_ns - page->again_ns : JIT_PAGE_NEVER);
	buffer_deinit(&known);
	return error;
}

/* Stores the new content of a page. *stored_ret: it differs from what was stored before, and there was room. */
static struct mmt_error *take_bytes(const struct jit_pages *pages, struct jit_store *store, struct jit_page *page,
				    const uint8_t *seen, bool *stored_ret)
{
	struct mmt_error *error;
	uint64_t checksum;

	*stored_ret = false;
	if (is_blank(seen, pages->page_bytes))
		return NULL;
	checksum = map_checksum(seen, pages->page_bytes);
	if (page->bytes && checksum == page->checksum)
		return NULL;
	error = page->bytes ? replace_bytes(pages, store, page, seen, stored_ret)
			    : store_bytes(pages, store, page, seen, stored_ret);
	if (*stored_ret)
		page->checksum = checksum;
	return error;
}

struct mmt_error *jit_pages_put(struct jit_pages *pages, struct jit_store *store, uint64_t address, const uint8_t *seen,
				uint64_t now_ns)
{
	const uint64_t *index = map_get(&pages->index_of_address, address);
	struct jit_page *page = index ? &pages->items.items[*index] : NULL;
	struct mmt_error *error;
	bool stored;

	if (!page) {
		if (!map_put(&pages->index_of_address, address, pages->items.count))
			return &error_no_memory;
		page = vector_append(&pages->items);
		if (!page) {
			map_remove(&pages->index_of_address, address);
			return &error_no_memory;
		}
		*page = (struct jit_page){.address = address, .again_ns = JIT_PAGE_AGAIN_NS / 2};
	}
	error = take_bytes(pages, store, page, seen, &stored);
	if (stored)
		page->again_ns = JIT_PAGE_AGAIN_NS;
	else if (page->again_ns < JIT_PAGE_AGAIN_NS_MAX)
		page->again_ns *= 2;
	page->due_ns = now_ns + page->again_ns;
	/* The store is full and will stay full: do not read this page again. */
	if (!page->bytes && !is_blank(seen, pages->page_bytes))
		page->due_ns = JIT_PAGE_NEVER;
	return error;
}
