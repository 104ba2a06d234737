// SPDX-License-Identifier: LGPL-2.1-or-later
/* The effect of each call on the address space. */
#include "model/space/space-state.h"

#include <errno.h>

#include "base/limits.h"

#ifndef MAP_DROPPABLE
#define MAP_DROPPABLE 0x08
#endif

#ifndef MADV_DONTNEED_LOCKED
#define MADV_DONTNEED_LOCKED 24
#endif

#ifndef MADV_GUARD_INSTALL
#define MADV_GUARD_INSTALL 102
#endif

/* What one page of the page table maps: 2 MiB with pages of 4 KiB, 32 MiB with those of 16 KiB. */
#define HUGE_PAGE_SHIFT_DEFAULT(space) (2 * (unsigned int)__builtin_ctzll((space)->page_bytes) - 3)
#define HUGE_PAGE_SHIFT_POSITION 26
#define HUGE_PAGE_SHIFT_MASK 0x3f
#define PROTECTIONS (PROT_READ | PROT_WRITE | PROT_EXEC)

/* Whole pages from `start` on; false if the kernel would reject such arguments. */
static bool space_calls_range(const struct space *space, uint64_t start, uint64_t length, struct range *range_ret)
{
	uint64_t mask = space->page_bytes - 1;

	if ((start & mask) || !length || length + mask < length)
		return false;
	length = (length + mask) & ~mask;
	if (start + length < start)
		return false;
	*range_ret = (struct range){start, start + length};
	return true;
}

bool space_calls_valid_mmap2(const struct space *space, const struct space_mmap2 *mmap2_record)
{
	return mmap2_record->start < mmap2_record->end &&
	       !((mmap2_record->start | mmap2_record->end) & (space->page_bytes - 1));
}

/* The call's last MMAP2 record that covers the range; NULL: none. */
static const struct space_mmap2 *space_calls_mmap2(const struct space *space, const struct space_call *call,
						   const struct range *range)
{
	for (size_t i = call->mmap2_count; i > 0; i--) {
		const struct space_mmap2 *mmap2_record = &call->mmap2_records[i - 1];

		if (mmap2_record->start <= range->start && mmap2_record->end >= range->end &&
		    space_calls_valid_mmap2(space, mmap2_record))
			return mmap2_record;
	}
	return NULL;
}

void space_calls_take_mmap2(struct space_attributes *attributes, const struct space_mmap2 *mmap2_record, uint64_t start)
{
	struct space_attributes seen = space_edit_advance(&mmap2_record->attributes, start - mmap2_record->start);

	attributes->protection = seen.protection & PROTECTIONS;
	attributes->shared = seen.shared;
	attributes->device_major = seen.device_major;
	attributes->device_minor = seen.device_minor;
	attributes->inode = seen.inode;
	attributes->file_offset = seen.file_offset;
	attributes->path = seen.path;
	attributes->zero = seen.zero;
	attributes->hugetlbfs = seen.hugetlbfs;
	attributes->ring = seen.ring;
}

/* The protection the process gets when it asks for `protection`. */
static uint32_t space_calls_protection(const struct space *space, uint64_t protection)
{
	uint32_t result = (uint32_t)protection & PROTECTIONS;

	return (result & PROT_READ) && space->read_implies_exec ? result | PROT_EXEC : result;
}

/* Deduce the READ_IMPLIES_EXEC personality from the requested and the resulting protection. */
static void space_calls_learn(struct space *space, uint64_t asked, const struct space_attributes *seen)
{
	if ((asked & PROT_READ) && !(asked & PROT_EXEC) && (seen->protection & PROT_EXEC))
		space->read_implies_exec = true;
}

bool space_calls_allocate(struct space *space, const struct space_call *call, const struct range *range,
			  const struct space_attributes *attributes)
{
	const struct space_interval interval = {.start = range->start,
						.end = range->end,
						.attributes = *attributes,
						.allocation = call->allocation,
						.commit = space_edit_commit(attributes)};

	return space_edit_touch(space, range->start, range->end) && space_edit_allocate(space, &interval);
}

bool space_calls_release(struct space *space, const struct space_call *call, uint64_t start, uint64_t end)
{
	return space_edit_touch(space, start, end) && space_edit_release(space, start, end, call);
}

