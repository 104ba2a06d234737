// SPDX-License-Identifier: LGPL-2.1-or-later
#include "analysis/report/row-causes.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/report/group-details.h"
#include "base/cleanup.h"
#include "base/map.h"
#include "base/wide-sum.h"

#define LEAK_PREFIX "leak "
#define LOST_NAME "[lost calls]"
#define LEAK_SHARE 16 /* a cause is a leak if at least 1/16 of its memory leaks */

struct causes {
	struct mmt_report *report;
	const struct mmt_group *groups;
	struct intern names; /* its ids are those of causes */
	uint32_t *of_groups; /* by place of the group: its cause */
	struct mmt_cause *items;
	size_t count;
	uint64_t *leaking_bytes, *largest_bytes; /* by cause */
};

/* Show a row that only reserved memory together with the row that committed most of it. */
static void join_halves(struct mmt_group *groups, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		struct mmt_group *reserver = groups[i].reserved_by ? &groups[groups[i].reserved_by - 1] : NULL;

		if (!reserver || !groups[i].memory_bytes || reserver->memory_bytes || reserver->joined_to)
			continue;
		reserver->joined_to = groups[i].id;
		/* Only the reserving row has the number of mappings. */
		if (!groups[i].hint)
			groups[i].hint = reserver->hint;
	}
}

static const struct mmt_group *find_cause_group(const struct causes *causes, const struct mmt_group *group)
{
	if (group->unfreed_bytes || !group->reserved_by)
		return group;
	return &causes->groups[group->reserved_by - 1];
}

static char *function_of_group(const struct mmt_group *group)
{
	return rows_function_name(group->origin < group->frame_count ? group->frames[group->origin] : NULL);
}

/* Leaks of a function are a separate cause from its other memory: it may be a wrapper that others call. */
static uint32_t find_name(struct causes *causes, const struct mmt_group *group)
{
	const struct mmt_group *origin = find_cause_group(causes, group);
	const char pattern[] = {(char)origin->pattern, 0};
	CLEANUP(free) char *name = NULL, *key = NULL;

	if (mmt_pattern_is_by_design(origin->pattern))
		return intern_put_string(&causes->names, pattern);
	if (origin->lost)
		return intern_put_string(&causes->names, LOST_NAME);
	name = function_of_group(origin);
	if (!name || asprintf(&key, "%s%s", origin->verdict == MMT_LIFETIME_LEAK ? LEAK_PREFIX : "", name) < 0) {
		key = NULL;
		return INTERN_NONE;
	}
	return intern_put_string(&causes->names, key);
}

/* Start a cause with its first group, which is the largest. */
static struct mmt_error *start_cause(struct causes *causes, const struct mmt_group *group, struct arena *arena)
{
	const struct mmt_group *origin = find_cause_group(causes, group);
	struct mmt_cause *cause = &causes->items[causes->count++];
	CLEANUP(free) char *name = NULL;

	*cause = (struct mmt_cause){.pattern =
					mmt_pattern_is_by_design(origin->pattern) ? origin->pattern : MMT_PATTERN_NONE,
				    .memory_class = group->memory_class,
				    .file = group->file,
				    .resident_bytes = MMT_UNKNOWN,
				    .first_ns = UINT64_MAX};
	if (mmt_pattern_is_by_design(origin->pattern))
		return NULL;
	name = origin->lost ? strdup(LOST_NAME) : function_of_group(origin);
	cause->name = name ? arena_string(arena, name) : NULL;
	return cause->name ? NULL : &error_no_memory;
}

static void add(uint64_t *sum, uint64_t bytes)
{
	if (bytes != MMT_UNKNOWN)
		*sum = saturating_add(*sum == MMT_UNKNOWN ? 0 : *sum, bytes, MMT_BYTES_MAX);
}

