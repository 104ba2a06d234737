// SPDX-License-Identifier: LGPL-2.1-or-later
#include "model/space-repair.h"

#include "model/space-edit.h"

#define LATE_NS 1000000000ULL  /* a call in flight while its page was read returns within this time */
#define REPAIR_NS 100000000ULL /* most return within this time */

/* In the marks the interval's birth says whether something is mapped; attributes are those that address 0 would have.
 */
enum { MARK_NOTHING, MARK_MAPPED };

static struct space_check *current_check(struct space *space)
{
	bool checking = space->snapshot.open && space->snapshot.mode == SPACE_SNAPSHOT_CHECK;

	return checking ? &space->snapshot.check : &space->check;
}

bool space_repair_mark(struct space *space, uint64_t start, uint64_t end, const struct space_attributes *attributes,
		       uint64_t time_ns, bool wrong)
{
	struct intervals *marks = wrong ? &space->differing : &space->unsaid;
	struct space_check *check = &space->snapshot.check;
	struct space_interval range = {.start = start, .end = end, .birth = MARK_NOTHING};

	if (start >= end)
		return true;
	if (attributes) {
		range.attributes = space_edit_advance(attributes, -start);
		range.birth = MARK_MAPPED;
	}
	if (wrong) {
		if (!check->wrong_bytes)
			check->first_wrong = start;
		check->wrong_bytes += end - start;
	}
	return intervals_insert(marks, &range, time_ns);
}

/* Pages found wrong are undecided when a call settles them that may have been in flight when they were read. */
bool space_repair_excuse(struct space *space, uint64_t start, uint64_t end)
{
	struct space_check *check = current_check(space);
	struct interval_node *node;

	if (!intervals_cut(&space->unsaid, start, end))
		return false;
	if (!space->differing.count)
		return true;
	for (uint64_t position = start; (node = intervals_within(&space->differing, position, end));) {
		uint64_t from = node->interval.start > start ? node->interval.start : start;
		uint64_t to = node->interval.end < end ? node->interval.end : end;
		bool in_flight = space->now_ns - node->time_ns <= LATE_NS;

		position = to;
		if (space->now_ns <= node->time_ns)
			continue;
		if (!intervals_cut(&space->differing, from, to))
			return false;
		if (!in_flight)
			continue;
		check->undecided_bytes += to - from;
		check->wrong_bytes -= to - from;
		node = intervals_next(&space->differing, 0);
		check->first_wrong = check->wrong_bytes && node ? node->interval.start : 0;
	}
	return true;
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
	const struct space_attributes *kernel; /* that address 0 would have */
};

/* Details that only the kernel's maps tell; the mapping is the same. */
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

/* The kernel has the mapping, the model has nothing there. */
static bool repair_missing(struct space *space, const struct space_interval *mark, uint32_t birth)
{
	struct space_interval interval = {.start = mark->start, .end = mark->end, .birth = birth};
	const struct space_interval *above = space_find(space, mark->end);

	interval.attributes = space_edit_advance(&mark->attributes, mark->start);
	if (interval.attributes.stack)
		interval.birth = BIRTH_KERNEL;
	else if (above && above->start == mark->end && above->attributes.growsdown && birth != BIRTH_UNKNOWN)
		interval.birth = above->birth;
	interval.commit = space_edit_commit(&interval.attributes);
	if (interval.birth == BIRTH_UNKNOWN)
		space->counts.repaired_bytes += mark->end - mark->start;
	return space_edit_bear(space, &interval);
}

/* Both have something: [mark->start, mark->end) is one interval of the model, or a part of one. */
static bool repair_different(struct space *space, const struct space_interval *mark, uint32_t birth)
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
		space->counts.repaired_bytes += mark->end - mark->start;
		return space_edit_change(space, mark->start, mark->end, correct_protection, &protection) &&
		       space_edit_change(space, mark->start, mark->end, complete, &correction);
	}
	/* Another mapping: that one went and this one came unseen. */
	return space_edit_release(space, mark->start, mark->end, NULL) && repair_missing(space, mark, birth);
}

static bool repair(struct space *space, const struct space_interval *mark, uint32_t birth)
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
		if (mark->birth == MARK_NOTHING) {
			if (held)
				space->counts.repaired_bytes += part.end - part.start;
			done = !held || space_edit_release(space, part.start, part.end, NULL);
		} else if (held) {
			done = repair_different(space, &part, birth);
		} else {
			done = repair_missing(space, &part, birth);
		}
		if (!done)
			return false;
	}
	return true;
}

static bool repair_marks(struct space *space, struct intervals *marks, uint32_t birth)
{
	struct interval_node *node;

	while ((node = intervals_next(marks, 0))) {
		const struct space_interval mark = node->interval;

		intervals_remove(marks, mark.start);
		if (!repair(space, &mark, birth))
			return false;
	}
	return true;
}

bool space_repair_all(struct space *space)
{
	bool done = true;

	if (space->repair_due) {
		space->repair_due = false;
		if (space->differing.count)
			space->repaired_ns = space->check.time_ns;
		done = repair_marks(space, &space->differing, BIRTH_UNKNOWN) &&
		       repair_marks(space, &space->unsaid, BIRTH_BEFORE);
	}
	space_repair_forget(space);
	return done;
}

bool space_repair_late(struct space *space, uint64_t now_ns)
{
	if (!space->repair_due || now_ns <= space->check.time_ns || now_ns - space->check.time_ns < REPAIR_NS)
		return true;
	return space_repair_all(space);
}

void space_repair_forget(struct space *space)
{
	space->repair_due = false;
	intervals_deinit(&space->differing);
	intervals_deinit(&space->unsaid);
}

bool space_repair_presumed(struct space *space, uint64_t start, uint64_t end)
{
	struct interval_node *node;

	if (!space->repair_due)
		return true;
	for (uint64_t position = start; (node = intervals_within(&space->differing, position, end));) {
		struct space_interval part = node->interval;

		position = part.end < end ? part.end : end;
		if (part.start < start)
			part.start = start;
		part.end = position;
		if (part.birth == MARK_NOTHING || space_next(space, part.start) == NULL ||
		    space_next(space, part.start)->start >= part.end) {
			if (part.birth == MARK_NOTHING)
				continue;
			if (!intervals_cut(&space->differing, part.start, part.end) ||
			    !repair(space, &part, BIRTH_UNKNOWN))
				return false;
			space->repaired_ns = space->check.time_ns;
		}
	}
	return true;
}