bool space_calls_place(struct space *space, const struct space_call *call, const struct range *range,
		       const struct space_attributes *attributes, bool replace)
{
	bool done = replace ? space_edit_release(space, range->start, range->end, call)
			    : pending_unmaps_place(space, call, range->start, range->end, attributes);

	return done && space_calls_allocate(space, call, range, attributes);
}

uint64_t space_calls_gap(const struct space *space, uint64_t start, uint64_t end)
{
	const struct space_interval *interval;

	while (start < end && (interval = space_find(space, start)))
		start = interval->end;
	return start < end ? start : end;
}

bool space_calls_sealed(const struct space *space, uint64_t start, uint64_t end)
{
	const struct interval_node *node;

	for (; (node = intervals_within(&space->mapped, start, end)); start = node->interval.end) {
		if (node->interval.attributes.sealed)
			return true;
	}
	return false;
}

static uint8_t huge_page_bits(const struct space *space, uint64_t flags)
{
	unsigned int shift = flags >> HUGE_PAGE_SHIFT_POSITION & HUGE_PAGE_SHIFT_MASK;

	if (!(flags & MAP_HUGETLB))
		return 0;
	return (uint8_t)(shift ? shift : HUGE_PAGE_SHIFT_DEFAULT(space));
}

/* Mappings of hugetlbfs files are rounded to huge pages even without MAP_HUGETLB. The kernel never merges them, so the
 * MMAP2 record is the mapping itself: it extends beyond the requested length by less than a huge page, and not because
 * of a neighbour. Returns log2 of the page size; 0: not hugetlbfs, or not known because no snapshot has described the
 * neighbour. */
static uint8_t learn_huge_pages(const struct space *space, const struct space_call *call, struct range *range)
{
	const uint8_t shifts[] = {HUGE_PAGE_SHIFT_DEFAULT(space), 30};
	const struct space_mmap2 *mmap2_record = space_calls_mmap2(space, call, range);
	const struct space_interval *above;
	struct space_attributes continued, held;

	if (!mmap2_record || (call->arguments[3] & MAP_ANONYMOUS) || mmap2_record->start != range->start ||
	    mmap2_record->end == range->end || intervals_within(&space->unknown, range->end, mmap2_record->end))
		return 0;
	above = space_find(space, range->end);
	continued = space_edit_advance(&mmap2_record->attributes, range->end - range->start);
	held = above ? space_edit_advance(&above->attributes, range->end - above->start) : continued;
	if (above && space_edit_agree(&held, &continued))
		return 0;
	for (size_t i = 0; i < sizeof(shifts) / sizeof(*shifts); i++) {
		uint64_t unit = 1ULL << shifts[i];

		if (mmap2_record->end - mmap2_record->start != space_calls_round_up(range->end - range->start, unit) ||
		    mmap2_record->start & (unit - 1))
			continue;
		range->end = mmap2_record->end;
		return shifts[i];
	}
	return 0;
}

/* A driver refuses a file mapping after the kernel has unmapped the target: MAP_FIXED then leaves a hole. These are the
 * errors of earlier checks. EINVAL is also one of theirs, for arguments that can be checked here. */
static bool refused_by_driver(const struct space *space, const struct space_call *call)
{
	static const int64_t earlier[] = {-EBADF,  -EACCES,  -ENODEV, -EOVERFLOW, -EPERM,
					  -ENOMEM, -ETXTBSY, -EEXIST, -EINTR};
	uint64_t flags = call->arguments[3], mask = space->page_bytes - 1;

	if (array_find(item, earlier, sizeof(earlier) / sizeof(*earlier), call->result == *item))
		return false;
	return (flags & MAP_FIXED) && !(flags & (MAP_ANONYMOUS | MAP_GROWSDOWN | MAP_FIXED_NOREPLACE)) &&
	       (flags & (MAP_SHARED | MAP_PRIVATE)) && (int32_t)call->arguments[4] >= 0 &&
	       !(call->arguments[0] & mask) && !(call->arguments[5] & mask);
}

