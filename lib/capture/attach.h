/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Opening the event set for threads, on every CPU, and the descriptors that come of it. */
#ifndef CAPTURE_ATTACH_H
#define CAPTURE_ATTACH_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"
#include "base/map.h"
#include "base/vector.h"
#include "capture/events.h"
#include "capture/rings.h"

struct attached_event {
	int fd;
	pid_t tid;	/* opened for */
	uint32_t event; /* index in the event set */
	uint64_t id;
};

struct attached_fence {
	int fd;
	uint64_t id;
	pid_t tid;
};

struct attachment {
	const struct event_set *set;
	const struct rings *rings;
	bool on_exec; /* the events begin with the next exec */
	VECTOR(struct attached_event) events;
	VECTOR(struct attached_fence) fences;
	struct map fence_owner; /* by identifier: the thread it was opened for */
	struct map event_of_id;
	struct map covered;	     /* threads with the whole set, opened or inherited */
	uint64_t descriptors_wanted; /* for messages */
};

/* Borrows both, which must outlive the attachment. */
void attach_init(struct attachment *attachment, const struct event_set *set, const struct rings *rings);
/* Closes every descriptor. Accepts a zeroed value. */
void attach_deinit(struct attachment *attachment);

/* Raise the soft limit of open files to the hard one; fail when it cannot hold the events of so many threads. */
struct mmt_error *attach_reserve(struct attachment *attachment, size_t thread_count) MMT_MUST_CHECK;

/*
 * Open the whole set for a thread. `gone_ret`: it has ended, and nothing is open. With `fence`, later threads that
 * inherit the whole set report it with a SWITCH record.
 */
struct mmt_error *attach_thread(struct attachment *attachment, pid_t tid, bool fence, bool *gone_ret) MMT_MUST_CHECK;

/*
 * A thread ran with the fence of this identifier. When it was opened for another thread the whole set was inherited,
 * and what was opened for this one is closed again: it would report everything twice.
 */
struct mmt_error *attach_note_fence(struct attachment *attachment, pid_t tid, uint64_t fence_id) MMT_MUST_CHECK;
/* A thread that can do nothing any more. False: out of memory. */
bool attach_skip_thread(struct attachment *attachment, pid_t tid);
bool attach_is_covered(const struct attachment *attachment, pid_t tid);

/* Attaching is over: no more SWITCH records. */
void attach_close_fences(struct attachment *attachment);

/* Switch off some events from the index `next` on, inherited ones too: it takes long where there are many, and the
   others go on. False: that was the last. */
bool attach_disable_some(struct attachment *attachment, size_t *next);

/* Add what the kernel counted as lost, by event, inherited events included. `lost` has an element per event of the set.
 */
void attach_add_lost(const struct attachment *attachment, uint64_t *lost);

#endif