static void add_group(struct causes *causes, uint32_t number, const struct mmt_group *group)
{
	struct mmt_cause *cause = &causes->items[number];
	uint64_t size = group->memory_bytes ? group->memory_bytes : group->unfreed_bytes;

	add(&cause->memory_bytes, group->memory_bytes);
	add(&cause->unfreed_bytes, group->unfreed_bytes);
	add(&cause->committed_bytes, group->committed_bytes);
	add(&cause->committed_bytes, group->committed_before_bytes);
	add(&cause->reserved_bytes, group->reserved_bytes);
	add(&cause->resident_bytes, group->resident_bytes);
	add(&cause->resident_bytes, group->resident_before_bytes);
	cause->unfreed_count += group->unfreed_count;
	cause->mapping_count += group->mapping_count;
	cause->group_count++;
	if (group->bytes_per_minute == MMT_UNKNOWN)
		cause->bytes_per_minute = MMT_UNKNOWN;
	else
		add(&cause->bytes_per_minute, group->bytes_per_minute);
	if (group->unfreed_count) {
		cause->first_ns = group->first_ns < cause->first_ns ? group->first_ns : cause->first_ns;
		cause->last_ns = group->last_ns > cause->last_ns ? group->last_ns : cause->last_ns;
	}
	if (group->verdict == MMT_LIFETIME_LEAK)
		add(&causes->leaking_bytes[number], size);
	if (group->verdict && size >= causes->largest_bytes[number]) {
		causes->largest_bytes[number] = size;
		cause->verdict = group->verdict;
	}
}

/* A leak decides unless it is a small part; otherwise the largest row with a verdict does. */
static void decide(struct causes *causes)
{
	for (size_t i = 0; i < causes->count; i++) {
		struct mmt_cause *cause = &causes->items[i];
		uint64_t size = cause->memory_bytes ? cause->memory_bytes : cause->unfreed_bytes;

		if (causes->leaking_bytes[i] && causes->leaking_bytes[i] >= size / LEAK_SHARE)
			cause->verdict = MMT_LIFETIME_LEAK;
		if (!cause->unfreed_count)
			cause->first_ns = cause->last_ns = MMT_UNKNOWN;
	}
}

static struct mmt_error *add_groups(struct causes *causes, struct arena *arena)
{
	size_t count = causes->report->group_count;

	for (size_t i = 0; i < count; i++) {
		const struct mmt_group *group = &causes->groups[i];
		struct mmt_error *error = NULL;

		causes->of_groups[i] = INTERN_NONE;
		if (!group->unfreed_bytes && !group->memory_bytes)
			continue;
		causes->of_groups[i] = find_name(causes, group);
		if (causes->of_groups[i] == INTERN_NONE)
			return &error_no_memory;
		if (causes->of_groups[i] == causes->count)
			error = start_cause(causes, group, arena);
		if (error)
			return error;
		add_group(causes, causes->of_groups[i], group);
	}
	return NULL;
}

/* True if a leak of the same function is a cause of its own. */
static int has_leaking_sibling(const struct causes *causes, const struct mmt_cause *cause)
{
	CLEANUP(free) char *key = NULL;

	if (!cause->name)
		return false;
	if (asprintf(&key, LEAK_PREFIX "%s", cause->name) < 0) {
		key = NULL;
		return -1;
	}
	return intern_find(&causes->names, key, strlen(key) + 1) != INTERN_NONE;
}

/*
 * A path whose JIT code is compiled again while it runs has several stacks one after another, each of which looks like a
 * cache by itself. So while RSS grows, judge the mappings of a cause together.
 */
static struct mmt_error *judge_together(struct causes *causes, const struct ledger *ledger, const struct rows *rows)
{
	CLEANUP(free) uint32_t *sets = calloc(rows->items.count + 1, sizeof(*sets));
	CLEANUP(free) enum mmt_lifetime_verdict *verdicts = calloc(causes->count + 1, sizeof(*verdicts));
	struct mmt_error *error;

