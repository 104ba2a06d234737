// SPDX-License-Identifier: LGPL-2.1-or-later
/* The kernel's own list of mappings, line by line: it defines what the model lacks, or checks it. */
#include "model/space-snapshot.h"

#include <sys/mman.h>

#include "model/space-edit.h"
#include "model/space-repair.h"

#define TOUCHED_MAXIMUM 65536
#define KERNEL_ADDRESSES (1ULL << 63)
#define PROTECTIONS (PROT_READ | PROT_WRITE | PROT_EXEC)

/* One stretch of a line: NULL attributes say that nothing is mapped there. */
struct stretch {
	uint64_t time_ns;
	uint64_t start, end;
	const struct space_attributes *attributes; /* of `start` */
};

static bool mark(struct intervals *intervals, uint64_t start, uint64_t end, uint64_t time_ns)
{
	const struct space_interval range = {.start = start, .end = end};

	return intervals_cut(intervals, start, end) && intervals_insert(intervals, &range, time_ns);
}

/* Lines to come are later than the last one, so older marks say nothing any more. */
static void forget_touched(struct space *space)
{
	struct interval_node *node;

	for (uint64_t position = 0; (node = intervals_next(&space->touched, position));) {
		position = node->interval.end;
		if (node->time_ns <= space->snapshot.line_time_ns)
			intervals_remove(&space->touched, node->interval.start);
	}
	if (space->touched.count > TOUCHED_MAXIMUM / 2)
		intervals_deinit(&space->touched);
}

bool space_snapshot_touch(struct space *space, uint64_t start, uint64_t end)
{
	if (!space->now_ns)
		return true;
	if (!space_repair_excuse(space, start, end))
		return false;
	if (!space->snapshot.open || space->snapshot.mode != SPACE_SNAPSHOT_DEFINE)
		return true;
	if (space->touched.count >= TOUCHED_MAXIMUM)
		forget_touched(space);
	return mark(&space->touched, start, end, space->now_ns);
}

/* Attributes of the model's interval at `address`, which lies within it. */
static struct space_attributes attributes_at(const struct space_interval *interval, uint64_t address)
{
	return space_edit_advance(&interval->attributes, address - interval->start);
}

static void complete_interval(void *context, struct space_interval *interval)
{
	const struct stretch *stretch = context;
	struct space_attributes told = space_edit_advance(stretch->attributes, interval->start - stretch->start);
	struct space_attributes *known = &interval->attributes;

	if (known->unknown) {
		interval->commit = space_edit_commit(&told);
		*known = told;
		return;
	}
	if (known->inode == SPACE_INODE_UNKNOWN) {
		known->device_major = told.device_major;
		known->device_minor = told.device_minor;
		known->inode = told.inode;
		known->file_offset = told.file_offset;
	}
	if (!known->path)
		known->path = told.path;
	known->stack |= told.stack;
	known->heap |= told.heap;
	known->shm |= told.shm;
}

/* Whether the model's interval needs nothing but details to be what the kernel says. */
static bool agrees(const struct space_interval *interval, const struct stretch *stretch)
{
	struct space_attributes model, told;
	uint64_t address = interval->start > stretch->start ? interval->start : stretch->start;

	if (!stretch->attributes)
		return false;
	if (interval->attributes.unknown)
		return true;
	model = attributes_at(interval, address);
	told = space_edit_advance(stretch->attributes, address - stretch->start);
	return space_edit_agree(&model, &told);
}

/* Put what the kernel has and the model has not: [start, end) is free. */
static bool define_missing(struct space *space, const struct stretch *stretch, uint64_t start, uint64_t end)
{
	struct space_interval interval = {.start = start, .end = end, .birth = space->snapshot.birth};
	const struct space_interval *above = space_find(space, end);

	if (start >= end || !stretch->attributes)
		return true;
	interval.attributes = space_edit_advance(stretch->attributes, start - stretch->start);
	if (interval.birth == BIRTH_UNKNOWN && stretch->attributes->stack)
		interval.birth = BIRTH_KERNEL;
	if (interval.birth == BIRTH_UNKNOWN && above && above->attributes.growsdown)
		interval.birth = above->birth;
	interval.commit = space_edit_commit(&interval.attributes);
	if (interval.birth == BIRTH_UNKNOWN)
		space->counts.repaired_bytes += end - start;
	return space_edit_bear(space, &interval);
}

