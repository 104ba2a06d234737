// SPDX-License-Identifier: LGPL-2.1-or-later
/* What each call does to the address space. */
#include "model/space.h"

#include <errno.h>
#include <stddef.h>
#include <sys/mman.h>

#include "model/space-calls.h"
#include "model/space-doubt.h"
#include "model/space-edit.h"
#include "model/space-guards.h"
#include "model/space-repair.h"
#include "model/space-snapshot.h"

#ifndef MAP_DROPPABLE
#define MAP_DROPPABLE 0x08
#endif
#define HUGE_PAGE_SHIFT_DEFAULT 21
#define HUGE_PAGE_SHIFT_POSITION 26
#define HUGE_PAGE_SHIFT_MASK 0x3f
#define PROTECTIONS (PROT_READ | PROT_WRITE | PROT_EXEC)

bool space_calls_range(const struct space *space, uint64_t start, uint64_t length, struct range *range_ret)
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

bool space_calls_valid_witness(const struct space *space, const struct space_witness *witness)
{
	return witness->start < witness->end && !((witness->start | witness->end) & (space->page_bytes - 1));
}

const struct space_witness *space_calls_witness(const struct space *space, const struct space_call *call,
						const struct range *range)
{
	for (size_t i = call->witness_count; i > 0; i--) {
		const struct space_witness *witness = &call->witnesses[i - 1];

		if (witness->start <= range->start && witness->end >= range->end &&
		    space_calls_valid_witness(space, witness))
			return witness;
	}
	return NULL;
}

void space_calls_take_witness(struct space_attributes *attributes, const struct space_witness *witness, uint64_t start)
{
	struct space_attributes seen = space_edit_advance(&witness->attributes, start - witness->start);

	attributes->protection = seen.protection & PROTECTIONS;
	attributes->shared = seen.shared;
	attributes->device_major = seen.device_major;
	attributes->device_minor = seen.device_minor;
	attributes->inode = seen.inode;
	attributes->file_offset = seen.file_offset;
	attributes->path = seen.path;
	attributes->zero = seen.zero;
	attributes->ring = seen.ring;
}

uint32_t space_calls_protection(const struct space *space, uint64_t protection)
{
	uint32_t result = (uint32_t)protection & PROTECTIONS;

	return (result & PROT_READ) && space->read_implies_exec ? result | PROT_EXEC : result;
}

void space_calls_learn(struct space *space, uint64_t asked, const struct space_attributes *seen)
{
	if ((asked & PROT_READ) && !(asked & PROT_EXEC) && (seen->protection & PROT_EXEC))
		space->read_implies_exec = true;
}

bool space_calls_bear(struct space *space, const struct space_call *call, const struct range *range,
		      const struct space_attributes *attributes)
{
	const struct space_interval interval = {.start = range->start,
						.end = range->end,
						.attributes = *attributes,
						.birth = call->birth,
						.commit = space_edit_commit(attributes)};

	return space_edit_touch(space, range->start, range->end) && space_edit_bear(space, &interval);
}

static uint8_t huge_page_bits(uint64_t flags)
{
	unsigned int shift = flags >> HUGE_PAGE_SHIFT_POSITION & HUGE_PAGE_SHIFT_MASK;

	if (!(flags & MAP_HUGETLB))
		return 0;
	return (uint8_t)(shift ? shift : HUGE_PAGE_SHIFT_DEFAULT);
}

static void describe_mmap(struct space *space, const struct space_call *call, const struct range *range,
			  struct space_attributes *attributes_ret)
{
	const struct space_witness *witness = space_calls_witness(space, call, range);
	uint64_t flags = call->arguments[3];
	uint64_t type = flags & (MAP_SHARED | MAP_PRIVATE | MAP_DROPPABLE);

	*attributes_ret = (struct space_attributes){
	    .protection = space_calls_protection(space, call->arguments[2]),
	    .shared = type == MAP_SHARED || type == MAP_SHARED_VALIDATE,
	    .growsdown = flags & MAP_GROWSDOWN,
	    .hugetlb = huge_page_bits(flags),
	    .noreserve = flags & MAP_NORESERVE,
	    .thread_stack = flags & MAP_STACK,
	};
	if (witness) {
		space_calls_learn(space, call->arguments[2], &witness->attributes);
		space_calls_take_witness(attributes_ret, witness, range->start);
	} else if (!(flags & MAP_ANONYMOUS)) {
		attributes_ret->inode = SPACE_INODE_UNKNOWN;
		attributes_ret->file_offset = call->arguments[5];
	} else if (attributes_ret->shared || attributes_ret->hugetlb) {
		attributes_ret->inode = SPACE_INODE_UNKNOWN;
	}
}