static bool apply_mmap(struct space *space, const struct space_call *call)
{
	uint64_t flags = call->arguments[3], type = flags & (MAP_SHARED | MAP_PRIVATE | MAP_DROPPABLE);
	uint64_t length = space_calls_round_up(call->arguments[1], 1ULL << huge_page_bits(space, flags));
	struct space_attributes attributes = {
	    .protection = space_calls_protection(space, call->arguments[2]),
	    .shared = type == MAP_SHARED || type == MAP_SHARED_VALIDATE,
	    .growsdown = flags & MAP_GROWSDOWN,
	    .hugetlb = huge_page_bits(space, flags),
	    .noreserve = flags & MAP_NORESERVE,
	    .thread_stack = flags & MAP_STACK,
	};
	const struct space_mmap2 *mmap2_record;
	struct range range;

	if (space_calls_failed(call))
		return !refused_by_driver(space, call) ||
		       !space_calls_range(space, call->arguments[0], call->arguments[1], &range) ||
		       space_calls_release(space, call, range.start, range.end);
	if (!space_calls_range(space, (uint64_t)call->result, length, &range))
		return true;
	attributes.hugetlb = learn_huge_pages(space, call, &range) ?: attributes.hugetlb;
	mmap2_record = space_calls_mmap2(space, call, &range);
	if (mmap2_record) {
		space_calls_learn(space, call->arguments[2], &mmap2_record->attributes);
		space_calls_take_mmap2(&attributes, mmap2_record, range.start);
	} else if (!(flags & MAP_ANONYMOUS)) {
		attributes.inode = SPACE_INODE_UNKNOWN;
		attributes.file_offset = call->arguments[5];
	} else if (attributes.shared || attributes.hugetlb) {
		attributes.inode = SPACE_INODE_UNKNOWN;
	}
	return space_calls_place(space, call, &range, &attributes,
				 (flags & MAP_FIXED) && !(flags & MAP_FIXED_NOREPLACE));
}

static bool apply_munmap(struct space *space, const struct space_call *call)
{
	struct range range;

	return call->result != 0 || !space_calls_range(space, call->arguments[0], call->arguments[1], &range) ||
	       pending_unmaps_release(space, call, range.start, range.end);
}

/* Growth known only from MMAP2 records, because the old break is unknown. A record shows all of the mapping that has
 * grown. Until a snapshot has described that range, only what is above the new break is newer than the call: leave the
 * rest to the snapshot. */
static bool grow_unknown_break(struct space *space, const struct space_call *call, uint64_t top)
{
	array_each(mmap2_record, call->mmap2_records, call->mmap2_count) {
		const struct interval_node *below = intervals_before(&space->mapped, top);
		struct range range = {mmap2_record->start, top};

		if (mmap2_record->end != top || !space_calls_valid_mmap2(space, mmap2_record))
			continue;
		if (below && below->interval.end > range.start)
			range.start = below->interval.end;
		if (intervals_within(&space->unknown, range.start, range.end)) {
			if (space->break_before > range.start && space->break_before <= top)
				range.start = space->break_before;
			space->undecided_bytes += range.end - range.start;
			return true;
		}
		if (range.start < range.end) {
			struct space_attributes attributes = {.heap = true};

			space_calls_take_mmap2(&attributes, mmap2_record, range.start);
			return space_calls_allocate(space, call, &range, &attributes);
		}
	}
	return true;
}

static bool apply_brk(struct space *space, const struct space_call *call)
{
	uint64_t mask = space->page_bytes - 1;
	uint64_t top = ((uint64_t)call->result + mask) & ~mask, old = space->program_break;
	bool known = space->break_known;
	struct range range = {old, top};
	struct space_attributes attributes = {.protection = space_calls_protection(space, PROT_READ | PROT_WRITE),
					      .heap = true};
	const struct space_mmap2 *mmap2_record;
	struct space_call grower = *call;

	if (space_calls_failed(call) || !top)
		return true;
	if (known && space_losses(space) != space->losses_at_break && top > old) {
		grower.allocation = ALLOCATION_UNKNOWN;
		space->counts.reconciled_bytes += top - old;
	}
	space->break_known = true;
	space->losses_at_break = space_losses(space);
	space->program_break = top;
	space->lowest_break = smaller_of(space->lowest_break, top);
	if (!known)
		return (uint64_t)call->result != call->arguments[0] || grow_unknown_break(space, call, top);
	if (top < old)
		return pending_unmaps_release(space, call, top, old);
	if (top == old)
		return true;
	mmap2_record = space_calls_mmap2(space, call, &range);
	if (mmap2_record)
		space_calls_take_mmap2(&attributes, mmap2_record, range.start);
	return pending_unmaps_place(space, call, range.start, range.end, &attributes) &&
	       space_calls_allocate(space, &grower, &range, &attributes);
}

