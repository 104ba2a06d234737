// SPDX-License-Identifier: LGPL-2.1-or-later
/* Judges the chunks of a heap by their first word, and counts them. */
#include "capture/heap/heap-readings.h"

#include <ctype.h>

#include "base/limits.h"

/* Places in `found`. */
enum { FOUND_UNKNOWN, FOUND_TEXT, FOUND_FIRST };

#define PLACE_BITS 20
#define TEXT_BYTES_MIN 4
#define NAMED_GROUPS (LIMIT_HEAP_GROUPS - 4 * 64) /* room for a sum per content and power of two */

struct mmt_error *heap_contents_init(struct heap_contents *contents, const struct heap_source *source)
{
	*contents = (struct heap_contents){.source = source, .lowest = UINT64_MAX};
	array_each(mapping, source->mappings, source->mapping_count) {
		if (!mapping->module)
			continue;
		contents->lowest = mapping->start < contents->lowest ? mapping->start : contents->lowest;
		contents->highest = mapping->end;
	}
	if (!vector_push(&contents->found, ((struct heap_content){.content = MMT_HEAP_UNKNOWN})) ||
	    !vector_push(&contents->found, ((struct heap_content){.content = MMT_HEAP_TEXT})))
		return &error_no_memory;
	return NULL;
}

void heap_contents_deinit(struct heap_contents *contents)
{
	vector_deinit_each(&contents->found, item, free(item->name));
	vector_deinit(&contents->groups);
	map_deinit(&contents->known);
	map_deinit(&contents->places);
}

const struct heap_mapping *heap_mapping_find(const struct heap_source *source, uint64_t address)
{
	size_t place = partition_point(source->mapping_count, i, source->mappings[i].end <= address);

	return place < source->mapping_count && source->mappings[place].start <= address ? &source->mappings[place]
											 : NULL;
}

/* Read two words of a module's data. */
static bool read_data(const struct heap_source *source, uint64_t address, uint64_t words[2])
{
	const struct heap_mapping *mapping = heap_mapping_find(source, address);

	return mapping && mapping->module && !mapping->executable && address % sizeof(*words) == 0 &&
	       source->read(source->context, address, words, 2 * sizeof(*words)) == 2 * sizeof(*words);
}

/* The name of the type with this vtable, as C++ compilers for Linux lay it out: before the vtable are the offset of the
 * object in the block and the type information, whose second word is the name. NULL: this is no vtable, or it has no
 * type information. The caller frees it. */
static char *read_type_name(const struct heap_source *source, uint64_t vtable)
{
	uint64_t head[2], type[2], nothing[2];
	char name[LIMIT_HEAP_NAME_BYTES + 1];
	const struct heap_mapping *mapping;
	size_t size, first, length;

	if (!read_data(source, vtable - sizeof(head), head) || head[0] || !read_data(source, head[1], type) ||
	    !read_data(source, type[0], nothing))
		return NULL;
	mapping = heap_mapping_find(source, type[1]);
	if (!mapping || !mapping->module || mapping->executable)
		return NULL;
	size = mapping->end - type[1] < sizeof(name) ? mapping->end - type[1] : sizeof(name);
	size = source->read(source->context, type[1], name, size);
	first = size && *name == '*'; /* marks names that are not unique */
	length = first;
	while (length < size && name[length] && (isalnum((unsigned char)name[length]) || strchr("_.$", name[length])))
		length++;
	return length > first && length < size && !name[length] ? strdup(name + first) : NULL;
}

static struct mmt_error *find_content(struct heap_contents *contents, const uint64_t words[2], uint64_t *place_ret)
{
	struct heap_content content = {.content = MMT_HEAP_TYPE};
	const struct heap_mapping *mapping = NULL;
	char bytes[2 * sizeof(*words)];
	const uint64_t *known;
	size_t length = 0;

	if (words[0] >= contents->lowest && words[0] < contents->highest) {
		known = map_get(&contents->known, words[0]);
		if (known) {
			*place_ret = *known;
			return NULL;
		}
		mapping = heap_mapping_find(contents->source, words[0]);
	}
	*place_ret = FOUND_UNKNOWN;
	if (mapping && mapping->module) {
		/* A pointer to a module. */
		if (contents->found.count >= LIMIT_HEAP_CONTENTS ||
		    contents->source->is_over(contents->source->context))
			return NULL; /* too many were seen */
		content.name = read_type_name(contents->source, words[0]);
		if (!content.name)
			content = (struct heap_content){MMT_HEAP_POINTER, .name = strdup(mapping->module->path),
							.offset = words[0] - mapping->module->start};
		if (!content.name || !vector_push(&contents->found, content)) {
			free(content.name);
			return &error_no_memory;
		}
		*place_ret = contents->found.count - 1;
		return map_put(&contents->known, words[0], *place_ret) ? NULL : &error_no_memory;
	}
	memcpy(bytes, words, sizeof(bytes));
	while (length < sizeof(bytes) && ((bytes[length] >= ' ' && bytes[length] <= '~') || bytes[length] == '\t' ||
					  bytes[length] == '\n' || bytes[length] == '\r'))
		length++;
	if (length == sizeof(bytes) || (length >= TEXT_BYTES_MIN && !bytes[length]))
		*place_ret = FOUND_TEXT;
	return NULL;
}

