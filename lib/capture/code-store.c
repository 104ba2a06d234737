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
	vector_deinit(&store->unused);
	compressor_destroy(store->compressor);
	decompressor_destroy(store->decompressor);
	buffer_deinit(&store->scratch);
	*store = (struct code_store){0};
}

static size_t get_cost(const struct kept_code *kept)
{
	return kept->bytes ? kept->size + ITEM_BYTES : 0;
}

/* For `kept` in the place of `before`. */
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

struct mmt_error *code_store_put(struct code_store *store, size_t *index, const void *code, size_t size, bool *kept_ret)
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

void code_store_remove(struct code_store *store, size_t index)
{
	struct kept_code *kept = index == CODE_STORE_NONE ? NULL : &store->items.items[index];

	if (!kept)
		return;
	store->kept_bytes -= get_cost(kept);
	store->plain_bytes -= kept->plain_size;
	free(kept->bytes);
	*kept = (struct kept_code){0};
	/* Out of memory: it stays empty. */
	(void)vector_push(&store->unused, index);
}

struct mmt_error *code_store_get(const struct code_store *store, size_t index, struct buffer *plain)
{
	const struct kept_code *kept = &store->items.items[index];

	return decompressor_feed(store->decompressor, kept->bytes, kept->size, plain);
}