/* The call changes mappings in place: see space_edit_change(). */
static bool space_calls_change(struct space *space, uint64_t start, uint64_t end,
			       void (*change)(void *context, struct space_interval *interval), void *context)
{
	return space_shm_part(space, start, end, change, context) &&
	       snapshot_race_change(space, start, end, change, context) &&
	       space_edit_change(space, start, end, change, context);
}

struct new_offset {
	uint64_t start, file_offset;
};

static void change_offset(void *context, struct space_interval *interval)
{
	const struct new_offset *offset = context;

	if (interval->attributes.inode)
		interval->attributes.file_offset = offset->file_offset + (interval->start - offset->start);
	interval->attributes.dontfork = false;
}

/* The kernel maps the same file again in place of the old mapping, whose madvise() flags are lost. */
static bool apply_remap_file_pages(struct space *space, const struct space_call *call)
{
	uint64_t mask = space->page_bytes - 1;
	struct new_offset offset = {call->arguments[0] & ~mask, call->arguments[3] * space->page_bytes};
	struct range range;

	if (call->result != 0 || !space_calls_range(space, offset.start, call->arguments[1] & ~mask, &range))
		return true;
	return space_snapshot_touch(space, range.start, range.end) &&
	       space_calls_change(space, range.start, range.end, change_offset, &offset);
}

static void change_dontfork(void *context, struct space_interval *interval)
{
	interval->attributes.dontfork = *(const bool *)context;
}

bool space_advice_gives_back(uint32_t advice)
{
	return advice == MADV_DONTNEED || advice == MADV_DONTNEED_LOCKED || advice == MADV_FREE ||
	       advice == MADV_REMOVE || advice == MADV_PAGEOUT || advice == MADV_GUARD_INSTALL;
}

/* With a hole in the range the call fails with ENOMEM, after it has processed all mappings in the range. */
static bool apply_madvise(struct space *space, const struct space_call *call)
{
	uint32_t advice = (uint32_t)call->arguments[2];
	bool dontfork = advice == MADV_DONTFORK;
	struct space_interval part;
	struct range range;

	if ((call->result != 0 && call->result != -ENOMEM) ||
	    !space_calls_range(space, call->arguments[0], call->arguments[1], &range))
		return true;
	if (dontfork || advice == MADV_DOFORK)
		return space_calls_change(space, range.start, range.end, change_dontfork, &dontfork);
	if (!space_advice_gives_back(advice))
		return true;
	for (uint64_t position = range.start; intervals_next_part(&space->mapped, &position, range.end, &part);)
		space->counts.given_back_bytes += part.end - part.start;
	return true;
}

static void seal(void *context, struct space_interval *interval)
{
	(void)context;
	interval->attributes.sealed = true;
}

/* The call seals nothing if the range has a hole. */
static bool apply_mseal(struct space *space, const struct space_call *call)
{
	struct range range;

	return call->result != 0 || !space_calls_range(space, call->arguments[0], call->arguments[1], &range) ||
	       space_calls_change(space, range.start, range.end, seal, NULL);
}

/* Whether the record is about the range of the call. If not, it is stack growth from before the call. */
static bool concerns(const struct space_call *call, const struct space_mmap2 *mmap2_record)
{
	const struct call_description *description = call_describe(call->kind);
	uint64_t length = description->length ? call->arguments[description->length - 1] : 1, start;

	if (!description->mmap2)
		return false;
	start = description->place == CALL_AT_ARGUMENT ? call->arguments[0] : (uint64_t)call->result;
	start -= description->place == CALL_BELOW_RESULT;
	return mmap2_record->start < start + length && mmap2_record->end > start;
}

/* Only the kernel's own mappings: exec maps the segments of a program over a first mapping of its whole range. */
static void set_to_observed(void *context, struct space_interval *interval)
{
	const struct space_mmap2 *mmap2_record = context;

	if (interval->allocation != ALLOCATION_KERNEL)
		return;
	interval->attributes = space_edit_advance(&mmap2_record->attributes, interval->start - mmap2_record->start);
	interval->attributes.protection &= PROTECTIONS;
	interval->commit = space_edit_commit(&interval->attributes);
}

