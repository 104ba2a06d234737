// SPDX-License-Identifier: LGPL-2.1-or-later
/* Compares an address space with a reading of /proc/PID/maps, and repairs it. */
#include "model/space/space-state.h"

#include "base/limits.h"

#define READING UINT64_MAX	  /* in place of a time: the current reading */
#define LATE_NS 1000000000ULL	  /* a call that was in flight while its page was read returns within this time */
#define RECONCILE_NS 3000000000ULL /* all calls have been observed to do so within this time (see PENDING_UNMAP_NS) */
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

/* A part of a line of the open snapshot; NULL attributes: no mapping. */
struct stretch {
	uint64_t time_ns;
	uint64_t start, end;
	const struct space_attributes *attributes; /* of `start` */
};

/* The model differs from the line in [start, end). `wrong` false: it cannot know better (stack growth, a file without
 * an MMAP2 record). */
static bool mark_range(struct space *space, const struct stretch *stretch, uint64_t start, uint64_t end, bool wrong)
{
	struct space_check *check = &space->snapshot.check;
	struct space_interval range = {.start = start, .allocation = wrong ? 0 : MARK_UNRECORDED};

	if (start >= end)
		return true;
	if (stretch->attributes) {
		range.attributes = space_edit_advance(stretch->attributes, -stretch->start);
		range.allocation |= MARK_MAPPED;
		range.commit = space->snapshot.mode == SPACE_SNAPSHOT_DEFINE ? space->snapshot.allocation
									     : (uint32_t)ALLOCATION_BEFORE;
	}
	if (wrong) {
		if (!check->mismatch_bytes)
			check->first_wrong = start;
		check->mismatch_bytes += end - start;
	}
	/* A part that differed in the same way before keeps the time when it was first found. */
	for (; range.start < end; range.start = range.end) {
		const struct interval_node *earlier = intervals_at(&space->found, range.start, end, &range.end);
		bool known = earlier && earlier->interval.allocation == range.allocation &&
			     space_edit_agree(&earlier->interval.attributes, &range.attributes);

		if (!intervals_insert(&space->finding, &range, known ? earlier->time_ns : stretch->time_ns))
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
	for (; part.start < mark->end; part.start = part.end) {
		bool held = intervals_at(&space->mapped, part.start, mark->end, &part.end);
		bool done = true;

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
			space->reconcile_ns = smaller_of(space->reconcile_ns, node->time_ns);
			continue;
		}
		intervals_remove(&space->found, mark.start);
		if (!reconcile(space, &mark,
			       mark.allocation & MARK_UNRECORDED ? mark.commit : (uint32_t)ALLOCATION_UNKNOWN))
			return false;
	}
	return true;
}

void space_finish(struct space *space)
{
	pending_unmaps_give_up(space);
	if (!reconcile_found(space, UINT64_MAX))
		space->snapshot.open = false;
}

bool reconcile_late(struct space *space, uint64_t now_ns)
{
	if (space->last_snapshot || now_ns <= space->reconcile_ns || now_ns - space->reconcile_ns < RECONCILE_NS)
		return true;
	space->reconciled_ns = now_ns;
	return reconcile_found(space, now_ns - RECONCILE_NS);
}

