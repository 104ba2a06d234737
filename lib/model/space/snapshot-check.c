// SPDX-License-Identifier: LGPL-2.1-or-later
#include "model/space/snapshot-check.h"

#include <sys/mman.h>

#include "base/limits.h"
#include "model/space/pending-unmaps.h"

#define READING UINT64_MAX	  /* in place of a time: the current reading */
#define LATE_NS 1000000000ULL	  /* a call that was in flight while its page was read returns within this time */
#define RECONCILE_NS 500000000ULL /* nearly all calls do so within this time, even if threads wait for a CPU */
#define END_NS 100000000ULL	  /* the kernel may unmap a process's memory this long before its last EXIT */

/* In a mark, the interval's allocation is a combination of these, and its commit is the allocation to use if the
 * mapping is missing. Attributes are relative to address 0. */
enum {
	MARK_MAPPED = 1,     /* in the kernel */
	MARK_UNRECORDED = 2, /* the model could not know of the difference */
};

/* State of a page before its reading. */
enum race_kind {
	RACE_UNKNOWN, /* unknown whether it is mapped */
	RACE_NOTHING,
	RACE_HELD,
};

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
	return node->interval.allocation == range->allocation &&
		       space_edit_agree(&node->interval.attributes, &range->attributes)
		   ? node->time_ns
		   : time_ns;
}

/* The open snapshot read `attributes` (of `start`; NULL: no mapping) at `time_ns`, and the model differs. `wrong`
 * false: the model cannot know better (stack growth, a file without an MMAP2 record). */
static bool reconcile_mark(struct space *space, uint64_t start, uint64_t end, const struct space_attributes *attributes,
			   uint64_t time_ns, bool wrong)
{
	struct space_check *check = &space->snapshot.check;
	struct space_interval range = {.allocation = wrong ? 0 : MARK_UNRECORDED};

	if (start >= end)
		return true;
	if (attributes) {
		range.attributes = space_edit_advance(attributes, -start);
		range.allocation |= MARK_MAPPED;
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
		found_ns = first_found(&space->found, &range, time_ns);
		if (!intervals_insert(&space->finding, &range, found_ns))
			return false;
	}
	return true;
}

/* The lowest difference above `position` that the model should have known. */
static uint64_t next_wrong(const struct intervals *marks, uint64_t position)
{
	const struct interval_node *node;

	while ((node = intervals_next(marks, position)) && node->interval.allocation & MARK_UNRECORDED)
		position = node->interval.end;
	return node ? node->interval.start : 0;
}

/* The call being applied resolves the differences in [start, end). Differing pages become unverifiable if it may have
 * been in flight when they were read. */
