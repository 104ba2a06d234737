/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Unmaps in flight. The model applies calls when they return, but they take effect earlier: the kernel may map a range
 * again, and that call may return, before the munmap that freed the range returns. The model can detect this. The
 * kernel never chooses an occupied address, so bytes that the model still holds there were unmapped by a call that has
 * not returned yet.
 *
 * The model then moves the old bytes to a pending unmap over the range of the new mapping, and inserts the new mapping.
 * It recognises the unmap when that returns: the call covers bytes of the pending unmap, and its thread returns from a
 * call for the first time since the pending unmap was created (it was in flight then). The call releases those bytes,
 * and leaves alone what was mapped since in the range. If no such call returns within a second, the pending unmap was a
 * mistake or the call was lost; it counts as ambiguous.
 */
#ifndef MODEL_SPACE_PENDING_UNMAPS_H
#define MODEL_SPACE_PENDING_UNMAPS_H

#include "model/space/space-state.h"

/* Make [start, end) free for a mapping that the kernel placed there; `attributes` are those of its first byte. */
bool pending_unmaps_place(struct space *space, const struct space_call *call, uint64_t start, uint64_t end,
			  const struct space_attributes *attributes);

/* `call` unmaps [start, end). Returns the pieces that it took, in ascending order, without those mapped after it took
 * effect. The caller reports or moves them. */
bool pending_unmaps_take(struct space *space, const struct space_call *call, uint64_t start, uint64_t end,
			 pieces *taken);

/* The same, and report them as released. */
bool pending_unmaps_release(struct space *space, const struct space_call *call, uint64_t start, uint64_t end);

/* Whether `call` was in flight when `thread`, at `time_ns`, mapped a range that has a pending unmap. */
bool pending_unmaps_in_flight(const struct space *space, int32_t thread, uint64_t time_ns,
			      const struct space_call *call);

/* Whether a pending unmap holds a part of [start, end). */
bool pending_unmaps_wait_for(const struct space *space, uint64_t start, uint64_t end);

/* Call this before a call is applied: gives up pending unmaps that are too old. */
void pending_unmaps_expire(struct space *space, uint64_t now_ns);
/* Call this after a call was applied. */
bool pending_unmaps_note(struct space *space, const struct space_call *call);

/* Give up all pending unmaps. */
void pending_unmaps_give_up(struct space *space);

#endif
