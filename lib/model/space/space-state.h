/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The inside of struct space, for the files of this folder only. */
#ifndef MODEL_SPACE_SPACE_STATE_H
#define MODEL_SPACE_SPACE_STATE_H

#include "base/map.h"
#include "base/vector.h"
#include "model/space/intervals.h"
#include "model/space/space.h"

struct range {
	uint64_t start, end;
};

typedef VECTOR(struct range) ranges;

typedef VECTOR(struct space_interval) pieces;

/* See pending-unmaps.h. */
struct pending_unmap {
	struct range range;
	uint64_t time_ns;
	int32_t thread;		/* who mapped the range */
	struct intervals saved; /* what the release in flight took */
};

/* An aio context: the kernel unmaps as many bytes as it mapped, from where a piece of the ring was moved last. */
struct aio_ring {
	uint64_t start, bytes;
	uint64_t inode;
	uint64_t made_ns;
	int32_t maker; /* thread */
	bool settled;  /* its io_setup has returned */
};

#define RINGS_MAXIMUM 1024

/* See reconcile.h: ranges where the model is not what the kernel's maps say, and when they were first read so. */
struct findings {
	struct intervals differing;
	struct intervals unsaid; /* where the model could not know */
};

/* A range changed by a call that acquired its lock some time before it returned. */
struct changed_range {
	struct range range;
	uint64_t returned_ns;
};

struct snapshot {
	bool open;
	enum space_snapshot_mode mode;
	uint32_t allocation;
	uint64_t position;   /* everything below has been described */
	uint64_t read_start; /* this and what is above by the read at work */
	uint64_t line_time_ns;
	bool told_break;	  /* the break is known from this snapshot's lines */
	struct space_check check; /* being made */
};

struct space {
	struct space_observer observer;
	uint64_t page_bytes;
	struct intervals mapped;
	struct intervals unknown; /* pages of which nothing is known, mapped or not */
	struct space_counts counts;
	uint64_t code_generation;

	uint64_t losses;			  /* number of space_lost() calls */
	const uint64_t *common_losses;		  /* counted by the caller; NULL: not */
	uint64_t losses_at_exec, losses_at_break; /* how many there had been, of both */
	bool break_known;
	uint64_t program_break; /* page aligned */
	bool read_implies_exec; /* the process's personality, learnt from MMAP2 records */
	struct kernel_rules rules;

	VECTOR(struct aio_ring) rings; /* from old to new */
	uint32_t parts;		       /* how many parts of attachments were numbered */
	uint32_t attachments;	       /* how many segments were attached */

	VECTOR(struct pending_unmap) pending_unmaps;
	struct map last_exits; /* thread -> time of its last call, kept while it matters who was in flight when */

	struct snapshot snapshot;
	bool described; /* a DEFINE snapshot or an exec has described everything */

	struct intervals snapshot_races; /* see snapshot-races.h */
	uint64_t snapshot_races_ns;	 /* when the last read had ended that left any */

	struct findings found, finding; /* see reconcile.h: of the last snapshot, of the open one */
	bool last_snapshot;		/* has begun: nothing is repaired before the end */
	uint64_t reconcile_ns;		/* when the first of `found` was read; UINT64_MAX: there is none */
	uint64_t reconciled_ns;		/* when something was repaired last */
	struct space_check check;
	uint64_t now_ns;			/* time of the call being applied; 0: none is */
	uint64_t returned_ns;			/* return time of that call if now_ns is the time of its lock; else 0 */
	VECTOR(struct changed_range) in_flight; /* pruned now and then of calls that have returned */
	size_t in_flight_limit;			/* ... at this size */
	pieces released;			/* by the call being applied; empty between calls but for its room */
};

static inline uint64_t space_losses(const struct space *space)
{
	return space->losses + (space->common_losses ? *space->common_losses : 0);
}

/* Calls were lost since exec. */
static inline bool space_is_lossy(const struct space *space)
{
	return space_losses(space) != space->losses_at_exec;
}