static uint64_t round_up(uint64_t bytes, unsigned int shift)
{
	uint64_t mask = (1ULL << shift) - 1;

	return bytes + mask < bytes ? 0 : (bytes + mask) & ~mask;
}

static uint64_t mmap_length(const struct space_call *call)
{
	uint8_t bits = huge_page_bits(call->arguments[3]);

	return bits ? round_up(call->arguments[1], bits) : call->arguments[1];
}

/*
 * Files of huge pages are rounded without MAP_HUGETLB. They are never merged, so the witness is the mapping itself: it
 * reaches beyond what was asked for, up to a huge page, and not because the model knows of a continuation there. The
 * bits of their size; 0: it is none.
 */
static uint8_t learn_huge_pages(const struct space *space, const struct space_call *call, struct range *range)
{
	static const uint8_t shifts[] = {HUGE_PAGE_SHIFT_DEFAULT, 30};
	const struct space_witness *witness = space_calls_witness(space, call, range);
	const struct space_interval *above;
	struct space_attributes continued, held;

	if (!witness || (call->arguments[3] & MAP_ANONYMOUS) || witness->start != range->start ||
	    witness->end == range->end)
		return 0;
	above = space_find(space, range->end);
	continued = space_edit_advance(&witness->attributes, range->end - range->start);
	held = above ? space_edit_advance(&above->attributes, range->end - above->start) : continued;
	if (above && space_edit_agree(&held, &continued))
		return 0;
	for (size_t i = 0; i < sizeof(shifts) / sizeof(*shifts); i++) {
		if (witness->end - witness->start != round_up(range->end - range->start, shifts[i]) ||
		    witness->start & ((1ULL << shifts[i]) - 1))
			continue;
		range->end = witness->end;
		return shifts[i];
	}
	return 0;
}

/*
 * A driver that refuses a file mapping does so after the kernel has made room for it: MAP_FIXED then leaves a hole.
 * These are the errors of the checks before; EINVAL is also one of theirs, for arguments that can be told here.
 */
static bool refused_by_driver(const struct space *space, const struct space_call *call)
{
	static const int64_t earlier[] = {-EBADF,  -EACCES,  -ENODEV, -EOVERFLOW, -EPERM,
					  -ENOMEM, -ETXTBSY, -EEXIST, -EINTR};
	uint64_t flags = call->arguments[3], mask = space->page_bytes - 1;

	for (size_t i = 0; i < sizeof(earlier) / sizeof(*earlier); i++) {
		if (call->result == earlier[i])
			return false;
	}
	return (flags & MAP_FIXED) && !(flags & (MAP_ANONYMOUS | MAP_GROWSDOWN | MAP_FIXED_NOREPLACE)) &&
	       (flags & (MAP_SHARED | MAP_PRIVATE)) && (int32_t)call->arguments[4] >= 0 &&
	       !(call->arguments[0] & mask) && !(call->arguments[5] & mask);
}

static bool apply_mmap(struct space *space, const struct space_call *call)
{
	uint64_t flags = call->arguments[3];
	struct space_attributes attributes;
	struct range range;
	uint8_t huge;

	if (space_calls_failed(call)) {
		if (!refused_by_driver(space, call) ||
		    !space_calls_range(space, call->arguments[0], call->arguments[1], &range))
			return true;
		return space_edit_touch(space, range.start, range.end) &&
		       space_edit_release(space, range.start, range.end, call);
	}
	if (!space_calls_range(space, (uint64_t)call->result, mmap_length(call), &range))
		return true;
	huge = learn_huge_pages(space, call, &range);
	describe_mmap(space, call, &range, &attributes);
	if (huge)
		attributes.hugetlb = huge;
	if ((flags & MAP_FIXED) && !(flags & MAP_FIXED_NOREPLACE)) {
		if (!space_edit_release(space, range.start, range.end, call))
			return false;
	} else if (!space_guards_place(space, call, range.start, range.end, &attributes)) {
		return false;
	}
	return space_calls_bear(space, call, &range, &attributes);
}

