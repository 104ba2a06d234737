/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Compares a space with a snapshot of /proc/PID/maps (SPACE_SNAPSHOT_CHECK), or fills it from one
 * (SPACE_SNAPSHOT_DEFINE). Calls in flight while a snapshot is read race with it: the model marks the pages that they
 * change until a later snapshot resolves them.
 */
#ifndef MODEL_SPACE_SNAPSHOT_CHECK_H
#define MODEL_SPACE_SNAPSHOT_CHECK_H

#include "model/space/space-state.h"

/* The call being applied changed [start, end). */
bool space_snapshot_touch(struct space *space, uint64_t start, uint64_t end);

/*
 * A DEFINE snapshot may already show the effect of calls in flight when the maps were read; the model applies those
 * when they return. Most calls have the same effect whatever they find, but a move carries its source along. The model
 * therefore remembers the state of each page before the reading, and restores it for a move that may have been in
 * flight: a thread's first call to return since then.
 */

/* A call has changed the mappings in [start, end) in place: change the remembered states too. */
bool snapshot_race_change(struct space *space, uint64_t start, uint64_t end,
			  void (*change)(void *context, struct space_interval *interval), void *context);

/* The call is about to move [start, end): restore what it may have moved before the reading. */
bool snapshot_race_undo(struct space *space, const struct space_call *call, uint64_t start, uint64_t end);

/* `copy` is a copy of `space`. Restore in the copy what the current reading has shown, because that may be newer than
 * the fork. */
bool snapshot_race_undo_in_copy(const struct space *space, struct space *copy);

/* Whether `call` may have been in flight when the page at `address` was read. */
bool snapshot_race_covers(const struct space *space, const struct space_call *call, uint64_t address);

/* Call this before a call is applied: forgets states that no call in flight needs any more. */
void snapshot_race_expire(struct space *space, uint64_t now_ns);

/*
 * Reconciles the model with the kernel where a snapshot differs. A call that returns shortly after a page was read may
 * have been in flight then and resolves the difference; so does the next snapshot if it matches. Any difference left
 * after half a second is reconciled to what the kernel had.
 */

/* The call being applied requires mappings in [start, end): first add those that only the kernel has. */
bool reconcile_presumed(struct space *space, uint64_t start, uint64_t end);

/* Reconcile differences old enough that all calls in flight have returned. */
bool reconcile_late(struct space *space, uint64_t now_ns);

/* Drop all pending differences. */
void reconcile_forget(struct space *space);

#endif
