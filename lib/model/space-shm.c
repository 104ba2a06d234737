// SPDX-License-Identifier: LGPL-2.1-or-later
/* System V shared memory. */
#include <sys/shm.h>

#include "model/space-calls.h"
#include "model/space-edit.h"
#include "model/space-guards.h"

/* One attached segment, as the kernel told it: its size is not in the call. */
bool space_shm_attach(struct space *space, const struct space_call *call)
{
	uint64_t start = (uint64_t)call->result;

	if (space_calls_failed(call) || (start & (space->page_bytes - 1)))
		return true;
	for (size_t i = call->witness_count; i > 0; i--) {
		const struct space_witness *witness = &call->witnesses[i - 1];
		struct range range = {start, witness->end};
		struct space_attributes attributes = {.shm = true, .attachment = space->attachments + 1};

		if (witness->start > start || witness->end <= start || !space_calls_valid_witness(space, witness))
			continue;
		space_calls_take_witness(&attributes, witness, start);
		attributes.segment_pages = (uint32_t)((range.end - range.start) / space->page_bytes);
		space->attachments++;
		if (call->arguments[2] & SHM_REMAP) {
			if (!space_edit_release(space, range.start, range.end, call))
				return false;
		} else if (!space_guards_place(space, call, range.start, range.end, &attributes)) {
			return false;
		}
		return space_calls_bear(space, call, &range, &attributes);
	}
	/* Nobody told how large it is. */
	space->counts.ambiguous++;
	return true;
}

/* Whether the piece lies where it would in a segment that begins at `base`. */
static bool fits(const struct space_interval *piece, uint64_t base)
{
	const struct space_attributes *attributes = &piece->attributes;

	return attributes->shm && attributes->inode != SPACE_INODE_UNKNOWN && piece->start >= base &&
	       piece->start - base == attributes->file_offset;
}

/* Every shmat opens a file of its own. Of what was mapped before the recording only the segment is known. */
static bool same_attachment(const struct space_attributes *left, const struct space_attributes *right)
{
	return left->inode == right->inode && left->device_major == right->device_major &&
	       left->device_minor == right->device_minor &&
	       (left->attachment == right->attachment || !left->attachment || !right->attachment);
}

/* To the end of the kernel's mapping: what mremap has grown is another's birth, but the same mapping. */
static void extend(const struct space *space, struct space_interval *piece)
{
	struct space_interval last = *piece;
	const struct space_interval *next;

	while ((next = space_find(space, last.end)) && space_edit_continues(&last, next))
		last = *next;
	piece->end = last.end;
}

/* What is sealed stays, and the call succeeds all the same. */
static bool detach_piece(struct space *space, const struct space_call *call, const struct space_interval *piece)
{
	return piece->attributes.sealed || space_guards_release(space, call, piece->start, piece->end);
}

/*
 * The kernel takes the first piece whose place in a segment fits the address, and then those of the same attachment
 * that fit too, up to the first mapping, of whatever kind, that ends beyond the segment. (A piece may: mremap has grown
 * it.)
 */
bool space_shm_detach(struct space *space, const struct space_call *call)
{
	uint64_t base = call->arguments[0], position = base, end;
	struct space_interval first, piece;
	struct interval_node *node;

	if (call->result != 0)
		return true;
	while ((node = intervals_next(&space->mapped, position)) && !fits(&node->interval, base))
		position = node->interval.end;
	if (!node)
		return true;
	first = node->interval;
	extend(space, &first);
	end = first.attributes.segment_pages ? base + first.attributes.segment_pages * space->page_bytes : UINT64_MAX;
	if (!detach_piece(space, call, &first))
		return false;
	for (position = first.end; (node = intervals_next(&space->mapped, position)); position = piece.end) {
		piece = node->interval;
		extend(space, &piece);
		if (piece.end > end)
			break;
		if (fits(&piece, base) && same_attachment(&piece.attributes, &first.attributes) &&
		    !detach_piece(space, call, &piece))
			return false;
	}
	return true;
}