/* The part of a line that no later call has touched becomes what the kernel says. */
static bool define_part(struct space *space, const struct stretch *stretch, uint64_t start, uint64_t end)
{
	struct stretch part = *stretch;
	uint64_t position = start;

	if (!intervals_cut(&space->unknown, start, end))
		return false;
	while (position < end) {
		struct interval_node *node = intervals_next(&space->mapped, position);
		uint64_t from, to;

		from = node && node->interval.start < end ? node->interval.start : end;
		if (from > position && !define_missing(space, &part, position, from))
			return false;
		if (from < position)
			from = position;
		if (from == end)
			return true;
		node = intervals_next(&space->mapped, from);
		to = node->interval.end < end ? node->interval.end : end;
		position = to;
		if (agrees(&node->interval, stretch)) {
			if (!space_edit_change(space, from, to, complete_interval, &part))
				return false;
			continue;
		}
		if (space->snapshot.birth == BIRTH_UNKNOWN && !stretch->attributes)
			space->counts.repaired_bytes += to - from;
		if (!space_edit_release(space, from, to, NULL) || !define_missing(space, &part, from, to))
			return false;
	}
	return true;
}

static bool define_stretch(struct space *space, const struct stretch *stretch)
{
	uint64_t position = stretch->start;
	struct interval_node *node;

	while (position < stretch->end) {
		uint64_t stop = stretch->end, resume = stretch->end;

		for (uint64_t from = position; (node = intervals_next(&space->touched, from));
		     from = node->interval.end) {
			if (node->interval.start >= stretch->end)
				break;
			if (node->time_ns > stretch->time_ns) {
				stop = node->interval.start > position ? node->interval.start : position;
				resume = node->interval.end < stretch->end ? node->interval.end : stretch->end;
				break;
			}
		}
		if (stop > position && !define_part(space, stretch, position, stop))
			return false;
		position = resume;
	}
	return true;
}

static bool differ(struct space *space, const struct stretch *stretch, uint64_t start, uint64_t end, bool wrong)
{
	struct space_attributes told;

	if (!stretch->attributes)
		return space_repair_mark(space, start, end, NULL, stretch->time_ns, wrong);
	told = space_edit_advance(stretch->attributes, start - stretch->start);
	return space_repair_mark(space, start, end, &told, stretch->time_ns, wrong);
}

/* A stack may have grown down to `start` from the model's interval at `end` unseen. */
static bool stack_growth(const struct space *space, const struct stretch *stretch, uint64_t end)
{
	const struct space_interval *above = space_find(space, end);

	return above && above->start == end && (above->attributes.growsdown || above->attributes.stack) &&
	       agrees(above, stretch);
}

/* [start, end) is free in the model. */
static bool check_missing(struct space *space, const struct stretch *stretch, uint64_t start, uint64_t end)
{
	uint64_t position = start;
	struct interval_node *node;

	if (!stretch->attributes || start >= KERNEL_ADDRESSES)
		return true;
	if (stack_growth(space, stretch, end))
		return differ(space, stretch, start, end, false);
	while ((node = intervals_within(&space->unknown, position, end))) {
		uint64_t from = node->interval.start > position ? node->interval.start : position;
		uint64_t to = node->interval.end < end ? node->interval.end : end;

		if (!differ(space, stretch, position, from, true) || !differ(space, stretch, from, to, false))
			return false;
		space->snapshot.check.undecided_bytes += to - from;
		position = to;
	}
	return differ(space, stretch, position, end, true);
}

