// SPDX-License-Identifier: LGPL-2.1-or-later
#include "trace/record-blocks.h"

#include <pthread.h>
#include <stdlib.h>

#define SPARE_BYTES (32u << 20)
#define SPARES_MAX 64 /* all of which are looked at */

struct record_blocks {
	pthread_mutex_t lock;
	struct record_block *spare;
	size_t spare_bytes, spare_count;
};

struct mmt_error *record_blocks_create(struct record_blocks **blocks_ret)
{
	struct record_blocks *blocks = calloc(1, sizeof(*blocks));

	if (!blocks)
		return &error_no_memory;
	pthread_mutex_init(&blocks->lock, NULL);
	*blocks_ret = blocks;
	return NULL;
}

static void destroy_block(struct record_block *block)
{
	buffer_deinit(&block->content);
	free(block);
}

void record_blocks_destroy(struct record_blocks *blocks)
{
	if (!blocks)
		return;
	while (blocks->spare) {
		struct record_block *block = blocks->spare;

		blocks->spare = block->next;
		destroy_block(block);
	}
	pthread_mutex_destroy(&blocks->lock);
	free(blocks);
}

/* Memory that has been in use is cheaper than new: the smallest that has room, or the last one where nobody knows. */
static struct record_block *take_spare(struct record_blocks *blocks, size_t expected)
{
	struct record_block **best = NULL, *block;

	for (struct record_block **place = &blocks->spare; *place; place = &(*place)->next) {
		size_t capacity = (*place)->content.capacity;

		if (capacity >= expected && (!best || capacity < (*best)->content.capacity))
			best = place;
		if (!expected)
			break;
	}
	if (!best)
		return NULL;
	block = *best;
	*best = block->next;
	blocks->spare_bytes -= block->content.capacity;
	blocks->spare_count--;
	return block;
}

struct record_block *record_blocks_take(struct record_blocks *blocks, size_t expected, size_t maximum)
{
	struct record_block *block;

	pthread_mutex_lock(&blocks->lock);
	block = take_spare(blocks, expected);
	pthread_mutex_unlock(&blocks->lock);
	if (!block) {
		block = calloc(1, sizeof(*block));
		if (!block)
			return NULL;
	}
	block->content.size = 0;
	block->content.maximum = maximum;
	block->left = block->compressed = false;
	block->next = NULL;
	return block;
}

void record_blocks_give_back(struct record_blocks *blocks, struct record_block *list)
{
	struct record_block *surplus = NULL;

	pthread_mutex_lock(&blocks->lock);
	while (list) {
		struct record_block *block = list;
		bool keep =
		    blocks->spare_count < SPARES_MAX && blocks->spare_bytes + block->content.capacity <= SPARE_BYTES;
		struct record_block **place = keep ? &blocks->spare : &surplus;

		list = block->next;
		block->next = *place;
		*place = block;
		blocks->spare_bytes += keep ? block->content.capacity : 0;
		blocks->spare_count += keep;
	}
	pthread_mutex_unlock(&blocks->lock);
	while (surplus) {
		struct record_block *block = surplus;

		surplus = block->next;
		destroy_block(block);
	}
}
