// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The rings of aio contexts. io_setup maps them, which an MMAP2 record shows at the moment it happens, and unmaps them
 * again when it fails; io_destroy unmaps them long before it returns (it waits for all processors), so that meanwhile
 * others may have got their place.
 */
#include <string.h>

#include "model/space-calls.h"
#include "model/space-edit.h"
#include "model/space-guards.h"

static bool has_ring(const struct space *space, const struct space_witness *witness)
{
	const struct space_interval *held = space_find(space, witness->start);

	return held && held->attributes.ring && held->attributes.inode == witness->attributes.inode;
}

static void remove_ring(struct space *space, struct ring *ring)
{
	space->rings.count--;
	memmove(ring, ring + 1, (size_t)(space->rings.items + space->rings.count - ring) * sizeof(*ring));
}

static bool make_ring(struct space *space, const struct space_witness *witness, const struct space_call *setup)
{
	const struct ring ring = {.start = witness->start,
				  .bytes = witness->end - witness->start,
				  .inode = witness->attributes.inode,
				  .made_ns = setup->time_ns,
				  .maker = setup->thread};
	struct space_interval interval = {.start = witness->start,
					  .end = witness->end,
					  .attributes = witness->attributes,
					  .birth = BIRTH_KERNEL,
					  .commit = space_edit_commit(&witness->attributes)};

	if (space->rings.count == RINGS_MAXIMUM)
		remove_ring(space, space->rings.items);
	return vector_push(&space->rings, ring) &&
	       space_guards_place(space, setup, witness->start, witness->end, &witness->attributes) &&
	       space_edit_touch(space, witness->start, witness->end) && space_edit_bear(space, &interval);
}

struct mmt_error *space_witness_ring(struct space *space, const struct space_witness *witness, int32_t thread,
				     uint64_t time_ns, bool *new_ret)
{
	const struct space_call setup = {.kind = SPACE_MMAP, .time_ns = time_ns, .thread = thread};
	bool done;

	*new_ret = space_calls_valid_witness(space, witness) && !has_ring(space, witness);
	if (!*new_ret)
		return NULL;
	space->now_ns = time_ns;
	done = make_ring(space, witness, &setup);
	space->now_ns = 0;
	return done ? NULL : &error_no_memory;
}

void space_rings_move(struct space *space, const struct space_interval *piece)
{
	for (size_t i = 0; i < space->rings.count; i++) {
		if (piece->attributes.inode == space->rings.items[i].inode)
			space->rings.items[i].start = piece->start;
	}
}

/*
 * The ring that `call` destroys. Several were at its address when others came there before the calls that destroy them
 * returned: it is one that was there when the call began. Or the program has unmapped a ring itself and got another
 * context at the same address: the kernel then goes by what it reads there.
 */
static struct ring *find_ring(struct space *space, const struct space_call *call)
{
	const struct space_interval *held = space_find(space, call->arguments[0]);
	struct ring *found = NULL, *late = NULL;
	bool doubtful = false;

	for (size_t i = space->rings.count; i > 0; i--) {
		struct ring *ring = &space->rings.items[i - 1];

		if (ring->start != call->arguments[0])
			continue;
		late = ring;
		if (space_guards_in_flight(space, ring->maker, ring->made_ns, call))
			continue;
		doubtful = found != NULL;
		if (!found || (held && held->attributes.ring && held->attributes.inode == ring->inode))
			found = ring;
	}
	if (doubtful && !(held && held->attributes.ring && held->attributes.inode == found->inode))
		space->counts.ambiguous++;
	return found ? found : late;
}

static bool is_sealed(const struct space *space, uint64_t start, uint64_t end)
{
	const struct space_interval *interval;

	for (uint64_t position = start; (interval = space_next(space, position)) && interval->start < end;
	     position = interval->end) {
		if (interval->attributes.sealed)
			return true;
	}
	return false;
}

/* The kernel owns the mapping until io_setup() returns: from then on it belongs to that call. */
static bool give_ring(struct space *space, const struct space_call *call, uint64_t start, uint64_t end)
{
	struct interval_node *node;

	for (uint64_t position = start; (node = intervals_within(&space->mapped, position, end));) {
		struct space_interval piece = node->interval;

		position = piece.end;
		if (!piece.attributes.ring || piece.birth != BIRTH_KERNEL || piece.start < start || piece.end > end)
			continue;
		if (!space_edit_release(space, piece.start, piece.end, NULL))
			return false;
		piece.birth = call->birth;
		if (!space_edit_bear(space, &piece))
			return false;
	}
	return true;
}

/* One that fails has made a ring all the same, and unmapped it again: where the system has too many contexts. */
bool space_rings_setup(struct space *space, const struct space_call *call)
{
	for (size_t i = space->rings.count; i > 0; i--) {
		struct ring *ring = &space->rings.items[i - 1];
		uint64_t start = ring->start, end = start + ring->bytes;

		if (ring->settled || ring->maker != call->thread)
			continue;
		ring->settled = true;
		if (!space_calls_failed(call))
			return call->birth < BIRTH_FIRST || give_ring(space, call, start, end);
		remove_ring(space, ring);
		return space_guards_release(space, call, start, end);
	}
	return true;
}

/* The context's number is the address of its ring. One that was there before the recording is taken to be whole. */
bool space_rings_destroy(struct space *space, const struct space_call *call)
{
	const struct space_interval *held = space_find(space, call->arguments[0]);
	uint64_t start = call->arguments[0], end;
	struct ring *ring;

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
	return is_sealed(space, start, end) || space_guards_release(space, call, start, end);
}