static bool excuse(struct space *space, struct intervals *marks, struct space_check *check, uint64_t start,
		   uint64_t end)
{
	struct interval_node *node;
	struct space_interval part;

	for (uint64_t position = start; (node = intervals_next_part(marks, &position, end, &part));) {
		bool in_flight = space->last_snapshot || space->now_ns - node->time_ns <= LATE_NS;
		bool wrong = !(part.allocation & MARK_UNRECORDED);

		if (wrong && space->now_ns <= node->time_ns)
			continue;
		if (!intervals_cut(marks, part.start, part.end))
			return false;
		if (!wrong || !in_flight)
			continue;
		check->unverifiable_bytes += part.end - part.start;
		check->mismatch_bytes -= part.end - part.start;
		if (check->first_wrong >= part.start && check->first_wrong < part.end)
			check->first_wrong = check->mismatch_bytes ? next_wrong(marks, part.end) : 0;
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

/* `context`: the kernel's attributes, relative to address 0. Add details that only the kernel's maps have; the mapping
 * stays the same. */
static void complete(void *context, struct space_interval *interval)
{
	struct space_attributes reported = space_edit_advance(context, interval->start);
	struct space_attributes *known = &interval->attributes;

	if (known->unknown) {
		*known = reported;
		interval->commit = space_edit_commit(known);
		return;
	}
	if (known->inode == SPACE_INODE_UNKNOWN) {
		known->device_major = reported.device_major;
		known->device_minor = reported.device_minor;
		known->inode = reported.inode;
		known->file_offset = reported.file_offset;
	}
	if (!known->path)
		known->path = reported.path;
	known->stack |= reported.stack;
	known->heap |= reported.heap;
	known->shm |= reported.shm;
	known->ring |= reported.ring;
	known->zero |= reported.zero;
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
	struct space_attributes listed = space_edit_advance(&mark->attributes, mark->start);
	struct space_attributes kernel = mark->attributes;
	uint32_t protection = listed.protection;

	held.attributes = space_edit_advance(&held.attributes, mark->start - held.start);
	if (held.attributes.unknown || space_edit_agree(&held.attributes, &listed))
		return space_edit_change(space, mark->start, mark->end, complete, &kernel);
	held.attributes.protection = protection;
	if (space_edit_agree(&held.attributes, &listed)) {
		space->counts.reconciled_bytes += mark->end - mark->start;
		return space_edit_change(space, mark->start, mark->end, correct_protection, &protection) &&
		       space_edit_change(space, mark->start, mark->end, complete, &kernel);
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
		if (!(mark->allocation & MARK_MAPPED)) {
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

/* Reconcile what was first found by `until_ns`. */
static bool reconcile_found(struct space *space, uint64_t until_ns)
{
	struct interval_node *node;

	space->reconcile_ns = UINT64_MAX;
	for (uint64_t position = 0; (node = intervals_next(&space->found, position));) {
		const struct space_interval mark = node->interval;

		position = mark.end;
		if (node->time_ns > until_ns) {
			if (node->time_ns < space->reconcile_ns)
				space->reconcile_ns = node->time_ns;
			continue;
		}
		intervals_remove(&space->found, mark.start);
		if (!reconcile(space, &mark,
			       mark.allocation & MARK_UNRECORDED ? mark.commit : (uint32_t)ALLOCATION_UNKNOWN))
			return false;
	}
	return true;
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

/* The open snapshot is complete: its differences replace those of the previous one. */
static void reconcile_end(struct space *space)
{
	struct interval_node *node;

	intervals_deinit(&space->found);
	space->found = space->finding;
	space->finding = (struct intervals){0};
	if (space->snapshot.mode == SPACE_SNAPSHOT_CHECK)
		space->check = space->snapshot.check;
	space->reconcile_ns = UINT64_MAX;
	for (uint64_t position = 0; (node = intervals_next(&space->found, position)); position = node->interval.end)
		space->reconcile_ns = node->time_ns < space->reconcile_ns ? node->time_ns : space->reconcile_ns;
}

void reconcile_forget(struct space *space)
{
	intervals_deinit(&space->found);
	intervals_deinit(&space->finding);
	space->reconcile_ns = UINT64_MAX;
}

bool reconcile_presumed(struct space *space, uint64_t start, uint64_t end)
{
	struct space_interval part;

	for (uint64_t position = start; intervals_next_part(&space->found, &position, end, &part);) {
		const struct space_interval *held = space_next(space, part.start);

		if (part.allocation != MARK_MAPPED || (held && held->start < part.end))
			continue;
		if (!intervals_cut(&space->found, part.start, part.end) || !reconcile(space, &part, ALLOCATION_UNKNOWN))
			return false;
		space->reconciled_ns = space->now_ns;
	}
	return true;
}

/* Compare the model with the kernel's maps line by line, or fill it from them. */

#define KERNEL_ADDRESSES (1ULL << 63)
#define PROTECTIONS (PROT_READ | PROT_WRITE | PROT_EXEC)

/* A part of a line; NULL attributes: no mapping. */
struct stretch {
	uint64_t time_ns;
	uint64_t start, end;
	const struct space_attributes *attributes; /* of `start` */
};

static bool note_touched(struct snapshot *snapshot, uint64_t start, uint64_t end)
{
	const struct space_interval range = {.start = start > snapshot->position ? start : snapshot->position,
					     .end = end};

	return !snapshot->open || range.start >= end || snapshot->touched.count >= LIMIT_SNAPSHOT_TOUCHED ||
	       (intervals_cut(&snapshot->touched, range.start, end) && intervals_insert(&snapshot->touched, &range, 0));
}

bool space_snapshot_touch(struct space *space, uint64_t start, uint64_t end)
{
	return !space->now_ns || (excuse(space, &space->found, &space->check, start, end) &&
				  excuse(space, &space->finding, &space->snapshot.check, start, end) &&
				  note_touched(&space->snapshot, start, end));
}

/* Whether the model's interval matches the kernel's line except for details that the model can adopt. */
static bool agrees(const struct space_interval *interval, const struct stretch *stretch)
{
	struct space_attributes model, listed;
	uint64_t address = interval->start > stretch->start ? interval->start : stretch->start;

	if (!stretch->attributes)
		return false;
	if (interval->attributes.unknown)
		return true;
	model = space_edit_advance(&interval->attributes, address - interval->start);
	listed = space_edit_advance(stretch->attributes, address - stretch->start);
	return space_edit_agree(&model, &listed);
}

static bool mark(struct space *space, const struct stretch *stretch, uint64_t start, uint64_t end, bool wrong)
{
	struct space_attributes listed;

	if (!stretch->attributes)
		return reconcile_mark(space, start, end, NULL, stretch->time_ns, wrong);
	listed = space_edit_advance(stretch->attributes, start - stretch->start);
	return reconcile_mark(space, start, end, &listed, stretch->time_ns, wrong);
}

/* Insert the kernel's mapping into [start, end), which is free in the model. */
static bool define_missing(struct space *space, const struct stretch *stretch, uint64_t start, uint64_t end)
{
	struct space_interval interval = {.start = start, .end = end, .allocation = space->snapshot.allocation};

	if (!stretch->attributes)
		return true;
	interval.attributes = space_edit_advance(stretch->attributes, start - stretch->start);
	interval.commit = space_edit_commit(&interval.attributes);
	return space_edit_allocate(space, &interval);
}

static bool insert(struct space *space, const struct space_interval *range)
{
	struct interval_node *before = intervals_before(&space->snapshot_races, range->start);

	if (before && range->allocation == RACE_UNKNOWN && before->interval.allocation == RACE_UNKNOWN &&
	    before->interval.end == range->start && before->time_ns == READING) {
		before->interval.end = range->end;
		return true;
	}
	return intervals_insert(&space->snapshot_races, range, READING);
}

/* The current reading shows remembered pages in [start, end) again. */
static bool snapshot_race_renew(struct space *space, uint64_t start, uint64_t end)
{
	struct interval_node *node;
	struct space_interval part;

	for (uint64_t position = start; (node = intervals_next_part(&space->snapshot_races, &position, end, &part));) {
		if (node->time_ns != READING &&
		    (!intervals_cut(&space->snapshot_races, part.start, part.end) || !insert(space, &part)))
			return false;
	}
	return true;
}

/* The current reading is about to change [start, end), whose pages all have this state. `held`, only for RACE_HELD:
 * the interval that contains them. Pages already remembered keep their older state. */
static bool snapshot_race_add(struct space *space, enum race_kind kind, uint64_t start, uint64_t end,
			      const struct space_interval *held)
{
	struct space_interval range = {.allocation = kind};
	struct interval_node *node;

	if (held) {
		range.attributes = space_edit_advance(&held->attributes, -held->start);
		range.commit = held->allocation;
	}
	if (!snapshot_race_renew(space, start, end))
		return false;
	for (uint64_t position = start; position < end; position = node ? node->interval.end : end) {
		node = intervals_within(&space->snapshot_races, position, end);
		range.start = position;
		range.end = node ? node->interval.start : end;
		if (range.start < range.end && !insert(space, &range))
			return false;
	}
	return true;
}

/* The first snapshot shows [start, end) as part of the heap, and the model has it from `held`. No brk has mapped what
 * is below every break that one returned. */
static void check_age(struct space *space, const struct space_interval *held, uint64_t start, uint64_t end)
{
	if (space->described || held->reconciled || held->allocation < ALLOCATION_FIRST || start >= space->lowest_break)
		return;
	if (!space->older_bytes)
		space->first_older = start;
	space->older_bytes += (end < space->lowest_break ? end : space->lowest_break) - start;
}

/* [start, end) lies within the model's `held`. A mapping made by a call, including io_setup, is not replaced because of
 * a single reading, which may show the effect of a call in flight. */
static bool define_held(struct space *space, const struct stretch *stretch, const struct space_interval *held,
			uint64_t start, uint64_t end)
{
	const struct space_interval before = *held;

	if (stretch->attributes && stretch->attributes->heap)
		check_age(space, held, start, end);
	if (agrees(&before, stretch)) {
		struct space_attributes kernel = space_edit_advance(stretch->attributes, -stretch->start);

		if (before.attributes.unknown && !snapshot_race_add(space, RACE_UNKNOWN, start, end, NULL))
			return false;
		return space_edit_change(space, start, end, complete, &kernel);
	}
	if (before.allocation >= ALLOCATION_UNKNOWN || before.attributes.ring)
		return mark(space, stretch, start, end, false);
	return snapshot_race_add(space, RACE_HELD, start, end, &before) &&
	       space_edit_release(space, start, end, NULL) && define_missing(space, stretch, start, end);
}

/* The model has no mapping in [start, end), or does not know. */
static bool define_free(struct space *space, const struct stretch *stretch, uint64_t start, uint64_t end)
{
	for (uint64_t position = start, stop; position < end; position = stop) {
		const struct interval_node *node = intervals_within(&space->unknown, position, end);
		enum race_kind kind = RACE_NOTHING;

		stop = node ? node->interval.start : end;
		if (stop <= position) {
			stop = node->interval.end < end ? node->interval.end : end;
			kind = RACE_UNKNOWN;
		}
		if (kind == RACE_NOTHING && !stretch->attributes)
			continue;
		if (!snapshot_race_add(space, kind, position, stop, NULL) ||
		    !intervals_cut(&space->unknown, position, stop) || !define_missing(space, stretch, position, stop))
			return false;
	}
	return true;
}

static bool define_stretch(struct space *space, const struct stretch *stretch)
{
	if (!snapshot_race_renew(space, stretch->start, stretch->end))
		return false;
	for (uint64_t position = stretch->start, stop; position < stretch->end; position = stop) {
		const struct interval_node *node = intervals_within(&space->mapped, position, stretch->end);
		bool done;

		stop = node ? node->interval.start : stretch->end;
		if (stop > position) {
			done = define_free(space, stretch, position, stop);
		} else {
			stop = node->interval.end < stretch->end ? node->interval.end : stretch->end;
			done = define_held(space, stretch, &node->interval, position, stop);
		}
		if (!done)
			return false;
	}
	return true;
}

/* Whether a stack may have grown from the model's interval at `end` down to `start` without an event. */
static bool stack_growth(const struct space *space, const struct stretch *stretch, uint64_t end)
{
	const struct space_interval *above = space_find(space, end);

	return above && above->start == end && (above->attributes.growsdown || above->attributes.stack) &&
	       agrees(above, stretch);
}

/* No snapshot shows the attributes of these pages. */
static void leave_undecided(struct space *space, uint64_t bytes)
{
	space->snapshot.check.unverifiable_bytes += bytes;
	space->snapshot.check.unread_bytes += bytes;
}

/* [start, end) is free in the model. */
static bool check_missing(struct space *space, const struct stretch *stretch, uint64_t start, uint64_t end)
{
	uint64_t position = start, checked = start;
	struct space_interval part;

	if (!stretch->attributes || start >= KERNEL_ADDRESSES)
		return true;
	if (stack_growth(space, stretch, end))
		return mark(space, stretch, start, end, false);
	for (; intervals_next_part(&space->unknown, &position, end, &part); checked = position) {
		if (!mark(space, stretch, checked, part.start, true) ||
		    !mark(space, stretch, part.start, part.end, false))
			return false;
		leave_undecided(space, part.end - part.start);
	}
	return mark(space, stretch, checked, end, true);
}

/* [start, end) lies within the model's `interval`. */
static bool check_held(struct space *space, const struct stretch *stretch, const struct space_interval *interval,
		       uint64_t start, uint64_t end)
{
	if (interval->attributes.unknown && stretch->attributes)
		leave_undecided(space, end - start);
	else if (!agrees(interval, stretch))
		return mark(space, stretch, start, end, true);
	if (interval->attributes.unknown || interval->attributes.inode == SPACE_INODE_UNKNOWN)
		return mark(space, stretch, start, end, false);
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

/*
 * What lies between the last line and the next. Before Linux 6.17 a read() goes on at the mapping that came next when
 * the previous one ended: it does not show what was mapped below it in between. So what calls have changed since then
 * remains as it is in the model.
 */
static bool apply_gap(struct space *space, const struct stretch *gap, bool read_before)
{
	struct stretch part = *gap;
	struct interval_node *node;

	if (!read_before)
		return apply_stretch(space, gap);
	for (; part.start < gap->end; part.start = node ? node->interval.end : gap->end) {
		node = intervals_within(&space->snapshot.touched, part.start, gap->end);
		part.end = node ? node->interval.start : gap->end;
		if (!apply_stretch(space, &part))
			return false;
	}
	intervals_deinit(&space->snapshot.touched);
	return true;
}

/* The reading of [start, end) ended by `time_ns`. */
static void snapshot_race_close(struct space *space, uint64_t start, uint64_t end, uint64_t time_ns)
{
	struct interval_node *node;

	for (uint64_t position = start; (node = intervals_within(&space->snapshot_races, position, end));
	     position = node->interval.end) {
		if (node->time_ns == READING)
			node->time_ns = time_ns;
	}
	space->snapshot_races_ns = time_ns;
}

/* The current reading is complete or abandoned. */
static void close_read(struct space *space, uint64_t time_ns)
{
	struct snapshot *snapshot = &space->snapshot;

	if (snapshot->open && snapshot->mode == SPACE_SNAPSHOT_DEFINE)
		snapshot_race_close(space, snapshot->read_start, snapshot->position, time_ns);
	snapshot->read_start = snapshot->position;
}

struct mmt_error *space_snapshot_begin(struct space *space, enum space_snapshot_mode mode, uint32_t allocation,
				       uint64_t time_ns)
{
	close_read(space, time_ns);
	if (!reconcile_late(space, time_ns))
		return &error_no_memory;
	/* Those of a snapshot that was abandoned. */
	intervals_deinit(&space->finding);
	intervals_deinit(&space->snapshot.touched);
	space->snapshot =
	    (struct snapshot){.open = true, .mode = mode, .allocation = allocation, .line_time_ns = time_ns};
	return NULL;
}

void space_snapshot_is_last(struct space *space)
{
	space->last_snapshot = true;
}

/* All lines of the heap have been read: it may be split, and the highest one shows the break. A call that returned
 * meanwhile knows better. */
static void learn_break(struct space *space)
{
	if (space->break_known || !space->snapshot.heap_end)
		return;
	space->break_known = true;
	space->losses_at_break = space->snapshot.heap_losses;
	space->program_break = space->snapshot.heap_end;
}

struct mmt_error *space_snapshot_line(struct space *space, uint64_t time_ns, uint64_t start, uint64_t end,
				      const struct space_attributes *attributes)
{
	struct snapshot *snapshot = &space->snapshot;
	struct stretch gap = {.time_ns = time_ns, .start = snapshot->position, .end = start};
	struct stretch line = {.time_ns = time_ns, .end = end};
	struct space_attributes listed;
	bool read_before = time_ns != snapshot->line_time_ns;

	if (!snapshot->open || start >= end || end <= snapshot->position || ((start | end) & (space->page_bytes - 1)))
		return NULL;
	if (read_before)
		close_read(space, time_ns);
	/* If a mapping was merged with the previous one, or replaced its end, after that line was read, the kernel
	 * lists it from its start: skip what was already read. */
	line.start = start < snapshot->position ? snapshot->position : start;
	listed = space_edit_advance(attributes, line.start - start);
	listed.protection &= PROTECTIONS;
	line.attributes = &listed;
	snapshot->line_time_ns = time_ns;
	snapshot->check.mappings++;
	snapshot->check.compared_bytes += end - line.start;
	if (!apply_gap(space, &gap, read_before) || !apply_stretch(space, &line))
		return &error_no_memory;
	snapshot->position = end;
	if (snapshot->mode != SPACE_SNAPSHOT_DEFINE)
		return NULL;
	if (listed.heap) {
		snapshot->heap_end = end;
		snapshot->heap_losses = space_losses(space);
	} else {
		learn_break(space);
	}
	return NULL;
}

struct mmt_error *space_snapshot_end(struct space *space, uint64_t time_ns)
{
	struct snapshot *snapshot = &space->snapshot;
	struct stretch rest = {.time_ns = time_ns, .start = snapshot->position, .end = UINT64_MAX};

	if (!snapshot->open)
		return NULL;
	if (!apply_gap(space, &rest, time_ns != snapshot->line_time_ns))
		return &error_no_memory;
	snapshot->position = UINT64_MAX;
	close_read(space, time_ns);
	if (snapshot->mode == SPACE_SNAPSHOT_DEFINE) {
		learn_break(space);
		space->described = true;
	} else {
		snapshot->check.done = true;
		snapshot->check.time_ns = snapshot->line_time_ns;
	}
	reconcile_end(space);
	intervals_deinit(&snapshot->touched);
	snapshot->open = false;
	return NULL;
}

struct space_check space_check_result(const struct space *space)
{
	struct space_check check = space->check;

	if (!check.mismatch_bytes)
		check.first_wrong = space->first_older;
	check.mismatch_bytes += space->older_bytes;
	check.unverifiable_bytes += space->undecided_bytes;
	return check;
}

/* In these nodes the allocation is a race_kind, and the commit is the allocation of the previous interval. Attributes
 * are relative to address 0. The time is the end of the reading. */

bool snapshot_race_resolve(struct space *space, uint64_t start, uint64_t end)
{
	return intervals_cut(&space->snapshot_races, start, end);
}

/* Apply the change to the previous interval too. If the page had none, the call nevertheless found a mapping. */
static struct space_interval changed(const struct space_interval *remembered,
				     void (*change)(void *context, struct space_interval *interval), void *context)
{
	struct space_interval part = *remembered,
			      held = {.start = part.start, .end = part.end, .allocation = part.commit};

	if (part.allocation != RACE_HELD) {
		part.allocation = RACE_UNKNOWN;
		return part;
	}
	held.attributes = space_edit_advance(&part.attributes, part.start);
	held.commit = space_edit_commit(&held.attributes);
	change(context, &held);
	part.attributes = space_edit_advance(&held.attributes, -part.start);
	return part;
}

bool snapshot_race_change(struct space *space, uint64_t start, uint64_t end,
			  void (*change)(void *context, struct space_interval *interval), void *context)
{
	struct interval_node *node;
	struct space_interval part;

	for (uint64_t position = start; (node = intervals_next_part(&space->snapshot_races, &position, end, &part));) {
		uint64_t time_ns = node->time_ns;

		if (part.allocation == RACE_UNKNOWN)
			continue;
		part = changed(&part, change, context);
		if (!intervals_cut(&space->snapshot_races, part.start, part.end) ||
		    !intervals_insert(&space->snapshot_races, &part, time_ns))
			return false;
	}
	return true;
}

static bool was_in_flight(const struct space *space, const struct space_call *call, uint64_t read_ns)
{
	const uint64_t *last_exit = map_get(&space->last_exits, (uint32_t)call->thread);

	if (read_ns != READING && call->time_ns > read_ns && call->time_ns - read_ns > LATE_NS)
		return false;
	return !last_exit || *last_exit <= read_ns;
}

bool snapshot_race_covers(const struct space *space, const struct space_call *call, uint64_t address)
{
	const struct interval_node *node = intervals_next(&space->snapshot_races, address);

	return node && node->interval.start <= address && was_in_flight(space, call, node->time_ns);
}

static void forget_attributes(void *context, struct space_interval *interval)
{
	(void)context;
	interval->attributes = (struct space_attributes){.unknown = true};
	interval->commit = COMMIT_NONE;
}

/* Mark the pages as unknown, mapped or not. Pages of a pending unmap are known. */
static bool make_unknown(struct space *space, uint64_t start, uint64_t end)
{
	struct interval_node *node;

	if (!space_edit_change(space, start, end, forget_attributes, NULL) ||
	    !intervals_cut(&space->unknown, start, end))
		return false;
	for (uint64_t position = start; position < end; position = node ? node->interval.end : end) {
		struct space_interval free_range = {.start = position};

		node = intervals_within(&space->mapped, position, end);
		free_range.end = node ? node->interval.start : end;
		if (free_range.start < free_range.end &&
		    !pending_unmaps_wait_for(space, free_range.start, free_range.end) &&
		    !intervals_insert(&space->unknown, &free_range, 0))
			return false;
	}
	return true;
}

static bool put_back(struct space *space, const struct space_interval *range)
{
	struct space_interval held = *range;

	if (range->allocation == RACE_UNKNOWN)
		return make_unknown(space, range->start, range->end);
	if (!space_edit_release(space, range->start, range->end, NULL))
		return false;
	if (range->allocation == RACE_NOTHING)
		return true;
	held.attributes = space_edit_advance(&range->attributes, range->start);
	held.allocation = range->commit;
	held.commit = space_edit_commit(&held.attributes);
	return space_edit_allocate(space, &held);
}

bool snapshot_race_undo(struct space *space, const struct space_call *call, uint64_t start, uint64_t end)
{
	struct interval_node *node;
	struct space_interval part;

	for (uint64_t position = start; (node = intervals_next_part(&space->snapshot_races, &position, end, &part));) {
		if (was_in_flight(space, call, node->time_ns) &&
		    (!intervals_cut(&space->snapshot_races, part.start, part.end) || !put_back(space, &part)))
			return false;
	}
	return true;
}

bool snapshot_race_undo_in_copy(const struct space *space, struct space *copy)
{
	struct interval_node *node;

	for (uint64_t position = 0; (node = intervals_next(&space->snapshot_races, position));
	     position = node->interval.end) {
		struct space_interval part = node->interval;

		if (node->time_ns != READING)
			continue;
		part.commit = ALLOCATION_BEFORE;
		if (part.allocation == RACE_HELD && part.attributes.dontfork)
			part.allocation = RACE_NOTHING;
		if (!put_back(copy, &part))
			return false;
	}
	return true;
}

void snapshot_race_expire(struct space *space, uint64_t now_ns)
{
	if (space->snapshot_races.count && !space->snapshot.open && now_ns > space->snapshot_races_ns &&
	    now_ns - space->snapshot_races_ns > LATE_NS)
		snapshot_race_forget(space);
}

void snapshot_race_forget(struct space *space)
{
	intervals_deinit(&space->snapshot_races);
}
