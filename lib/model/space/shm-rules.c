// SPDX-License-Identifier: LGPL-2.1-or-later
/* System V shared memory. */
#include <sys/shm.h>

#include "model/space/space-state.h"

/* Attach a segment. Its size comes from the MMAP2 record, because the call has none. */
bool space_shm_attach(struct space *space, const struct space_call *call)
{
	uint64_t start = (uint64_t)call->result;

	if (space_calls_failed(call) || (start & (space->page_bytes - 1)))
		return true;
	for (size_t i = call->mmap2_count; i > 0; i--) {
		const struct space_mmap2 *mmap2_record = &call->mmap2_records[i - 1];
		struct range range = {start, mmap2_record->end};
		struct space_attributes attributes = {.shm = true, .attachment = space->attachments + 1};

		if (mmap2_record->start > start || mmap2_record->end <= start ||
		    !space_calls_valid_mmap2(space, mmap2_record))
			continue;
		space_calls_take_mmap2(&attributes, mmap2_record, start);
		attributes.segment_pages = (uint32_t)((range.end - range.start) / space->page_bytes);
		space->attachments++;
		return space_calls_place(space, call, &range, &attributes, call->arguments[2] & SHM_REMAP);
	}
	/* The size is unknown. */
	space->counts.ambiguous++;
	return true;
}

/* Whether the piece is at its place in a segment that begins at `base`. */
static bool fits(const struct space_interval *piece, uint64_t base)
{
	const struct space_attributes *attributes = &piece->attributes;

	return attributes->shm && attributes->inode != SPACE_INODE_UNKNOWN && piece->start >= base &&
	       piece->start - base == attributes->file_offset;
}

/* Each shmat opens a separate file. For mappings from before the recording only the segment is known. */
static bool same_attachment(const struct space_attributes *left, const struct space_attributes *right)
{
	return left->inode == right->inode && left->device_major == right->device_major &&
	       left->device_minor == right->device_minor &&
	       (left->attachment == right->attachment || !left->attachment || !right->attachment);
}

/* Extend to the end of the kernel's mapping: a part that mremap added has another allocation but belongs to the same
 * mapping. */
static void extend(const struct space *space, struct space_interval *piece)
{
	struct space_interval last = *piece;
	const struct space_interval *next;

	while ((next = space_find(space, last.end)) && space_edit_continues(&last, next))
		last = *next;
	piece->end = last.end;
}

/* Whether the two would be one mapping if their parts were equal. */
static bool adjoin(const struct space_interval *left, const struct space_interval *right)
{
	struct space_interval joined;

	if (!left || !right)
		return false;
	joined = *right;
	joined.attributes.part = left->attributes.part;
	return space_edit_continues(left, &joined);
}

static void set_part(void *context, struct space_interval *interval)
{
	interval->attributes.part = *(const uint32_t *)context;
}

/* The changed range of one of the kernel's mappings, and its first and last interval after `change`. */
struct cut {
	struct range mapping, changed;
	struct space_interval first, last;
};

/* The kernel merges the changed part of a mapping with an equal neighbour, depending on its version, or makes it a
 * separate mapping. */
static bool part_mapping(struct space *space, const struct cut *cut)
{
	const struct space_interval *previous = space_find(space, cut->changed.start - 1);
	const struct space_interval *next = space_find(space, cut->changed.end);
	bool at_start = cut->changed.start == cut->mapping.start, at_end = cut->changed.end == cut->mapping.end;
	uint32_t number;

	if (at_start && at_end)
		return true;
	if (at_start && space->rules.shm_merging >= SHM_MERGES_INTO_PREVIOUS && adjoin(previous, &cut->first))
		number = previous->attributes.part;
	else if (at_end && space->rules.shm_merging >= SHM_MERGES_INTO_BOTH && adjoin(&cut->last, next))
		number = next->attributes.part;
	else
		number = ++space->parts;
	if (!space_edit_change(space, cut->changed.start, cut->changed.end, set_part, &number))
		return false;
	if (at_start || at_end)
		return true;
	number = ++space->parts;
	return space_edit_change(space, cut->changed.end, cut->mapping.end, set_part, &number);
}

/* The kernel does not merge away a mapping of a segment, because its vm_ops->close must be called. */
bool space_shm_part(struct space *space, uint64_t start, uint64_t end,
		    void (*change)(void *context, struct space_interval *interval), void *context)
{
	struct interval_node *node;

	for (uint64_t position = start; (node = intervals_within(&space->mapped, position, end));) {
		struct space_interval piece = node->interval, first = piece;
		const struct space_interval *previous;
		struct cut cut;

		if (!piece.attributes.shm) {
			position = piece.end;
			continue;
		}
		/* The start of the kernel's mapping. */
		while ((previous = space_find(space, first.start - 1)) && space_edit_continues(previous, &first))
			first = *previous;
		cut.mapping.start = first.start;
		extend(space, &piece);
		cut.mapping.end = position = piece.end;
		cut.changed.start = larger_of(cut.mapping.start, start);
		cut.changed.end = smaller_of(cut.mapping.end, end);
		cut.first = *space_find(space, cut.changed.start);
		cut.last = *space_find(space, cut.changed.end - 1);
		cut.last.end = cut.changed.end;
		piece = cut.first;
		change(context, &cut.first);
		change(context, &cut.last);
		if (!space_edit_same(&piece.attributes, &cut.first.attributes) && !part_mapping(space, &cut))
			return false;
	}
	return true;
}

void space_shm_join(struct space *space, struct space_interval *piece, uint32_t *part)
{
	const struct space_interval *previous = space_find(space, piece->start - 1),
				    *next = space_find(space, piece->end);

	if (space->rules.shm_merging == SHM_MERGES_INTO_BOTH) {
		if (adjoin(previous, piece))
			piece->attributes.part = previous->attributes.part;
		else if (adjoin(piece, next))
			piece->attributes.part = next->attributes.part;
		return;
	}
	if (*part == SPACE_PART_NONE && space->rules.shm_merging == SHM_MERGES_INTO_PREVIOUS && adjoin(previous, piece))
		*part = previous->attributes.part;
	if (*part == SPACE_PART_NONE)
		*part = ++space->parts;
	piece->attributes.part = *part;
}

/* The kernel detaches the first piece whose offset fits the address, and then the fitting pieces of the same
 * attachment, up to the first mapping of any kind that ends beyond the segment. (A piece that mremap has grown may do
 * so.) A sealed mapping stays, and the call succeeds nevertheless. */
bool space_shm_detach(struct space *space, const struct space_call *call)
{
	uint64_t base = call->arguments[0], end = UINT64_MAX;
	struct space_interval first = {0}, piece;
	struct interval_node *node;

	if (call->result != 0)
		return true;
	for (uint64_t position = base; (node = intervals_next(&space->mapped, position)); position = piece.end) {
		piece = node->interval;
		if (!first.end && !fits(&piece, base))
			continue;
		extend(space, &piece);
		if (!first.end) {
			first = piece;
			if (first.attributes.segment_pages)
				end = base + first.attributes.segment_pages * space->page_bytes;
		} else if (piece.end > end) {
			break;
		}
		if (fits(&piece, base) && same_attachment(&piece.attributes, &first.attributes) &&
		    !piece.attributes.sealed && !pending_unmaps_release(space, call, piece.start, piece.end))
			return false;
	}
	return true;
}
