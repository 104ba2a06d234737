/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Compares a space with a snapshot of /proc/PID/maps (SPACE_SNAPSHOT_CHECK), or fills it from one
 * (SPACE_SNAPSHOT_DEFINE). Calls that return while a snapshot is read race with it: the pages that they changed are
 * marked until a later snapshot resolves them.
 */
#ifndef MODEL_SPACE_SNAPSHOT_RACES_H
#define MODEL_SPACE_SNAPSHOT_RACES_H

#include "model/space/space-state.h"

/* The call being applied changed [start, end). */
bool space_snapshot_touch(struct space *space, uint64_t start, uint64_t end);

/*
 * What a DEFINE has put into the model may already have the effect of calls that return only later and are applied
 * then: those that were in flight when the kernel's maps were read. Most calls leave the same behind wherever they find
 * it, but a move carries along what it finds. So what a page was before its reading is remembered, and put back for the
 * move that may have been in flight: a thread's first call to return since.
 */

/* What a page was before its reading. */
enum doubt_kind {
	DOUBT_UNKNOWN, /* whether it is mapped is unknown */
	DOUBT_NOTHING,
	DOUBT_HELD,
};

/* The read at work is about to change [start, end), whose pages are all of this kind; `held` for DOUBT_HELD alone:
 * the interval they are part of. What is in doubt already is in doubt again as what it was before that. */
bool snapshot_race_add(struct space *space, enum doubt_kind kind, uint64_t start, uint64_t end,
		       const struct space_interval *held);

/* The read at work tells what is in doubt in [start, end) again. */
bool snapshot_race_renew(struct space *space, uint64_t start, uint64_t end);

/* The read has ended by `time_ns`; it told of [start, end). */
void snapshot_race_close(struct space *space, uint64_t start, uint64_t end, uint64_t time_ns);

/* A call has settled [start, end). */
bool snapshot_race_resolve(struct space *space, uint64_t start, uint64_t end);

/* A call has changed the mappings of [start, end), which stay: what they were before is changed with them. */
bool snapshot_race_change(struct space *space, uint64_t start, uint64_t end,
			  void (*change)(void *context, struct space_interval *interval), void *context);

/* The call is going to move [start, end): what it may have moved before the reading is put back. */
bool snapshot_race_undo(struct space *space, const struct space_call *call, uint64_t start, uint64_t end);

/* `copy` has been copied from `space`: what the read at work told may be younger than the copy, and is put back there.
 */
bool snapshot_race_undo_in_copy(const struct space *space, struct space *copy);

/* Whether `call` may have been in flight when the page at `address` was read. */
bool snapshot_race_covers(const struct space *space, const struct space_call *call, uint64_t address);

/* Before a call is applied: whatever was in flight then has returned. */
void snapshot_race_expire(struct space *space, uint64_t now_ns);

void snapshot_race_forget(struct space *space);

#endif
