// SPDX-License-Identifier: LGPL-2.1-or-later
#include "model/space/reconcile.h"

#include "model/space/space-state.h"

#define LATE_NS 1000000000ULL	  /* a call that was in flight while its page was read returns within this time */
#define RECONCILE_NS 500000000ULL /* nearly all calls do so within this time, even if threads wait for a CPU */
#define END_NS 100000000ULL	  /* the kernel may unmap a process's memory this long before its last EXIT */

/* In a mark, the interval's allocation is MARK_NOTHING or MARK_MAPPED, and its commit is the allocation to use if the
 * mapping is missing. Attributes are relative to address 0. */
enum { MARK_NOTHING, MARK_MAPPED };

static bool same_page(const struct space_interval *left, const struct space_interval *right)
{
	return left->allocation == right->allocation && space_edit_agree(&left->attributes, &right->attributes);
}

/* When the difference at range->start was first found; cuts the range where that time changes. */
static uint64_t first_found(const struct intervals *earlier, struct space_interval *range, uint64_t time_ns)
{
	const struct interval_node *node = intervals_within(earlier, range->start, range->end);

	if (!node)
		return time_ns;
	if (node->interval.start > range->start) {
		range->end = node->interval.start;
		return time_ns;
	}
	if (node->interval.end < range->end)
		range->end = node->interval.end;
	return same_page(&node->interval, range) ? node->time_ns : time_ns;
}

bool reconcile_mark(struct space *space, uint64_t start, uint64_t end, const struct space_attributes *attributes,
		    uint64_t time_ns, bool wrong)
{
	struct intervals *marks = wrong ? &space->finding.differing : &space->finding.unsaid;
	const struct intervals *earlier = wrong ? &space->found.differing : &space->found.unsaid;
	struct space_check *check = &space->snapshot.check;
	struct space_interval range = {.allocation = MARK_NOTHING};

	if (start >= end)
		return true;
	if (attributes) {
		range.attributes = space_edit_advance(attributes, -start);
		range.allocation = MARK_MAPPED;
		range.commit = space->snapshot.mode == SPACE_SNAPSHOT_DEFINE ? space->snapshot.allocation
									     : (uint32_t)ALLOCATION_BEFORE;
	}
	if (wrong) {
		if (!check->mismatch_bytes)
			check->first_wrong = start;
		check->mismatch_bytes += end - start;
	}
	for (range.start = start; range.start < end; range.start = range.end) {
		uint64_t found_ns;

		range.end = end;
		found_ns = first_found(earlier, &range, time_ns);
		if (!intervals_insert(marks, &range, found_ns))
			return false;
	}
	return true;
}

/* Differing pages become unverifiable if a call that may have been in flight when they were read changes them. */
static bool excuse(struct space *space, struct intervals *differing, struct space_check *check, uint64_t start,
		   uint64_t end)
{
	struct interval_node *node;

	for (uint64_t position = start; (node = intervals_within(differing, position, end));) {
		uint64_t from = node->interval.start > start ? node->interval.start : start;
		uint64_t to = node->interval.end < end ? node->interval.end : end;
		bool in_flight = space->last_snapshot || space->now_ns - node->time_ns <= LATE_NS;

		position = to;
		if (space->now_ns <= node->time_ns)
			continue;
		if (!intervals_cut(differing, from, to))
			return false;
		if (!in_flight)
			continue;
		check->unverifiable_bytes += to - from;
		check->mismatch_bytes -= to - from;
		node = intervals_next(differing, 0);
		check->first_wrong = check->mismatch_bytes && node ? node->interval.start : 0;
	}
	return true;
}

bool reconcile_excuse(struct space *space, uint64_t start, uint64_t end)
{
	return intervals_cut(&space->found.unsaid, start, end) && intervals_cut(&space->finding.unsaid, start, end) &&
	       excuse(space, &space->found.differing, &space->check, start, end) &&
	       excuse(space, &space->finding.differing, &space->snapshot.check, start, end);
}

static void correct_protection(void *context, struct space_interval *interval)
{
	uint32_t protection = *(const uint32_t *)context;
	bool accessible = space_edit_accessible(&interval->attributes);

	interval->attributes.protection = protection;
	if (!protection || !accessible)
		interval->commit = space_edit_commit(&interval->attributes);
}

struct correction {
	const struct space_attributes *kernel; /* relative to address 0 */
};

/* Add details that only the kernel's maps have; the mapping stays the same. */
static void complete(void *context, struct space_interval *interval)
{
	const struct correction *correction = context;
	struct space_attributes told = space_edit_advance(correction->kernel, interval->start);
	struct space_attributes *known = &interval->attributes;

	if (known->unknown) {
		*known = told;
		interval->commit = space_edit_commit(known);
		return;
	}
	known->device_major = told.device_major;
	known->device_minor = told.device_minor;
	known->inode = told.inode;
	known->file_offset = told.file_offset;
	if (!known->path)
		known->path = told.path;
	known->heap |= told.heap;
	known->stack |= told.stack;
	known->shm |= told.shm;
}

/* The kernel has a mapping where the model has none. */
static bool reconcile_missing(struct space *space, const struct space_interval *mark, uint32_t allocation)
{
	struct space_interval interval = {.start = mark->start, .end = mark->end, .allocation = allocation};
	const struct space_interval *above = space_find(space, mark->end);

	interval.attributes = space_edit_advance(&mark->attributes, mark->start);
	if (interval.attributes.stack)
		interval.allocation = ALLOCATION_KERNEL;
	else if (above && above->start == mark->end && above->attributes.growsdown && allocation != ALLOCATION_UNKNOWN)
		interval.allocation = above->allocation;
	interval.commit = space_edit_commit(&interval.attributes);
	if (interval.allocation == ALLOCATION_UNKNOWN)
		space->counts.reconciled_bytes += mark->end - mark->start;
	return space_edit_allocate(space, &interval);
}