static bool add_missing(struct space *space, const struct space_mmap2 *mmap2_record)
{
	struct space_mmap2 seen = *mmap2_record;

	if (!space_edit_change(space, seen.start, seen.end, set_to_observed, &seen))
		return false;
	for (uint64_t position = seen.start, stop; position < seen.end; position = stop) {
		struct space_interval interval = {.start = position, .allocation = ALLOCATION_KERNEL};
		const struct space_interval *above;

		if (intervals_at(&space->mapped, position, seen.end, &stop))
			continue;
		interval.end = stop;
		set_to_observed(&seen, &interval);
		above = space_find(space, stop);
		/* Without a call, the kernel only grows stacks; other memory may belong to a lost call. The heap may
		 * have grown by a call in flight, but most of it is older. */
		if (interval.attributes.heap && intervals_within(&space->unknown, position, stop)) {
			interval.allocation = ALLOCATION_BEFORE;
		} else if (space_is_lossy(space) && !interval.attributes.stack &&
			   (!above || (!above->attributes.growsdown && !above->attributes.stack))) {
			interval.allocation = ALLOCATION_UNKNOWN;
			space->counts.reconciled_bytes += stop - position;
		}
		if (!space_edit_touch(space, position, stop) || !space_edit_allocate(space, &interval))
			return false;
	}
	return true;
}

struct mmt_error *space_mmap2(struct space *space, const struct space_mmap2 *mmap2_record)
{
	if (space_calls_valid_mmap2(space, mmap2_record) && !add_missing(space, mmap2_record))
		return &error_no_memory;
	return NULL;
}

#ifndef PROT_GROWSDOWN
#define PROT_GROWSDOWN 0x01000000
#endif

struct new_protection {
	uint32_t protection;
	uint32_t commit;
};

static void change_protection(void *context, struct space_interval *interval)
{
	const struct new_protection *change = context;
	bool accessible = space_edit_accessible(&interval->attributes);

	interval->attributes.protection = change->protection;
	if (!change->protection)
		interval->commit = COMMIT_NONE;
	else if (!accessible)
		interval->commit = change->commit;
}

static bool protect(struct space *space, const struct space_call *call, uint64_t start, uint64_t end,
		    uint32_t protection)
{
	/* Commit 0: the caller does not use commit numbers. */
	struct new_protection change = {.protection = protection & PROTECTIONS,
					.commit = call->commit ? call->commit : (uint32_t)COMMIT_WITH_ALLOCATION};

	return start >= end || space_calls_change(space, start, end, change_protection, &change);
}

/* PROT_GROWSDOWN reaches down to the start of the mapping. */
static uint64_t lowest(const struct space *space, const struct space_call *call, uint64_t start)
{
	const struct space_interval *interval = space_find(space, start);
	uint64_t low = start;

	if (!(call->arguments[2] & PROT_GROWSDOWN))
		return start;
	if (interval && (interval->attributes.growsdown || interval->attributes.stack))
		low = interval->start;
	array_each(mmap2_record, call->mmap2_records, call->mmap2_count) {
		if (mmap2_record->start < low && mmap2_record->end > start &&
		    space_calls_valid_mmap2(space, mmap2_record))
			low = mmap2_record->start;
	}
	return low;
}

static bool apply_mprotect(struct space *space, const struct space_call *call)
{
	struct range range;
	uint64_t changed_end;

	if (!space_calls_range(space, call->arguments[0], call->arguments[1], &range))
		return true;
	range.start = lowest(space, call, range.start);
	if (!reconcile_presumed(space, range.start, range.end))
		return false;
	changed_end = range.end;
	/* A failed call has changed the mappings before the one at which it failed. ENOMEM: that is at
	 * a gap. Otherwise only the kernel knows where. */
	if (space_calls_failed(call)) {
		changed_end = space_calls_gap(space, range.start, range.end);
		if (call->result != -ENOMEM || changed_end == range.end)
			changed_end = range.start;
	}
	if (!protect(space, call, range.start, changed_end, space_calls_protection(space, call->arguments[2])))
		return false;
	array_each(mmap2_record, call->mmap2_records, call->mmap2_count) {
		uint64_t start = larger_of(mmap2_record->start, range.start);
		uint64_t end = smaller_of(mmap2_record->end, range.end);

		if (start >= end || !space_calls_valid_mmap2(space, mmap2_record))
			continue;
		space_calls_learn(space, call->arguments[2], &mmap2_record->attributes);
		if (!protect(space, call, start, end, mmap2_record->attributes.protection))
			return false;
		changed_end = larger_of(changed_end, end);
	}
	return range.start >= changed_end || space_snapshot_touch(space, range.start, changed_end);
}

