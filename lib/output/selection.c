// SPDX-License-Identifier: LGPL-2.1-or-later
#include "output/selection.h"

#include <stdlib.h>

#include "base/errors.h"
#include "base/saturating-sum.h"

/* The bytes that the group holds, or uses in memory that others reserved. */
static uint64_t held_bytes(const struct mmt_group *group)
{
	uint64_t committed = group->committed_bytes + group->committed_before_bytes;

	return group->unfreed_bytes > committed ? group->unfreed_bytes : committed;
}

/* Larger comes first; for the age older does, so that key is inverted. */
static uint64_t sort_key(const struct mmt_group *group, enum mmt_sort sort)
{
	switch (sort) {
	case MMT_SORT_COUNT:
		return group->unfreed_count;
	case MMT_SORT_RESIDENT:
		return group->resident_bytes == MMT_UNKNOWN ? 0 : group->memory_bytes;
	case MMT_SORT_COMMITTED:
		return saturating_add(group->committed_bytes, group->committed_before_bytes, MMT_BYTES_MAX);
	case MMT_SORT_ALLOCATED:
		return group->allocated_bytes;
	case MMT_SORT_FREED:
		return group->freed_bytes;
	case MMT_SORT_AGE:
		return group->unfreed_bytes ? UINT64_MAX - group->first_ns : 0;
	case MMT_SORT_PEAK:
		return group->peak_bytes;
	case MMT_SORT_MEMORY:
		return group->memory_bytes;
	case MMT_SORT_MAPPINGS:
		return group->mapping_count;
	case MMT_SORT_UNFREED:
		break;
	}
	return held_bytes(group);
}

static int compare_groups(const void *left, const void *right, void *context)
{
	const struct mmt_group *a = *(const struct mmt_group *const *)left,
			       *b = *(const struct mmt_group *const *)right;
	enum mmt_sort sort = *(const enum mmt_sort *)context;
	uint64_t a_key = sort_key(a, sort), b_key = sort_key(b, sort);

	if (a_key != b_key)
		return a_key > b_key ? -1 : 1;
	return a->id < b->id ? -1 : a->id > b->id;
}

static void add_hidden(struct hidden_groups *hidden, const struct mmt_group *group, uint64_t bytes)
{
	hidden->count++;
	hidden->bytes = saturating_add(hidden->bytes, bytes, MMT_BYTES_MAX);
	hidden->memory_bytes = saturating_add(hidden->memory_bytes, group->memory_bytes, MMT_BYTES_MAX);
}

static void hide_group(struct selection *selection, const struct mmt_group *group)
{
	if (group->unfreed_bytes || group->memory_bytes)
		add_hidden(&selection->hidden, group, group->unfreed_bytes);
	add_hidden(&selection->hidden_by_allocated, group, group->allocated_bytes);
	if (group->freed_bytes)
		add_hidden(&selection->hidden_by_freed, group, group->freed_bytes);
}

struct mmt_error *selection_create(const struct mmt_report *report, const struct mmt_text_options *options,
				   bool freed_too, struct selection *selection_ret)
{
	return selection_of_groups(report->groups, report->group_count, options, freed_too, selection_ret);
}

struct mmt_error *selection_of_groups(const struct mmt_group *groups, size_t count,
				      const struct mmt_text_options *options, bool freed_too,
				      struct selection *selection_ret)
{
	struct selection selection = {.groups = calloc(count + 1, sizeof(const struct mmt_group *))};
	enum mmt_sort sort = options->sort;

	if (!selection.groups)
		return &error_no_memory;
	for (size_t i = 0; i < count; i++) {
		const struct mmt_group *group = &groups[i];

		if (!freed_too && (!held_bytes(group) || (sort == MMT_SORT_MEMORY && group->joined_to)))
			continue;
		if (held_bytes(group) >= options->min_bytes)
			selection.groups[selection.count++] = group;
		else
			hide_group(&selection, group);
	}
	qsort_r(selection.groups, selection.count, sizeof(*selection.groups), compare_groups, &sort);
	while (options->limit && selection.count > options->limit)
		hide_group(&selection, selection.groups[--selection.count]);
	*selection_ret = selection;
	return NULL;
}

void selection_deinit(struct selection *selection)
{
	free(selection->groups);
}

static uint64_t magnitude(const struct mmt_diff_entry *entry)
{
	int64_t bytes = entry->bytes ? entry->bytes : entry->committed_bytes;

	return bytes < 0 ? -(uint64_t)bytes : (uint64_t)bytes;
}

struct mmt_error *selection_of_diff(const struct mmt_diff *diff, const struct mmt_text_options *options,
				    struct diff_selection *selection_ret)
{
	struct diff_selection selection = {
	    .entries = calloc(diff->entry_count + 1, sizeof(const struct mmt_diff_entry *)),
	};

	if (!selection.entries)
		return &error_no_memory;
	for (size_t i = 0; i < diff->entry_count; i++) {
		const struct mmt_diff_entry *entry = &diff->entries[i];

		if (magnitude(entry) >= options->min_bytes && (!options->limit || selection.count < options->limit))
			selection.entries[selection.count++] = entry;
		else
			selection.hidden_count++;
	}
	*selection_ret = selection;
	return NULL;
}

void selection_of_diff_deinit(struct diff_selection *selection)
{
	free(selection->entries);
}
