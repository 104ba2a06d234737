/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Repairs what a snapshot found to differ from the kernel; snapshot-races.c compares the two. A call that returns shortly after may have been in flight when the
 * page was read, and settles it; the next snapshot may find that nothing is different any more. What is left after half
 * a second is made as the kernel had it.
 */
#ifndef MODEL_SPACE_RECONCILE_H
#define MODEL_SPACE_RECONCILE_H

#include "model/space/space-state.h"

/* The open snapshot read `attributes` (of `start`; NULL: nothing is mapped) at `time_ns` where the model has something
 * else. Not `wrong`: the model could not know (a stack's growth, a file no MMAP2 record named). */
bool reconcile_mark(struct space *space, uint64_t start, uint64_t end, const struct space_attributes *attributes,
		    uint64_t time_ns, bool wrong);

/* The call being applied settles [start, end). */
bool reconcile_excuse(struct space *space, uint64_t start, uint64_t end);

/* A call that presumes mappings in [start, end): what the kernel has there and the model has not is repaired first. */
bool reconcile_presumed(struct space *space, uint64_t start, uint64_t end);

/* A snapshot begins: the one before, if it is open, will not be read to its end. */
void reconcile_begin(struct space *space);
/* The open snapshot was read to its end: what it found counts instead of what the one before had found. */
void reconcile_end(struct space *space);

/* Repair what is old enough for all calls in flight to have returned. */
bool reconcile_late(struct space *space, uint64_t now_ns);

/* The process has ended: repair what was not its end. */
bool reconcile_ended(struct space *space, uint64_t now_ns);

/* Repair now. */
bool reconcile_all(struct space *space);

/* Forget what is not repaired yet. */
void reconcile_forget(struct space *space);

#endif