static bool apply_munmap(struct space *space, const struct space_call *call)
{
	struct range range;

	if (call->result != 0 || !space_calls_range(space, call->arguments[0], call->arguments[1], &range))
		return true;
	return space_guards_release(space, call, range.start, range.end);
}

/* Growth told by the kernel alone, when the old break is not known. */
static bool grow_unknown_break(struct space *space, const struct space_call *call, uint64_t top)
{
	for (size_t i = 0; i < call->witness_count; i++) {
		const struct space_witness *witness = &call->witnesses[i];
		const struct interval_node *below = intervals_before(&space->mapped, top);
		struct range range = {witness->start, top};

		if (witness->end != top || !space_calls_valid_witness(space, witness))
			continue;
		if (below && below->interval.end > range.start)
			range.start = below->interval.end;
		if (range.start < range.end) {
			struct space_attributes attributes = {.heap = true};

			space_calls_take_witness(&attributes, witness, range.start);
			return space_calls_bear(space, call, &range, &attributes);
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
	const struct space_witness *witness;
	struct space_call grower = *call;

	if (space_calls_failed(call) || !top)
		return true;
	if (known && space_losses(space) != space->losses_at_break && top > old) {
		grower.birth = BIRTH_UNKNOWN;
		space->counts.repaired_bytes += top - old;
	}
	space->break_known = true;
	space->losses_at_break = space_losses(space);
	space->snapshot.told_break = false;
	space->program_break = top;
	if (!known)
		return (uint64_t)call->result != call->arguments[0] || grow_unknown_break(space, call, top);
	if (top < old)
		return space_guards_release(space, call, top, old);
	if (top == old)
		return true;
	witness = space_calls_witness(space, call, &range);
	if (witness)
		space_calls_take_witness(&attributes, witness, range.start);
	return space_guards_place(space, call, range.start, range.end, &attributes) &&
	       space_calls_bear(space, &grower, &range, &attributes);
}

bool space_calls_change(struct space *space, uint64_t start, uint64_t end,
			void (*change)(void *context, struct space_interval *interval), void *context)
{
	return space_shm_part(space, start, end, change, context) &&
	       space_doubt_change(space, start, end, change, context) &&
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

/* The kernel maps the same file anew over itself: what madvise() said of the old mapping is gone. */
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

/* Holes make it fail with ENOMEM, after it has been done to all that is mapped. */
static bool apply_madvise(struct space *space, const struct space_call *call)
{
	bool dontfork = call->arguments[2] == MADV_DONTFORK;
	struct range range;

	if ((!dontfork && call->arguments[2] != MADV_DOFORK) || (call->result != 0 && call->result != -ENOMEM) ||
	    !space_calls_range(space, call->arguments[0], call->arguments[1], &range))
		return true;
	return space_calls_change(space, range.start, range.end, change_dontfork, &dontfork);
}

static void seal(void *context, struct space_interval *interval)
{
	(void)context;
	interval->attributes.sealed = true;
}

/* With a hole in the range nothing is sealed. */
static bool apply_mseal(struct space *space, const struct space_call *call)
{
	struct range range;

	return call->result != 0 || !space_calls_range(space, call->arguments[0], call->arguments[1], &range) ||
	       space_calls_change(space, range.start, range.end, seal, NULL);
}

static bool apply(struct space *space, const struct space_call *call)
{
	switch (call->kind) {
	case SPACE_MMAP:
		return apply_mmap(space, call);
	case SPACE_MUNMAP:
		return apply_munmap(space, call);
	case SPACE_MREMAP:
		return space_mremap_apply(space, call);
	case SPACE_BRK:
		return apply_brk(space, call);
	case SPACE_MPROTECT:
		return space_mprotect_apply(space, call);
	case SPACE_SHMAT:
		return space_shm_attach(space, call);
	case SPACE_SHMDT:
		return space_shm_detach(space, call);
	case SPACE_REMAP_FILE_PAGES:
		return apply_remap_file_pages(space, call);
	case SPACE_IO_DESTROY:
		return space_rings_destroy(space, call);
	case SPACE_IO_SETUP:
		return space_rings_setup(space, call);
	case SPACE_MADVISE:
		return apply_madvise(space, call);
	case SPACE_MSEAL:
		return apply_mseal(space, call);
	}
	return true;
}

static bool concerns(const struct space_call *call, const struct space_witness *witness)
{
	uint64_t start = call->arguments[0], end = start + call->arguments[1];

	/* The kernel tells of nothing these do: it is a stack's growth before. */
	if (call->kind == SPACE_MUNMAP || call->kind == SPACE_MREMAP || call->kind == SPACE_SHMDT ||
	    call->kind == SPACE_IO_SETUP || call->kind == SPACE_IO_DESTROY || call->kind == SPACE_MADVISE ||
	    call->kind == SPACE_MSEAL)
		return false;
	if (call->kind == SPACE_MMAP || call->kind == SPACE_SHMAT) {
		start = (uint64_t)call->result;
		end = start + (call->kind == SPACE_MMAP ? call->arguments[1] : 1);
	} else if (call->kind == SPACE_BRK) {
		start = (uint64_t)call->result - 1;
		end = start + 1;
	}
	return witness->start < end && witness->end > start;
}

/* The kernel's own mappings: exec lays the segments of a program over a first mapping of its whole span. */
static void become_as_seen(void *context, struct space_interval *interval)
{
	const struct space_witness *witness = context;

	if (interval->birth != BIRTH_KERNEL)
		return;
	interval->attributes = space_edit_advance(&witness->attributes, interval->start - witness->start);
	interval->attributes.protection &= PROTECTIONS;
	interval->commit = space_edit_commit(&interval->attributes);
}

/* Of what has no call the kernel makes stacks grow; the rest may be a lost call's. */
static uint32_t birth_of_missing(struct space *space, const struct space_interval *missing)
{
	const struct space_interval *above = space_find(space, missing->end);

	if (!space_is_lossy(space) || missing->attributes.stack ||
	    (above && (above->attributes.growsdown || above->attributes.stack)))
		return BIRTH_KERNEL;
	space->counts.repaired_bytes += missing->end - missing->start;
	return BIRTH_UNKNOWN;
}

static bool add_missing(struct space *space, const struct space_witness *witness)
{
	struct space_interval interval = {0};
	struct space_witness seen = *witness;
	uint64_t position = witness->start;

	if (!space_edit_change(space, witness->start, witness->end, become_as_seen, &seen))
		return false;
	while (position < witness->end) {
		const struct interval_node *next = intervals_next(&space->mapped, position);

		interval.start = position;
		interval.end = next && next->interval.start < witness->end ? next->interval.start : witness->end;
		position = next ? next->interval.end : witness->end;
		if (interval.start >= interval.end)
			continue;
		interval.attributes = space_edit_advance(&witness->attributes, interval.start - witness->start);
		interval.attributes.protection &= PROTECTIONS;
		interval.commit = space_edit_commit(&interval.attributes);
		interval.birth = birth_of_missing(space, &interval);
		if (!space_edit_touch(space, interval.start, interval.end) || !space_edit_bear(space, &interval))
			return false;
	}
	return true;
}

struct mmt_error *space_witness(struct space *space, const struct space_witness *witness)
{
	if (space_calls_valid_witness(space, witness) && !add_missing(space, witness))
		return &error_no_memory;
	return NULL;
}

struct mmt_error *space_apply(struct space *space, const struct space_call *call)
{
	bool done = true;

	space->now_ns = call->time_ns;
	space->returned_ns = call->returned_ns;
	if (!space_repair_late(space, call->time_ns))
		return &error_no_memory;
	space_guards_expire(space, call->time_ns);
	space_doubt_expire(space, call->time_ns);
	for (size_t i = 0; done && i < call->witness_count; i++) {
		const struct space_witness *witness = &call->witnesses[i];

		/* What the thread's stack did before the call. */
		if (!witness->told && !concerns(call, witness) && space_calls_valid_witness(space, witness))
			done = add_missing(space, witness);
	}
	done = done && apply(space, call) && space_guards_note(space, call);
	space->now_ns = space->returned_ns = 0;
	return done ? NULL : &error_no_memory;
}