	if (!sets || !verdicts)
		return &error_no_memory;
	for (size_t i = 0; i < rows->items.count; i++) {
		uint32_t group = rows->group_ids[i];

		sets[i] = group ? causes->of_groups[group - 1] : INTERN_NONE;
	}
	error = group_details_judge_sets(ledger, rows, causes->report, sets, causes->count, verdicts);
	for (size_t i = 0; !error && i < causes->count; i++) {
		struct mmt_cause *cause = &causes->items[i];
		int leaking_sibling = has_leaking_sibling(causes, cause);

		if (leaking_sibling < 0)
			return &error_no_memory;
		if (leaking_sibling || cause->verdict == MMT_LIFETIME_LEAK || verdicts[i] != MMT_LIFETIME_LEAK)
			continue;
		cause->verdict = MMT_LIFETIME_LEAK;
		cause->leaks_together = true;
	}
	return error;
}

/* List the IDs of the groups of each cause. */
static struct mmt_error *list_groups(struct causes *causes, struct arena *arena)
{
	for (size_t i = 0; i < causes->count; i++) {
		causes->items[i].groups = arena_alloc(arena, causes->items[i].group_count, sizeof(uint32_t));
		if (!causes->items[i].groups)
			return &error_no_memory;
		causes->items[i].group_count = 0;
	}
	for (size_t i = 0; i < causes->report->group_count; i++) {
		struct mmt_cause *cause;

		if (causes->of_groups[i] == INTERN_NONE)
			continue;
		cause = &causes->items[causes->of_groups[i]];
		((uint32_t *)cause->groups)[cause->group_count++] = causes->groups[i].id;
	}
	return NULL;
}

static int compare_causes(const void *left, const void *right)
{
	const struct mmt_cause *a = left, *b = right;

	bool a_leaks = a->verdict == MMT_LIFETIME_LEAK && a->memory_bytes,
	     b_leaks = b->verdict == MMT_LIFETIME_LEAK && b->memory_bytes;

	if (a_leaks != b_leaks)
		return a_leaks ? -1 : 1;
	if (a->memory_bytes != b->memory_bytes)
		return a->memory_bytes < b->memory_bytes ? 1 : -1;
	if (a->unfreed_bytes != b->unfreed_bytes)
		return a->unfreed_bytes < b->unfreed_bytes ? 1 : -1;
	return a->groups[0] < b->groups[0] ? -1 : a->groups[0] > b->groups[0];
}

struct mmt_error *row_causes_build(struct mmt_report *report, struct mmt_group *groups, const struct ledger *ledger,
				   const struct rows *rows, struct arena *arena)
{
	size_t count = report->group_count;
	CLEANUP(free) uint32_t *of_groups = calloc(count + 1, sizeof(*of_groups));
	CLEANUP(free) uint64_t *leaking_bytes = calloc(count + 1, sizeof(*leaking_bytes));
	CLEANUP(free) uint64_t *largest_bytes = calloc(count + 1, sizeof(*largest_bytes));
	CLEANUP(free) struct mmt_cause *items = calloc(count + 1, sizeof(*items));
	struct causes causes = {.report = report,
				.groups = groups,
				.of_groups = of_groups,
				.items = items,
				.leaking_bytes = leaking_bytes,
				.largest_bytes = largest_bytes};
	struct mmt_cause *kept;
	struct mmt_error *error;

	if (report->then_by != MMT_BY_STACK || (report->by != MMT_BY_STACK && report->by != MMT_BY_THREAD))
		return NULL;
	if (!of_groups || !leaking_bytes || !largest_bytes || !items)
		return &error_no_memory;
	join_halves(groups, count);
	error = add_groups(&causes, arena);
	if (!error)
		error = list_groups(&causes, arena);
	if (!error) {
		decide(&causes);
		if (report->growth.verdict == MMT_VERDICT_GROWING)
			error = judge_together(&causes, ledger, rows);
	}
	intern_deinit(&causes.names);
	if (error)
		return error;
	kept = arena_alloc(arena, causes.count, sizeof(*kept));
	if (!kept)
		return &error_no_memory;
	qsort(items, causes.count, sizeof(*items), compare_causes);
	if (causes.count)
		memcpy(kept, items, causes.count * sizeof(*items));
	for (size_t i = 0; i < causes.count; i++) {
		for (size_t j = 0; j < kept[i].group_count; j++)
			groups[kept[i].groups[j] - 1].cause = (uint32_t)i + 1;
	}
	report->causes = kept;
	report->cause_count = causes.count;
	return NULL;
}