/* The rings of aio contexts. io_setup maps a ring, shown by an MMAP2 record, and unmaps it again if it fails.
 * io_destroy unmaps the ring long before it returns (it waits for all CPUs), so another mapping may take its place
 * meanwhile. */

static bool is_ring(const struct space_interval *held, uint64_t inode)
{
	return held && held->attributes.ring && held->attributes.inode == inode;
}

static void remove_ring(struct space *space, struct aio_ring *ring)
{
	space->rings.count--;
	memmove(ring, ring + 1, (size_t)(space->rings.items + space->rings.count - ring) * sizeof(*ring));
}

struct mmt_error *space_mmap2_ring(struct space *space, const struct space_mmap2 *mmap2_record, int32_t thread,
				   uint64_t time_ns, bool *new_ret)
{
	const struct space_call setup = {
	    .kind = CALL_MMAP, .time_ns = time_ns, .thread = thread, .allocation = ALLOCATION_KERNEL};
	const struct space_attributes *attributes = &mmap2_record->attributes;
	const struct range range = {mmap2_record->start, mmap2_record->end};
	const struct aio_ring ring = {.start = range.start,
				      .bytes = range.end - range.start,
				      .inode = attributes->inode,
				      .made_ns = time_ns,
				      .maker = thread};
	bool done;

	*new_ret =
	    space_calls_valid_mmap2(space, mmap2_record) && !is_ring(space_find(space, range.start), attributes->inode);
	if (!*new_ret)
		return NULL;
	space->now_ns = time_ns;
	if (space->rings.count == LIMIT_AIO_RINGS)
		remove_ring(space, space->rings.items);
	done = vector_push(&space->rings, ring) && space_calls_place(space, &setup, &range, attributes, false);
	space->now_ns = 0;
	return done ? NULL : &error_no_memory;
}

/* Find the ring that `call` destroys. If new rings were created at its address before the destroying calls returned,
 * there are several: choose one that existed when the call began. If the program has unmapped a ring itself and got
 * another context at the same address, the kernel uses what it reads there. */
static struct aio_ring *find_ring(struct space *space, const struct space_call *call)
{
	const struct space_interval *held = space_find(space, call->arguments[0]);
	struct aio_ring *found = NULL, *late = NULL;
	bool doubtful = false;

	for (size_t i = space->rings.count; i > 0; i--) {
		struct aio_ring *ring = &space->rings.items[i - 1];

		if (ring->start != call->arguments[0])
			continue;
		late = ring;
		if (pending_unmaps_in_flight(space, ring->maker, ring->made_ns, call))
			continue;
		doubtful = found != NULL;
		if (!found || is_ring(held, ring->inode))
			found = ring;
	}
	if (doubtful && !is_ring(held, found->inode))
		space->counts.ambiguous++;
	return found ? found : late;
}

/* A failed call has mapped a ring and unmapped it again: the system has too many contexts. */
static bool apply_io_setup(struct space *space, const struct space_call *call)
{
	struct aio_ring *ring = NULL;
	struct interval_node *node;
	uint64_t start, end;

	for (size_t i = space->rings.count; i > 0 && !ring; i--) {
		if (!space->rings.items[i - 1].settled && space->rings.items[i - 1].maker == call->thread)
			ring = &space->rings.items[i - 1];
	}
	if (!ring)
		return true;
	start = ring->start;
	end = start + ring->bytes;
	ring->settled = true;
	if (space_calls_failed(call)) {
		remove_ring(space, ring);
		return pending_unmaps_release(space, call, start, end);
	}
	/* The kernel owned the mapping until now; it belongs to the call. */
	for (uint64_t position = start;
	     call->allocation >= ALLOCATION_FIRST && (node = intervals_within(&space->mapped, position, end));) {
		struct space_interval piece = node->interval;

		position = piece.end;
		if (!piece.attributes.ring || piece.allocation != ALLOCATION_KERNEL || piece.start < start ||
		    piece.end > end)
			continue;
		if (!space_edit_release(space, piece.start, piece.end, NULL))
			return false;
		piece.allocation = call->allocation;
		if (!space_edit_allocate(space, &piece))
			return false;
	}
	return true;
}

