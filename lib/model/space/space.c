// SPDX-License-Identifier: LGPL-2.1-or-later
#include "model/space/space.h"

#include "model/space/space-state.h"

struct mmt_error *space_create(const struct space_options *options, struct space **space_ret)
{
	const struct space_interval everything = {.end = UINT64_MAX};
	struct space *space = calloc(1, sizeof(*space));

	if (!space)
		return &error_no_memory;
	if (options->observer)
		space->observer = *options->observer;
	space->page_bytes = options->page_bytes;
	space->rules = options->rules ? *options->rules : kernel_rules_of("");
	space->losses = options->losses;
	space->losses_at_exec = space_losses(space);
	space->reconcile_ns = space->lowest_break = UINT64_MAX;
	if (!intervals_insert(&space->unknown, &everything, 0)) {
		free(space);
		return &error_no_memory;
	}
	*space_ret = space;
	return NULL;
}

void space_destroy(struct space *space)
{
	if (!space)
		return;
	space_release(space);
	map_deinit(&space->last_exits);
	vector_deinit(&space->released);
	free(space);
}

void space_release(struct space *space)
{
	struct space_counts *counts = &space->counts;
	struct interval_node *node;

	pending_unmaps_give_up(space);
	vector_deinit(&space->pending_unmaps);
	vector_deinit(&space->rings);
	for (size_t place = 0; (node = intervals_walk(&space->mapped, &place));)
		space_edit_notify_released(space, &node->interval, NULL);
	intervals_deinit(&space->mapped);
	intervals_deinit(&space->unknown);
	intervals_deinit(&space->snapshot_races);
	intervals_deinit(&space->snapshot.touched);
	reconcile_forget(space);
	counts->mapped_bytes = counts->peaking_bytes = 0;
	counts->before_bytes = counts->kernel_bytes = counts->unknown_bytes = counts->data_bytes = 0;
	space->code_generation++;
}

void space_go_on(struct space *space, const struct space_remains *remains)
{
	space_release(space);
	space->code_generation = remains->code_generation;
	space->described = remains->described;
}

void space_exec(struct space *space)
{
	space_release(space);
	space->losses_at_exec = space_losses(space);
	space->break_known = space->read_implies_exec = false;
	space->described = true;
	space->snapshot.open = false;
	space->check = space_check_result(space);
	space->check.earlier_program = space->check.done;
	space->older_bytes = space->undecided_bytes = space->first_older = space->break_before = 0;
	space->counts.peak_bytes = 0;
	space->lowest_break = UINT64_MAX;
}

void space_break_before(struct space *space, uint64_t address)
{
	space->break_before = address & ~(space->page_bytes - 1);
}

bool space_is_described(const struct space *space)
{
	return space->described;
}

static void change_allocation(void *context, struct space_interval *interval)
{
	interval->allocation = *(const uint32_t *)context;
}

struct mmt_error *space_set_allocation(struct space *space, uint64_t start, uint64_t end, uint32_t allocation)
{
	return space_edit_change(space, start, end, change_allocation, &allocation) ? NULL : &error_no_memory;
}

struct space_counts space_counts(const struct space *space)
{
	struct space_counts counts = space->counts;

	counts.intervals = space->mapped.count;
	return counts;
}

bool space_continues_mapping(const struct space_interval *left, const struct space_interval *right)
{
	const struct space_attributes *a = &left->attributes, *b = &right->attributes;
	bool offset_follows = !b->inode || a->zero || b->file_offset == a->file_offset + (left->end - left->start);

	return left->end == right->start && a->protection == b->protection && a->shared == b->shared &&
	       a->hugetlb == b->hugetlb && a->growsdown == b->growsdown && a->noreserve == b->noreserve &&
	       a->heap == b->heap && a->stack == b->stack && a->ring == b->ring && a->dontfork == b->dontfork &&
	       a->sealed == b->sealed && a->device_major == b->device_major && a->device_minor == b->device_minor &&
	       a->inode == b->inode && a->attachment == b->attachment && offset_follows;
}

bool space_is_data(const struct space_attributes *attributes)
{
	return (attributes->protection & PROT_WRITE) && !attributes->shared && !attributes->growsdown &&
	       !attributes->stack;
}

struct space_size space_measure(const struct space *space)
{
	const struct space_counts *counts = &space->counts;
	const struct space_interval *previous = NULL;
	struct space_size size = {.bytes = counts->mapped_bytes + counts->kernel_bytes + counts->before_bytes,
				  .data_bytes = counts->data_bytes};

	space_each(interval, space, true) {
		size.mappings += !previous || !space_continues_mapping(previous, interval);
		previous = interval;
	}
	return size;
}

const struct space_interval *space_next(const struct space *space, uint64_t address)
{
	struct interval_node *node = intervals_next(&space->mapped, address);

	return node ? &node->interval : NULL;
}