/* [start, end) is a part of the model's `interval`. */
static bool check_held(struct space *space, const struct stretch *stretch, const struct space_interval *interval,
		       uint64_t start, uint64_t end)
{
	if (interval->attributes.unknown && stretch->attributes)
		space->snapshot.check.undecided_bytes += end - start;
	else if (!agrees(interval, stretch))
		return differ(space, stretch, start, end, true);
	if (interval->attributes.unknown || interval->attributes.inode == SPACE_INODE_UNKNOWN)
		return differ(space, stretch, start, end, false);
	return true;
}

static bool check_stretch(struct space *space, const struct stretch *stretch)
{
	uint64_t position = stretch->start;

	while (position < stretch->end) {
		struct interval_node *node = intervals_next(&space->mapped, position);
		uint64_t from = stretch->end, to;

		if (node && node->interval.start < stretch->end)
			from = node->interval.start > position ? node->interval.start : position;
		if (!check_missing(space, stretch, position, from))
			return false;
		if (from == stretch->end)
			return true;
		to = node->interval.end < stretch->end ? node->interval.end : stretch->end;
		if (!check_held(space, stretch, &node->interval, from, to))
			return false;
		position = to;
	}
	return true;
}

static bool apply_stretch(struct space *space, const struct stretch *stretch)
{
	if (stretch->start >= stretch->end)
		return true;
	if (space->snapshot.mode == SPACE_SNAPSHOT_CHECK)
		return check_stretch(space, stretch);
	return define_stretch(space, stretch);
}

struct mmt_error *space_snapshot_begin(struct space *space, enum space_snapshot_mode mode, uint32_t birth,
				       uint64_t time_ns)
{
	if (!space_repair_late(space, time_ns))
		return &error_no_memory;
	space_repair_forget(space);
	space->snapshot = (struct snapshot){.open = true, .mode = mode, .birth = birth, .line_time_ns = time_ns};
	intervals_deinit(&space->touched);
	return NULL;
}

struct mmt_error *space_snapshot_line(struct space *space, uint64_t time_ns, uint64_t start, uint64_t end,
				      const struct space_attributes *attributes)
{
	struct snapshot *snapshot = &space->snapshot;
	struct stretch gap = {.time_ns = time_ns, .start = snapshot->position, .end = start};
	struct stretch line = {.time_ns = time_ns, .end = end};
	struct space_attributes told;

	if (!snapshot->open || start >= end || end <= snapshot->position || ((start | end) & (space->page_bytes - 1)))
		return NULL;
	/* A mapping that was merged with the one before it, or came over that one's end, after that line was read is
	 * told from its start. */
	line.start = start < snapshot->position ? snapshot->position : start;
	told = space_edit_advance(attributes, line.start - start);
	told.protection &= PROTECTIONS;
	line.attributes = &told;
	snapshot->line_time_ns = time_ns;
	snapshot->check.mappings++;
	if (!apply_stretch(space, &gap) || !apply_stretch(space, &line))
		return &error_no_memory;
	snapshot->position = end;
	if (snapshot->mode == SPACE_SNAPSHOT_DEFINE) {
		space->described_ns = time_ns;
		if (told.heap && !space->break_known) {
			space->break_known = true;
			space->program_break = end;
		}
	}
	return NULL;
}

struct mmt_error *space_snapshot_end(struct space *space, uint64_t time_ns)
{
	struct snapshot *snapshot = &space->snapshot;
	struct stretch rest = {.time_ns = time_ns, .start = snapshot->position, .end = UINT64_MAX};

	if (!snapshot->open)
		return NULL;
	if (!apply_stretch(space, &rest))
		return &error_no_memory;
	snapshot->open = false;
	intervals_deinit(&space->touched);
	if (snapshot->mode == SPACE_SNAPSHOT_DEFINE) {
		space->described = true;
	} else {
		snapshot->check.done = true;
		snapshot->check.time_ns = snapshot->line_time_ns;
		space->repair_due = space->differing.count || space->unsaid.count;
		space->check = snapshot->check;
	}
	return NULL;
}

struct space_check space_check_result(const struct space *space)
{
	return space->check;
}