/* Both have a mapping: [mark->start, mark->end) lies within one interval of the model. */
static bool reconcile_different(struct space *space, const struct space_interval *mark, uint32_t allocation)
{
	struct space_interval held = *space_find(space, mark->start);
	struct space_attributes told = space_edit_advance(&mark->attributes, mark->start);
	struct correction correction = {&mark->attributes};
	uint32_t protection = told.protection;

	held.attributes = space_edit_advance(&held.attributes, mark->start - held.start);
	if (held.attributes.unknown || space_edit_agree(&held.attributes, &told))
		return space_edit_change(space, mark->start, mark->end, complete, &correction);
	held.attributes.protection = protection;
	if (space_edit_agree(&held.attributes, &told)) {
		space->counts.reconciled_bytes += mark->end - mark->start;
		return space_edit_change(space, mark->start, mark->end, correct_protection, &protection) &&
		       space_edit_change(space, mark->start, mark->end, complete, &correction);
	}
	/* A different mapping: its calls, and the unmap of the old one, were not recorded. */
	return space_edit_release(space, mark->start, mark->end, NULL) && reconcile_missing(space, mark, allocation);
}

static bool reconcile(struct space *space, const struct space_interval *mark, uint32_t allocation)
{
	struct space_interval part = *mark;

	if (!intervals_cut(&space->unknown, mark->start, mark->end))
		return false;
	for (uint64_t position = mark->start; position < mark->end; position = part.end) {
		const struct space_interval *next = space_next(space, position);
		bool held = next && next->start <= position;
		uint64_t stop = !next ? mark->end : held ? next->end : next->start;
		bool done = true;

		part.start = position;
		part.end = stop < mark->end ? stop : mark->end;
		if (mark->allocation == MARK_NOTHING) {
			if (held)
				space->counts.reconciled_bytes += part.end - part.start;
			done = !held || space_edit_release(space, part.start, part.end, NULL);
		} else if (held) {
			done = reconcile_different(space, &part, allocation);
		} else {
			done = reconcile_missing(space, &part, allocation);
		}
		if (!done)
			return false;
	}
	return true;
}

/* Reconcile the marks first found by `until_ns`. */
static bool reconcile_marks(struct space *space, struct intervals *marks, uint64_t until_ns, bool wrong)
{
	struct interval_node *node;

	for (uint64_t position = 0; (node = intervals_next(marks, position));) {
		const struct space_interval mark = node->interval;

		position = mark.end;
		if (node->time_ns > until_ns) {
			if (node->time_ns < space->reconcile_ns)
				space->reconcile_ns = node->time_ns;
			continue;
		}
		intervals_remove(marks, mark.start);
		if (!reconcile(space, &mark, wrong ? ALLOCATION_UNKNOWN : mark.commit))
			return false;
	}
	return true;
}

static bool reconcile_found(struct space *space, uint64_t until_ns)
{
	space->reconcile_ns = UINT64_MAX;
	return reconcile_marks(space, &space->found.differing, until_ns, true) &&
	       reconcile_marks(space, &space->found.unsaid, until_ns, false);
}

bool reconcile_all(struct space *space)
{
	return reconcile_found(space, UINT64_MAX);
}

bool reconcile_late(struct space *space, uint64_t now_ns)
{
	if (space->last_snapshot || now_ns <= space->reconcile_ns || now_ns - space->reconcile_ns < RECONCILE_NS)
		return true;
	space->reconciled_ns = now_ns;
	return reconcile_found(space, now_ns - RECONCILE_NS);
}

bool reconcile_ended(struct space *space, uint64_t now_ns)
{
	return now_ns < END_NS || reconcile_found(space, now_ns - END_NS);
}

static void forget(struct findings *findings)
{
	intervals_deinit(&findings->differing);
	intervals_deinit(&findings->unsaid);
}

void reconcile_begin(struct space *space)
{
	forget(&space->finding);
}

void reconcile_end(struct space *space)
{
	struct interval_node *node;

	forget(&space->found);
	space->found = space->finding;
	space->finding = (struct findings){0};
	if (space->snapshot.mode == SPACE_SNAPSHOT_CHECK)
		space->check = space->snapshot.check;
	space->reconcile_ns = UINT64_MAX;
	for (uint64_t position = 0; (node = intervals_next(&space->found.differing, position));
	     position = node->interval.end)
		space->reconcile_ns = node->time_ns < space->reconcile_ns ? node->time_ns : space->reconcile_ns;
	for (uint64_t position = 0; (node = intervals_next(&space->found.unsaid, position));
	     position = node->interval.end)
		space->reconcile_ns = node->time_ns < space->reconcile_ns ? node->time_ns : space->reconcile_ns;
}

void reconcile_forget(struct space *space)
{
	forget(&space->found);
	forget(&space->finding);
	space->reconcile_ns = UINT64_MAX;
}

bool reconcile_presumed(struct space *space, uint64_t start, uint64_t end)
{
	struct interval_node *node;

	for (uint64_t position = start; (node = intervals_within(&space->found.differing, position, end));) {
		struct space_interval part = node->interval;
		const struct space_interval *held;

		if (part.start < start)
			part.start = start;
		if (part.end > end)
			part.end = end;
		position = part.end;
		held = space_next(space, part.start);
		if (part.allocation == MARK_NOTHING || (held && held->start < part.end))
			continue;
		if (!intervals_cut(&space->found.differing, part.start, part.end) ||
		    !reconcile(space, &part, ALLOCATION_UNKNOWN))
			return false;
		space->reconciled_ns = space->now_ns;
	}
	return true;
}