const struct space_interval *space_find(const struct space *space, uint64_t address)
{
	const struct space_interval *interval = space_next(space, address);

	return interval && interval->start <= address ? interval : NULL;
}

uint64_t space_code_generation(const struct space *space)
{
	return space->code_generation;
}

static bool has_file(const struct space_attributes *attributes)
{
	return attributes->inode || attributes->device_major || attributes->device_minor;
}

struct space_attributes space_edit_advance(const struct space_attributes *attributes, uint64_t bytes)
{
	struct space_attributes result = *attributes;

	if (has_file(attributes))
		result.file_offset += bytes;
	return result;
}

struct space_interval space_edit_clip(const struct space_interval *interval, uint64_t start, uint64_t end)
{
	struct space_interval part = *interval;

	if (part.start < start) {
		part.attributes = space_edit_advance(&part.attributes, start - part.start);
		part.start = start;
	}
	part.end = smaller_of(part.end, end);
	return part;
}

bool space_edit_agree(const struct space_attributes *left, const struct space_attributes *right)
{
	if (left->protection != right->protection || left->shared != right->shared)
		return false;
	if (left->inode == SPACE_INODE_UNKNOWN || right->inode == SPACE_INODE_UNKNOWN)
		return true;
	return left->inode == right->inode && left->device_major == right->device_major &&
	       left->device_minor == right->device_minor &&
	       (!has_file(left) || left->zero || right->zero || left->file_offset == right->file_offset);
}

bool space_edit_same(const struct space_attributes *left, const struct space_attributes *right)
{
	return left->protection == right->protection && left->shared == right->shared &&
	       left->growsdown == right->growsdown && left->hugetlb == right->hugetlb && left->heap == right->heap &&
	       left->shm == right->shm && left->dontfork == right->dontfork && left->noreserve == right->noreserve &&
	       left->stack == right->stack && left->thread_stack == right->thread_stack &&
	       left->unknown == right->unknown && left->zero == right->zero && left->ring == right->ring &&
	       left->sealed == right->sealed && left->attachment == right->attachment && left->part == right->part &&
	       left->segment_pages == right->segment_pages && left->device_major == right->device_major &&
	       left->device_minor == right->device_minor && left->inode == right->inode &&
	       left->file_offset == right->file_offset && left->path == right->path;
}

bool space_edit_continues(const struct space_interval *left, const struct space_interval *right)
{
	struct space_attributes continued = space_edit_advance(&left->attributes, left->end - left->start);

	return left->end == right->start && space_edit_same(&continued, &right->attributes);
}

static void count_interval(struct space *space, const struct space_interval *interval, bool add)
{
	struct space_counts *counts = &space->counts;
	uint64_t bytes = add ? interval->end - interval->start : interval->start - interval->end;

	/* Equal stacks may unwind differently from now on. */
	if ((interval->attributes.protection & PROT_EXEC) && has_file(&interval->attributes))
		space->code_generation++;
	if (interval->attributes.unknown)
		counts->unknown_bytes += bytes;
	if (space_is_data(&interval->attributes))
		counts->data_bytes += bytes;
	if (interval->allocation >= ALLOCATION_FIRST) {
		counts->mapped_bytes += bytes;
		/* How many threads run at once is chance, and they hardly touch their stacks. */
		if (space_edit_accessible(&interval->attributes) && !interval->attributes.thread_stack)
			counts->peaking_bytes += bytes;
		counts->peak_bytes = larger_of(counts->peak_bytes, counts->peaking_bytes);
	} else {
		*(interval->allocation == ALLOCATION_KERNEL ? &counts->kernel_bytes : &counts->before_bytes) += bytes;
	}
}

static bool can_merge(const struct space_interval *left, const struct space_interval *right)
{
	return left->end == right->start && left->allocation == right->allocation &&
	       left->reconciled == right->reconciled && left->commit == right->commit &&
	       space_edit_continues(left, right);
}

static void merge_at(struct space *space, uint64_t address)
{
	struct interval_node *left, *right;
	uint64_t end;

	if (!intervals_meet(&space->mapped, address, &left, &right) || !can_merge(&left->interval, &right->interval))
		return;
	end = right->interval.end;
	intervals_remove(&space->mapped, right->interval.start);
	left->interval.end = end;
}