/* The context's ID is the address of its ring. A ring from before the recording is assumed to be complete. */
static bool apply_io_destroy(struct space *space, const struct space_call *call)
{
	const struct space_interval *held = space_find(space, call->arguments[0]);
	uint64_t start = call->arguments[0], end;
	struct aio_ring *ring;

	if (call->result != 0)
		return true;
	ring = find_ring(space, call);
	if (ring) {
		end = start + ring->bytes;
		remove_ring(space, ring);
	} else if (held && held->start == start && held->attributes.ring) {
		end = held->end;
	} else {
		return true;
	}
	return space_calls_sealed(space, start, end) || pending_unmaps_release(space, call, start, end);
}

static bool mmap_place_is_requested(const uint64_t arguments[6])
{
	return arguments[3] & (MAP_FIXED | MAP_FIXED_NOREPLACE) && !arguments[0];
}

static bool mremap_place_is_requested(const uint64_t arguments[6])
{
	return !(arguments[3] & MREMAP_FIXED ? arguments[4] : arguments[0]);
}

static bool shmat_place_is_requested(const uint64_t arguments[6])
{
	return arguments[1];
}

/* The rules that the table of calls refers to. */
struct call_rule {
	/* NULL: the event does not show what the call did. */
	bool (*apply)(struct space *space, const struct space_call *call);
	/* For a call that returns an address: whether the caller requested address 0. NULL: 0 means success. */
	bool (*may_return_zero)(const uint64_t arguments[6]);
};

static const struct call_rule rule_mmap = {apply_mmap, mmap_place_is_requested};
static const struct call_rule rule_munmap = {apply_munmap, NULL};
static const struct call_rule rule_mremap = {space_mremap_apply, mremap_place_is_requested};
static const struct call_rule rule_brk = {apply_brk, NULL};
static const struct call_rule rule_mprotect = {apply_mprotect, NULL};
static const struct call_rule rule_shmat = {space_shm_attach, shmat_place_is_requested};
static const struct call_rule rule_shmdt = {space_shm_detach, NULL};
static const struct call_rule rule_remap_file_pages = {apply_remap_file_pages, NULL};
static const struct call_rule rule_io_setup = {apply_io_setup, NULL};
static const struct call_rule rule_io_destroy = {apply_io_destroy, NULL};
static const struct call_rule rule_madvise = {apply_madvise, NULL};
static const struct call_rule rule_mseal = {apply_mseal, NULL};
/* The ranges are in an array of the caller, and a descriptor identifies the process. */
static const struct call_rule rule_process_madvise = {NULL, NULL};

static const struct call_rule *const rules[CALL_KINDS] = {
#define CALL(constant, syscall, rule, ...) [CALL_##constant] = &rule_##rule,
    CALL_TABLE(CALL)
#undef CALL
};

struct mmt_error *space_apply(struct space *space, const struct space_call *call)
{
	const struct call_rule *rule = rules[call->kind];
	bool done = true;

	space->now_ns = call->time_ns;
	if (!reconcile_late(space, call->time_ns))
		return &error_no_memory;
	pending_unmaps_expire(space, call->time_ns);
	snapshot_race_expire(space, call->time_ns);
	array_while(mmap2_record, call->mmap2_records, call->mmap2_count, done) {
		/* stack growth of the thread before the call */
		if (!mmap2_record->applied && !concerns(call, mmap2_record) &&
		    space_calls_valid_mmap2(space, mmap2_record))
			done = add_missing(space, mmap2_record);
	}
	done = done && (!rule->apply || rule->apply(space, call)) && pending_unmaps_note(space, call);
	space->now_ns = 0;
	return done ? NULL : &error_no_memory;
}

bool space_call_is_faked(enum call call, const uint64_t arguments[6], int64_t result)
{
	const struct call_rule *rule = rules[call];

	return !result && rule->may_return_zero && !rule->may_return_zero(arguments);
}
