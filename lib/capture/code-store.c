// SPDX-License-Identifier: LGPL-2.1-or-later
#include "capture/code-store.h"

#include <stdlib.h>
#include <string.h>

#include "trace/compress.h"

#define SCRATCH_BYTES_MAX (1u << 20)
#define ITEM_BYTES (sizeof(struct kept_code) + 16) /* what it costs beside its bytes */

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
	compressor_destroy(store->compressor);
	decompressor_destroy(store->decompressor);
	buffer_deinit(&store->scratch);
	*store = (struct code_store){0};
}

static size_t get_cost(const struct kept_code *kept)
{
	return kept->bytes ? kept->size + ITEM_BYTES : 0;
}

struct mmt_error *code_store_put(struct code_store *store, size_t *index, const void *code, size_t size, bool *kept_ret)
{
	struct kept_code before = *index == CODE_STORE_NONE ? (struct kept_code){0} : store->items.items[*index];
	struct kept_code kept = {.plain_size = size};
	struct mmt_error *error = NULL;
	size_t plain_bytes = store->plain_bytes - before.plain_size + size, kept_bytes;

	*kept_ret = false;
	buffer_clear(&store->scratch);
	if (plain_bytes <= store->plain_bytes_max)
		error = compressor_frame(store->compressor, code, size, &store->scratch);
	kept.size = store->scratch.size;
	kept_bytes = store->kept_bytes - get_cost(&before) + kept.size + ITEM_BYTES;
	if (error || plain_bytes > store->plain_bytes_max || kept_bytes > store->kept_bytes_max) {
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
	} else if (vector_push(&store->items, kept)) {
		*index = store->items.count - 1;
	} else {
		free(kept.bytes);
		return &error_no_memory;
	}
	store->plain_bytes = plain_bytes;
	store->kept_bytes = kept_bytes;
	*kept_ret = true;
	return NULL;
}

struct mmt_error *code_store_get(const struct code_store *store, size_t index, struct buffer *plain)
{
	const struct kept_code *kept = &store->items.items[index];

	return decompressor_feed(store->decompressor, kept->bytes, kept->size, plain);
}
