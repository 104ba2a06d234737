// SPDX-License-Identifier: LGPL-2.1-or-later
#include "trace/sections/heap-census.h"

#include "base/limits.h"

#define CENSUS_BYTES 150 /* without names and groups */
#define GROUP_BYTES 61	 /* with an empty name */

void heap_census_deinit(struct mmt_heap_census *census)
{
	for (size_t i = 0; i < census->group_count; i++)
		free(census->groups[i].name);
	free(census->groups);
	free(census->allocator_name);
	*census = (struct mmt_heap_census){0};
}

void heap_censuses_deinit(void *value)
{
	struct heap_censuses *censuses = value;

	for (size_t i = 0; i < censuses->items.count; i++)
		heap_census_deinit(&censuses->items.items[i]);
	vector_deinit(&censuses->items);
}

/* Sums of these numbers fit into 64 bits, and into signed ones. */
static void code_amounts(struct codec *codec, uint64_t *const amounts[], size_t count)
{
	for (size_t i = 0; i < count; i++) {
		codec_u64(codec, *amounts[i]);
		if (*amounts[i] > LIMIT_RESIDENT_BYTES)
			codec_fail(codec, "more bytes than a process has");
	}
}

static void code_group(struct codec *codec, struct mmt_heap_group *group)
{
	uint64_t *const amounts[] = {&group->smallest_bytes, &group->largest_bytes,    &group->count,
				     &group->bytes,	     &group->after_free_count, &group->after_free_bytes};

	codec_u32(codec, group->content);
	if (group->content > MMT_HEAP_POINTER)
		codec_fail(codec, "unknown content of a heap");
	code_amounts(codec, amounts, sizeof(amounts) / sizeof(*amounts));
	if (group->smallest_bytes > group->largest_bytes || group->after_free_count > group->count)
		codec_fail(codec, "sizes of chunks that contradict each other");
	codec_u64(codec, group->offset);
	codec_text(codec, &group->name);
}

static void code_censuses(struct codec *codec, void *value)
{
	struct heap_censuses *censuses = value;
	uint64_t count = codec_count(codec, censuses->items.count, CENSUS_BYTES, LIMIT_HEAP_CENSUSES);
	struct mmt_heap_census *census;

	codec_each(codec, &censuses->items, count, census) {
		uint64_t *const amounts[] = {&census->arenas,	     &census->mapped_bytes, &census->walked_bytes,
					     &census->in_use_count,  &census->in_use_low,   &census->in_use_high,
					     &census->free_count,    &census->free_bytes,   &census->tcache_bytes,
					     &census->fastbin_bytes, &census->top_bytes,    &census->trimmable_bytes,
					     &census->mmapped_count, &census->mmapped_bytes};
		size_t groups;

		codec_u32(codec, census->pid);
		codec_u32(codec, census->when);
		codec_u32(codec, census->allocator);
		codec_u32(codec, census->result);
		if (census->when > MMT_HEAP_AT_STOP || census->allocator > MMT_ALLOCATOR_OTHER ||
		    census->result > MMT_HEAP_CHANGING)
			codec_fail(codec, "unknown kind of a heap census");
		codec_text(codec, &census->allocator_name);
		codec_u64(codec, census->time_ns);
		codec_u64(codec, census->elapsed_ns);
		codec_u64(codec, census->processor_ns);
		codec_u64(codec, census->stopped_at);
		code_amounts(codec, amounts, sizeof(amounts) / sizeof(*amounts));
		if (census->in_use_low > census->in_use_high || census->walked_bytes > census->mapped_bytes)
			codec_fail(codec, "sizes of a heap that contradict each other");
		groups = codec_count(codec, census->group_count, GROUP_BYTES, LIMIT_HEAP_GROUPS);
		if (!codec->to) {
			census->groups = calloc(groups + 1, sizeof(*census->groups));
			census->group_count = census->groups ? groups : 0;
			if (!census->groups)
				codec->error = &error_no_memory;
		}
		for (size_t i = 0; i < groups && codec_ok(codec); i++)
			code_group(codec, &census->groups[i]);
	}
}

const struct section_kind section_heap = {
    "heap section", 1, 1, LIMIT_SECTION_BYTES, sizeof(struct heap_censuses), code_censuses, heap_censuses_deinit};