static unsigned power_of(uint64_t bytes)
{
	return bytes ? 63 - (unsigned)__builtin_clzll(bytes) : 0;
}

static void add_to(struct mmt_heap_group *group, const struct mmt_heap_group *added)
{
	group->smallest_bytes = !group->count || added->smallest_bytes < group->smallest_bytes ? added->smallest_bytes
											       : group->smallest_bytes;
	group->largest_bytes = larger_of(group->largest_bytes, added->largest_bytes);
	group->count += added->count;
	group->bytes += added->bytes;
	group->after_free_count += added->after_free_count;
	group->after_free_bytes += added->after_free_bytes;
}

struct mmt_error *heap_contents_add(struct heap_contents *contents, uint64_t bytes, const uint64_t words[2],
				    uint64_t below)
{
	struct heap_recent *recent;
	const struct mmt_heap_group chunk = {.smallest_bytes = bytes,
					     .largest_bytes = bytes,
					     .count = 1,
					     .bytes = bytes,
					     .after_free_count = below > 0,
					     .after_free_bytes = below};
	const uint64_t *known;
	uint64_t place, key;
	struct mmt_error *error = find_content(contents, words, &place);

	if (error)
		return error;
	key = bytes / 16 << PLACE_BITS | place;
	/* Beyond the limit, chunks of nearly the same size share a group, and further beyond it, their contents do not
	 * count. */
	if (contents->groups.count >= LIMIT_HEAP_CONTENTS && !map_get(&contents->places, key)) {
		if (contents->groups.count >= 2 * LIMIT_HEAP_CONTENTS)
			place = FOUND_UNKNOWN;
		key = 1ULL << power_of(bytes / 16) << PLACE_BITS | place;
	}
	recent = &contents->recent[(bytes / 16 + place) % HEAP_RECENT_GROUPS];
	if (recent->key != key) {
		known = map_get(&contents->places, key);
		*recent = (struct heap_recent){key, known ? *known : contents->groups.count};
	}
	if (recent->group < contents->groups.count) {
		add_to(&contents->groups.items[recent->group], &chunk);
		return NULL;
	}
	if (!map_put(&contents->places, key, contents->groups.count) || !vector_push(&contents->groups, chunk))
		return &error_no_memory;
	contents->groups.items[contents->groups.count - 1].offset = place;
	return NULL;
}

COMPARISON(compare, struct mmt_heap_group,
	   order_of(b->bytes, a->bytes) ?: order_of(a->smallest_bytes, b->smallest_bytes)
	   ?: order_of(a->offset, b->offset))

struct mmt_error *heap_contents_finish(struct heap_contents *contents, struct mmt_heap_census *census)
{
	struct mmt_heap_group sums[4][64] = {0};

	vector_sort(&contents->groups, compare);
	census->groups = calloc(LIMIT_HEAP_GROUPS, sizeof(*census->groups));
	if (!census->groups)
		return &error_no_memory;
	for (size_t i = 0; i < contents->groups.count; i++) {
		const struct mmt_heap_group *group = &contents->groups.items[i];
		const struct heap_content *content = &contents->found.items[group->offset];
		struct mmt_heap_group *to = i < NAMED_GROUPS ? &census->groups[census->group_count++]
							     : &sums[content->content][power_of(group->smallest_bytes)];

		add_to(to, group);
		to->content = content->content;
		if (i >= NAMED_GROUPS)
			continue;
		to->offset = content->offset;
		to->name = strdup(content->name ? content->name : "");
		if (!to->name)
			return &error_no_memory;
	}
	for (size_t i = 0; i < 4 * 64; i++) {
		struct mmt_heap_group *sum = &sums[i / 64][i % 64];

		if (!sum->count)
			continue;
		sum->name = strdup("");
		census->groups[census->group_count++] = *sum;
		if (!sum->name)
			return &error_no_memory;
	}
	return NULL;
}