/* The few ways in which the intervals of a space change. Each keeps the counts, merges equal neighbours and leaves a
 * valid space. */

/* Attributes of the same mapping `bytes` further up. */
struct space_attributes space_edit_advance(const struct space_attributes *attributes, uint64_t bytes);

/* Whether two descriptions of one page agree in what the kernel compares. */
bool space_edit_agree(const struct space_attributes *left, const struct space_attributes *right);

/* Whether two mappings are of one kind, with the same page of the same file. */
bool space_edit_same(const struct space_attributes *left, const struct space_attributes *right);

/* Whether the kernel has the two as one mapping: they may still differ in who made them. */
bool space_edit_continues(const struct space_interval *left, const struct space_interval *right);

/* Whether two intervals should be one. */
bool space_edit_mergeable(const struct space_interval *left, const struct space_interval *right);

static inline bool space_edit_accessible(const struct space_attributes *attributes)
{
	return attributes->protection != 0;
}

/* The commit of a mapping that is what it is from its allocation on. */
static inline uint32_t space_edit_commit(const struct space_attributes *attributes)
{
	return space_edit_accessible(attributes) ? COMMIT_WITH_ALLOCATION : COMMIT_NONE;
}

/* Merge the neighbours that meet at `address`, if they are equal. */
void space_edit_merge_at(struct space *space, uint64_t address);

/* Insert `interval`, whose range must be free, without calling the observer. False: out of memory. */
bool space_edit_put(struct space *space, const struct space_interval *interval);

/* The same, and call born(). */
bool space_edit_allocate(struct space *space, const struct space_interval *interval);

/* Remove [start, end) and append the pieces to `taken`, without calling the observer. */
bool space_edit_take(struct space *space, uint64_t start, uint64_t end, pieces *taken);

/* Remove [start, end) and report it as released by `by`. */
bool space_edit_release(struct space *space, uint64_t start, uint64_t end, const struct space_call *by);

void space_edit_notify_released(struct space *space, const struct space_interval *interval,
				const struct space_call *by);

/* Change every interval of [start, end); `change` gets pieces that lie within it. */
bool space_edit_change(struct space *space, uint64_t start, uint64_t end,
		       void (*change)(void *context, struct space_interval *interval), void *context);

/* A call has settled these pages: they are known from here, and snapshots read before do not count. */
bool space_edit_touch_some(struct space *space, uint64_t start, uint64_t end);

static inline bool space_edit_touch(struct space *space, uint64_t start, uint64_t end)
{
	/* Fast path: long after a snapshot nothing is left to resolve. Changes by a call in flight must be noted for
	   the next snapshot. */
	return !(space->returned_ns | space->unknown.count | space->snapshot_races.count |
		 space->found.differing.count | space->found.unsaid.count | space->finding.differing.count |
		 space->finding.unsaid.count) ||
	       space_edit_touch_some(space, start, end);
}

/* Inside of mremap, shared by the files space-mremap*.c alone. */

struct remap {
	uint64_t source, target;
	uint64_t old_bytes, new_bytes; /* whole pages */
	bool fixed, keep_source;
	/* At their old addresses; the observer knows of `moved`, not of `fresh`. */
	pieces moved, fresh;
};

/*
 * What a move to a given place has done before it failed. Since 6.17 (see kernel-rules.h) several mappings are
 * moved one after the other, up to the first that cannot be; and the kernel makes room for each before it finds that
 * out.
 */
struct failed_move {
	uint64_t moved;		/* bytes from the source's start that are at the target */
	struct range cleared;	/* of the target: unmapped, although nothing came */
	struct range shortened; /* of the source: unmapped, as it was to become shorter */
	bool certain;		/* otherwise it is the likeliest of several */
};

/* Whether a call that failed may have changed anything. */
bool space_mremap_may_change(const struct space_call *call, const struct remap *remap);

struct failed_move space_mremap_failed(const struct space *space, const struct space_call *call,
				       const struct remap *remap);

#endif