void space_end(struct space *space, uint64_t time_ns)
{
	if (time_ns >= END_NS && !reconcile_found(space, time_ns - END_NS))
		space->snapshot.open = false;
	reconcile_forget(space);
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

bool space_snapshot_touch(struct space *space, uint64_t start, uint64_t end)
{
	struct snapshot *snapshot = &space->snapshot;
	const struct space_interval range = {.start = start > snapshot->position ? start : snapshot->position,
					     .end = end};

	if (!space->now_ns)
		return true;
	if (!excuse(space, &space->found, &space->check, start, end) ||
	    !excuse(space, &space->finding, &snapshot->check, start, end))
		return false;
	return !snapshot->open || range.start >= end || snapshot->touched.count >= LIMIT_SNAPSHOT_TOUCHED ||
	       (intervals_cut(&snapshot->touched, range.start, end) && intervals_insert(&snapshot->touched, &range, 0));
}

/* Whether the model's interval matches the kernel's line except for details that the model can adopt. */
static bool agrees(const struct space_interval *interval, const struct stretch *stretch)
{
	struct space_attributes model, listed;
	uint64_t address = larger_of(interval->start, stretch->start);

	if (!stretch->attributes)
		return false;
	if (interval->attributes.unknown)
		return true;
	model = space_edit_advance(&interval->attributes, address - interval->start);
	listed = space_edit_advance(stretch->attributes, address - stretch->start);
	return space_edit_agree(&model, &listed);
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
	struct space_interval range = {.start = start, .allocation = kind};

	if (held) {
		range.attributes = space_edit_advance(&held->attributes, -held->start);
		range.commit = held->allocation;
	}
	if (!snapshot_race_renew(space, start, end))
		return false;
	for (; range.start < end; range.start = range.end) {
		if (!intervals_at(&space->snapshot_races, range.start, end, &range.end) && !insert(space, &range))
			return false;
	}
	return true;
}

/* [start, end) lies within the model's `held`. A mapping made by a call, including io_setup, is not replaced because of
 * a single reading, which may show the effect of a call in flight. */
static bool define_held(struct space *space, const struct stretch *stretch, const struct space_interval *held,
			uint64_t start, uint64_t end)
{
	const struct space_interval before = *held;

	/* The first snapshot shows heap that the model has from a call. No brk has mapped what is below every break
	 * that one returned. */
	if (stretch->attributes && stretch->attributes->heap && !space->described && !before.reconciled &&
	    before.allocation >= ALLOCATION_FIRST && start < space->lowest_break) {
		if (!space->older_bytes)
			space->first_older = start;
		space->older_bytes += (end < space->lowest_break ? end : space->lowest_break) - start;
	}
	if (agrees(&before, stretch)) {
		struct space_attributes kernel = space_edit_advance(stretch->attributes, -stretch->start);

		if (before.attributes.unknown && !snapshot_race_add(space, RACE_UNKNOWN, start, end, NULL))
			return false;
		return space_edit_change(space, start, end, complete, &kernel);
	}
	if (before.allocation >= ALLOCATION_UNKNOWN || before.attributes.ring)
		return mark_range(space, stretch, start, end, false);
	return snapshot_race_add(space, RACE_HELD, start, end, &before) &&
	       space_edit_release(space, start, end, NULL) && define_missing(space, stretch, start, end);
}

/* The model has no mapping in [start, end), or does not know. */
static bool define_free(struct space *space, const struct stretch *stretch, uint64_t start, uint64_t end)
{
	for (uint64_t position = start, stop; position < end; position = stop) {
		bool unknown = intervals_at(&space->unknown, position, end, &stop);

		if (!unknown && !stretch->attributes)
			continue;
		if (!snapshot_race_add(space, unknown ? RACE_UNKNOWN : RACE_NOTHING, position, stop, NULL) ||
		    !intervals_cut(&space->unknown, position, stop) || !define_missing(space, stretch, position, stop))
			return false;
	}
	return true;
}

/* No snapshot shows the attributes of these pages. */
static void leave_undecided(struct space *space, uint64_t bytes)
{
	space->snapshot.check.unverifiable_bytes += bytes;
	space->snapshot.check.unread_bytes += bytes;
}

/* [start, end) is free in the model. */
static bool check_free(struct space *space, const struct stretch *stretch, uint64_t start, uint64_t end)
{
	const struct space_interval *above;

	if (!stretch->attributes || start >= KERNEL_ADDRESSES)
		return true;
	/* A stack grows without an event. */
	above = space_find(space, end);
	if (above && above->start == end && (above->attributes.growsdown || above->attributes.stack) &&
	    agrees(above, stretch))
		return mark_range(space, stretch, start, end, false);
	for (uint64_t position = start, stop; position < end; position = stop) {
		bool unknown = intervals_at(&space->unknown, position, end, &stop);

		if (!mark_range(space, stretch, position, stop, !unknown))
			return false;
		if (unknown)
			leave_undecided(space, stop - position);
	}
	return true;
}

/* [start, end) lies within the model's `interval`. */
static bool check_held(struct space *space, const struct stretch *stretch, const struct space_interval *interval,
		       uint64_t start, uint64_t end)
{
	if (interval->attributes.unknown && stretch->attributes)
		leave_undecided(space, end - start);
	else if (!agrees(interval, stretch))
		return mark_range(space, stretch, start, end, true);
	if (interval->attributes.unknown || interval->attributes.inode == SPACE_INODE_UNKNOWN)
		return mark_range(space, stretch, start, end, false);
	return true;
}

static bool apply_stretch(struct space *space, const struct stretch *stretch)
{
	bool check = space->snapshot.mode == SPACE_SNAPSHOT_CHECK, done = true;

	if (!check && stretch->start < stretch->end && !snapshot_race_renew(space, stretch->start, stretch->end))
		return false;
	for (uint64_t position = stretch->start, stop; done && position < stretch->end; position = stop) {
		const struct interval_node *node = intervals_at(&space->mapped, position, stretch->end, &stop);

		if (check)
			done = node ? check_held(space, stretch, &node->interval, position, stop)
				    : check_free(space, stretch, position, stop);
		else
			done = node ? define_held(space, stretch, &node->interval, position, stop)
				    : define_free(space, stretch, position, stop);
	}
	return done;
}

/* What lies between the last line and the next. Before Linux 6.17 a read() goes on at the mapping that came next when
 * the previous one ended: it does not show what was mapped below it in between. So what calls have changed since then
 * remains as it is in the model. */
static bool apply_gap(struct space *space, const struct stretch *gap, bool read_before)
{
	struct stretch part = *gap;

	if (!read_before)
		return apply_stretch(space, gap);
	for (; part.start < gap->end; part.start = part.end) {
		if (!intervals_at(&space->snapshot.touched, part.start, gap->end, &part.end) &&
		    !apply_stretch(space, &part))
			return false;
	}
	intervals_deinit(&space->snapshot.touched);
	return true;
}

/* The current reading is complete or abandoned. */
static void close_read(struct space *space, uint64_t time_ns)
{
	struct snapshot *snapshot = &space->snapshot;
	struct interval_node *node;

	if (snapshot->open && snapshot->mode == SPACE_SNAPSHOT_DEFINE) {
		for (uint64_t position = snapshot->read_start;
		     (node = intervals_within(&space->snapshot_races, position, snapshot->position));
		     position = node->interval.end) {
			if (node->time_ns == READING)
				node->time_ns = time_ns;
		}
		space->snapshot_races_ns = time_ns;
	}
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
	space->snapshot.check.began_ns = time_ns;
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
	line.start = larger_of(start, snapshot->position);
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
	struct interval_node *node;

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
		space->check = snapshot->check;
	}
	/* Its differences replace those of the previous snapshot. */
	intervals_deinit(&space->found);
	space->found = space->finding;
	space->finding = (struct intervals){0};
	space->reconcile_ns = UINT64_MAX;
	for (uint64_t position = 0; (node = intervals_next(&space->found, position)); position = node->interval.end)
		space->reconcile_ns = smaller_of(node->time_ns, space->reconcile_ns);
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
	struct space_interval part = {.start = start};

	if (!space_edit_change(space, start, end, forget_attributes, NULL) ||
	    !intervals_cut(&space->unknown, start, end))
		return false;
	for (; part.start < end; part.start = part.end) {
		if (!intervals_at(&space->mapped, part.start, end, &part.end) &&
		    !pending_unmaps_wait_for(space, part.start, part.end) &&
		    !intervals_insert(&space->unknown, &part, 0))
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
		intervals_deinit(&space->snapshot_races);
}