static bool copy_space(const struct space *space, struct space *copy)
{
	struct interval_node *node, *last = NULL;

	copy->losses_at_exec = space->losses_at_exec;
	copy->losses_at_break = space->losses_at_break;
	copy->break_known = space->break_known;
	copy->program_break = space->program_break;
	copy->lowest_break = space->lowest_break;
	copy->read_implies_exec = space->read_implies_exec;
	copy->described = space->described;
	copy->attachments = space->attachments;
	copy->parts = space->parts;
	intervals_deinit(&copy->unknown);
	for (size_t place = 0; (node = intervals_walk(&space->unknown, &place));) {
		if (!intervals_insert(&copy->unknown, &node->interval, 0))
			return false;
	}
	/* Mappings that differed only in their allocations become one. */
	for (size_t place = 0; (node = intervals_walk(&space->mapped, &place));) {
		struct space_interval next = node->interval;

		if (next.attributes.dontfork || (next.attributes.ring && space->rules.protects_rings))
			continue;
		next.allocation = ALLOCATION_BEFORE;
		next.reconciled = false;
		next.commit = space_edit_commit(&next.attributes);
		count_interval(copy, &next, true);
		if (last && can_merge(&last->interval, &next))
			last->interval.end = next.end;
		else if (!(last = intervals_insert(&copy->mapped, &next, 0)))
			return false;
	}
	return snapshot_race_undo_in_copy(space, copy);
}

struct mmt_error *space_fork(const struct space *space, struct space **space_ret)
{
	const struct space_options options = {
	    .page_bytes = space->page_bytes, .rules = &space->rules, .losses = space->losses};
	struct space *copy;
	struct mmt_error *error = space_create(&options, &copy);

	if (error)
		return error;
	if (!copy_space(space, copy)) {
		space_destroy(copy);
		return &error_no_memory;
	}
	*space_ret = copy;
	return NULL;
}

/* Make `address` a boundary between intervals. */
static bool split_at(struct space *space, uint64_t address)
{
	struct interval_node *node = intervals_next(&space->mapped, address);
	struct space_interval tail;

	if (!node || node->interval.start >= address)
		return true;
	tail = node->interval;
	tail.start = address;
	tail.attributes = space_edit_advance(&tail.attributes, address - node->interval.start);
	if (!intervals_insert(&space->mapped, &tail, 0))
		return false;
	node->interval.end = address;
	return true;
}

bool space_edit_put(struct space *space, const struct space_interval *interval)
{
	if (interval->start >= interval->end)
		return true;
	if (!intervals_insert(&space->mapped, interval, 0))
		return false;
	count_interval(space, interval, true);
	merge_at(space, interval->end);
	merge_at(space, interval->start);
	return true;
}

bool space_edit_allocate(struct space *space, const struct space_interval *interval)
{
	struct space_interval named;

	if (interval->start >= interval->end)
		return true;
	if (interval->reconciled || interval->allocation == ALLOCATION_UNKNOWN) {
		named = *interval;
		named.reconciled = named.allocation == ALLOCATION_UNKNOWN;
		if (named.reconciled && space->observer.found)
			named.allocation = space->observer.found(space->observer.context, &named);
		interval = &named;
	}
	if (!space_edit_put(space, interval))
		return false;
	if (space->observer.allocated)
		space->observer.allocated(space->observer.context, interval);
	return true;
}

void space_edit_notify_released(struct space *space, const struct space_interval *interval, const struct space_call *by)
{
	if (space->observer.released)
		space->observer.released(space->observer.context, interval, interval->end - interval->start, by);
}

bool space_edit_take(struct space *space, uint64_t start, uint64_t end, pieces *taken)
{
	struct interval_node *node;

	while ((node = intervals_within(&space->mapped, start, end))) {
		if (node->interval.start < start) {
			if (!split_at(space, start))
				return false;
			continue;
		}
		if ((node->interval.end > end && !split_at(space, end)) || !vector_push(taken, node->interval))
			return false;
		count_interval(space, &node->interval, false);
		start = node->interval.end;
		intervals_remove(&space->mapped, node->interval.start);
	}
	return true;
}

bool space_edit_release(struct space *space, uint64_t start, uint64_t end, const struct space_call *by)
{
	pieces taken = {0};
	bool done = space_edit_take(space, start, end, &taken);

	for (size_t i = 0; i < taken.count; i++)
		space_edit_notify_released(space, &taken.items[i], by);
	vector_deinit(&taken);
	return done;
}

bool space_edit_change(struct space *space, uint64_t start, uint64_t end,
		       void (*change)(void *context, struct space_interval *interval), void *context)
{
	uint64_t position = start;
	struct interval_node *node;

	if (start >= end)
		return true;
	if (!split_at(space, start) || !split_at(space, end))
		return false;
	while ((node = intervals_within(&space->mapped, position, end))) {
		bool accessible = space_edit_accessible(&node->interval.attributes);
		uint32_t commit_before = node->interval.commit;

		count_interval(space, &node->interval, false);
		change(context, &node->interval);
		count_interval(space, &node->interval, true);
		if (accessible != space_edit_accessible(&node->interval.attributes) && space->observer.protected)
			space->observer.protected(space->observer.context, &node->interval, commit_before);
		position = node->interval.end;
		merge_at(space, node->interval.start);
	}
	merge_at(space, end);
	return true;
}

bool space_edit_touch_some(struct space *space, uint64_t start, uint64_t end)
{
	return intervals_cut(&space->unknown, start, end) && intervals_cut(&space->snapshot_races, start, end) &&
	       space_snapshot_touch(space, start, end);
}
