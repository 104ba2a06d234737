/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Releases in flight. Calls are applied when they return, but take effect earlier. So the kernel may map a range again,
 * and that call may return, before the munmap that freed the range returns. It shows: the kernel never chooses a place
 * that is taken, so bytes the model still holds there were released by a call that has not returned yet.
 *
 * The bytes in the way are then set aside in a guard over the new mapping's range, and the new mapping is placed. The
 * release is recognised when it returns: it covers bytes set aside, and it is the first call its thread returns from
 * since the guard was made (it was in flight then). It gets the bytes set aside as its own, and leaves alone what was
 * mapped since in the guarded range. A guard whose release does not come within a second was a mistake or a loss, and
 * counts as ambiguous.
 */
#ifndef MODEL_SPACE_PENDING_UNMAPS_H
#define MODEL_SPACE_PENDING_UNMAPS_H

#include "model/space/space-state.h"

/* Make [start, end) free for what the kernel placed there; `attributes` are those of its first byte. */
bool pending_unmaps_place(struct space *space, const struct space_call *call, uint64_t start, uint64_t end,
			  const struct space_attributes *attributes);

/*
 * `call` releases [start, end): the pieces it took, ascending, without what it could not have meant. The caller tells
 * or moves them.
 */
bool pending_unmaps_take(struct space *space, const struct space_call *call, uint64_t start, uint64_t end,
			 pieces *taken);

/* The same, and report them as released. */
bool pending_unmaps_release(struct space *space, const struct space_call *call, uint64_t start, uint64_t end);

/* Whether `call` was on its way when `thread` mapped something that a guard was made for, at `time_ns`. */
bool pending_unmaps_in_flight(const struct space *space, int32_t thread, uint64_t time_ns,
			      const struct space_call *call);

/* Whether a release in flight is waited for that took something of [start, end). */
bool pending_unmaps_wait_for(const struct space *space, uint64_t start, uint64_t end);

/* Before a call is applied: give up guards that waited for too long. */
void pending_unmaps_expire(struct space *space, uint64_t now_ns);
/* After it. */
bool pending_unmaps_note(struct space *space, const struct space_call *call);

/* Give up all. */
void pending_unmaps_give_up(struct space *space);

void pending_unmaps_deinit(struct space *space);

#endif
