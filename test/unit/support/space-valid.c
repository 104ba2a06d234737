// SPDX-License-Identifier: LGPL-2.1-or-later
#include "support/space-valid.h"

#include <string.h>

#include "model/space/space-state.h"

/* Whether two intervals should be merged. */
static bool is_mergeable(const struct space_interval *left, const struct space_interval *right)
{
	return left->allocation == right->allocation && left->reconciled == right->reconciled &&
	       left->commit == right->commit && space_edit_continues(left, right);
}

static const char *find_disorder(const struct intervals *intervals, uint64_t page_bytes)
{
	struct interval_node *node;
	uint64_t end = 0;
	size_t count = 0;

	for (uint64_t position = 0; (node = intervals_next(intervals, position)); position = end, count++) {
		const struct space_interval *interval = &node->interval;

		if (interval->start >= interval->end)
			return "an interval is empty";
		if (interval->start < end)
			return "intervals overlap or are out of order";
		if ((interval->start & (page_bytes - 1)) ||
		    ((interval->end & (page_bytes - 1)) && interval->end != UINT64_MAX))
			return "an interval is not page aligned";
		end = interval->end;
		if (end == UINT64_MAX) {
			count++;
			break;
		}
	}
	return count == intervals->count ? NULL : "the number of intervals is wrong";
}

/* Recount, and search for neighbours that should have been merged. */
static const char *find_wrong_count(const struct space *space)
{
	const struct space_interval *interval, *previous = NULL;
	struct space_counts recount = space->counts;

	recount.mapped_bytes = recount.peaking_bytes = 0;
	recount.before_bytes = recount.kernel_bytes = recount.unknown_bytes = recount.data_bytes = 0;
	for (uint64_t position = 0; (interval = space_next(space, position)); position = interval->end) {
		uint64_t bytes = interval->end - interval->start;

		if (interval->attributes.unknown)
			recount.unknown_bytes += bytes;
		if (space_is_data(&interval->attributes))
			recount.data_bytes += bytes;
		if (interval->allocation == ALLOCATION_KERNEL)
			recount.kernel_bytes += bytes;
		else if (interval->allocation < ALLOCATION_FIRST)
			recount.before_bytes += bytes;
		else
			recount.mapped_bytes += bytes;
		if (interval->allocation >= ALLOCATION_FIRST && interval->attributes.protection &&
		    !interval->attributes.thread_stack)
			recount.peaking_bytes += bytes;
		if (space_edit_accessible(&interval->attributes) != (interval->commit != COMMIT_NONE))
			return "what is accessible has no commit, or what is not has one";
		if (previous && is_mergeable(previous, interval))
			return "equal neighbours are not merged";
		previous = interval;
	}
	if (recount.peak_bytes < recount.peaking_bytes)
		return "there was more than the peak";
	if (memcmp(&recount, &space->counts, sizeof(recount)))
		return "the totals are not the sum of the parts";
	return NULL;
}

/* Mapped pages are known: no page may be in both maps. */
static const char *find_contradiction(const struct space *space)
{
	const struct interval_node *unknown;

	for (uint64_t position = 0; (unknown = intervals_next(&space->unknown, position));
	     position = unknown->interval.end) {
		const struct space_interval *mapped = space_next(space, unknown->interval.start);

		if (mapped && mapped->start < unknown->interval.end)
			return "a page is mapped and unknown";
	}
	return NULL;
}

bool space_valid(const struct space *space, const char **why_ret)
{
	const char *why = find_disorder(&space->mapped, space->page_bytes);

	if (!why)
		why = find_disorder(&space->unknown, space->page_bytes);
	if (!why)
		why = find_disorder(&space->found, space->page_bytes);
	if (!why)
		why = find_disorder(&space->snapshot_races, space->page_bytes);
	if (!why)
		why = find_wrong_count(space);
	if (!why)
		why = find_contradiction(space);
	if (why)
		*why_ret = why;
	return !why;
}
