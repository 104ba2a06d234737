/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Reconciles the model with the kernel where a snapshot differs; snapshot-races.c compares the two. A call that returns
 * shortly after a page was read may have been in flight then and resolves the difference; so does the next snapshot if
 * it matches. Any difference left after half a second is reconciled to what the kernel had.
 */
#ifndef MODEL_SPACE_RECONCILE_H
#define MODEL_SPACE_RECONCILE_H

#include "model/space/space-state.h"

/* The open snapshot read `attributes` (of `start`; NULL: no mapping) at `time_ns`, and the model differs. `wrong`
 * false: the model cannot know better (stack growth, a file without an MMAP2 record). */
bool reconcile_mark(struct space *space, uint64_t start, uint64_t end, const struct space_attributes *attributes,
		    uint64_t time_ns, bool wrong);

/* The call being applied resolves the differences in [start, end). */
bool reconcile_excuse(struct space *space, uint64_t start, uint64_t end);

/* The call being applied requires mappings in [start, end): first add those that only the kernel has. */
bool reconcile_presumed(struct space *space, uint64_t start, uint64_t end);

/* A snapshot begins; if another one is open, it is abandoned. */
void reconcile_begin(struct space *space);
/* The open snapshot is complete: its differences replace those of the previous one. */
void reconcile_end(struct space *space);

/* Reconcile differences old enough that all calls in flight have returned. */
bool reconcile_late(struct space *space, uint64_t now_ns);

/* The process has ended: reconcile what its end does not explain. */
bool reconcile_ended(struct space *space, uint64_t now_ns);

/* Reconcile now. */
bool reconcile_all(struct space *space);

/* Drop all pending differences. */
void reconcile_forget(struct space *space);

#endif
