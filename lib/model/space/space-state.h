/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Internals of struct space, for the files of this directory only. */
#ifndef MODEL_SPACE_SPACE_STATE_H
#define MODEL_SPACE_SPACE_STATE_H

#include "base/map.h"
#include "base/vector.h"
#include "model/space/intervals.h"
#include "model/space/space.h"

struct range {
	uint64_t start, end;
};

typedef VECTOR(struct space_interval) pieces;

/* See pending-unmaps.h. */
struct pending_unmap {
	struct range range;
	uint64_t time_ns;
	int32_t thread;		/* the thread that mapped the range */
	struct intervals saved; /* the contents that the unmap in flight released */
};

/* An aio context. The kernel unmaps as many bytes as it mapped, from where a piece of the ring was last moved to. */
struct aio_ring {
	uint64_t start, bytes;
	uint64_t inode;
	uint64_t made_ns;
	int32_t maker; /* thread */
	bool settled;  /* its io_setup has returned */
};

struct snapshot {
	bool open;
	enum space_snapshot_mode mode;
	uint32_t allocation;
	uint64_t position;   /* everything below has been read */
	uint64_t read_start; /* the current reading covers the addresses from here on */
	uint64_t line_time_ns;
	struct intervals touched; /* by calls since the latest reading */
	uint64_t heap_end;	  /* end of the highest line of the heap so far; 0: none */
	uint64_t heap_losses;	  /* value of space_losses() at that line */
	struct space_check check; /* in progress */
};

struct space {
	void *owner; /* the caller's */
	struct space_observer observer;
	uint64_t page_bytes;
	struct intervals mapped;
	struct intervals unknown; /* pages that may or may not be mapped */
	struct space_counts counts;
	uint64_t code_generation;

	uint64_t losses;			  /* number of space_lost() calls */
	const uint64_t *common_losses;		  /* counted by the caller; may be NULL */
	uint64_t losses_at_exec, losses_at_break; /* values of space_losses() at the last exec and the last break */
	bool break_known;
	uint64_t program_break;	  /* page aligned */
	uint64_t break_before;	  /* shortly before the recording began; 0: not known */
	uint64_t lowest_break;	  /* that a call of this program returned; UINT64_MAX: none did */
	uint64_t undecided_bytes; /* of the first growth of the break: it may be older than the recording */
	uint64_t older_bytes;	  /* heap that the model has from calls, but the first snapshot shows to be older */
	uint64_t first_older;	  /* its lowest address */
	bool read_implies_exec;	  /* the process's personality, deduced from MMAP2 records */
	struct kernel_rules rules;

	VECTOR(struct aio_ring) rings; /* oldest first */
	uint32_t parts;		       /* number of attachment parts numbered so far */
	uint32_t attachments;	       /* number of segments attached so far */

	VECTOR(struct pending_unmap) pending_unmaps;
	struct map last_exits; /* thread -> time of its last call, kept while pending unmaps or snapshot races need
				  it */

	struct snapshot snapshot;
	bool described; /* a DEFINE snapshot or an exec has described the whole space */

	struct intervals snapshot_races; /* see snapshot-check.h */
	uint64_t snapshot_races_ns;	 /* end of the last reading that left any */

	/* See snapshot-check.h: ranges where the model differs from the kernel's maps, with the time of the first
	 * reading that showed it. Of the last complete snapshot, and of the open one. */
	struct intervals found, finding;
	bool last_snapshot;	/* the last snapshot has begun: nothing is reconciled before space_finish() */
	uint64_t reconcile_ns;	/* when the first of `found` was read; UINT64_MAX: there are none */
	uint64_t reconciled_ns; /* time of the last reconciliation */
	struct space_check check;
	uint64_t now_ns; /* time of the call being applied; 0: none */
	pieces released; /* by the call being applied; empty between calls, but keeps its
			    memory */
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

/* The only functions that change the intervals of a space. Each updates the counts, merges equal neighbours and leaves
 * a valid space. */

/* Attributes of the same mapping at an address higher by `bytes`. */
struct space_attributes space_edit_advance(const struct space_attributes *attributes, uint64_t bytes);

/* The part of a mapping that lies in [start, end); its end is not above its start if there is none. */
struct space_interval space_edit_clip(const struct space_interval *interval, uint64_t start, uint64_t end);

/* Whether two descriptions of a page agree in what the kernel compares. */
bool space_edit_agree(const struct space_attributes *left, const struct space_attributes *right);

/* Whether two mappings are of the same kind and map the same page of the same file. */
bool space_edit_same(const struct space_attributes *left, const struct space_attributes *right);

/* Whether the two are one mapping in the kernel; their allocations may differ. */
bool space_edit_continues(const struct space_interval *left, const struct space_interval *right);

static inline bool space_edit_accessible(const struct space_attributes *attributes)
{
	return attributes->protection != 0;
}

/* The commit of a mapping whose protection has not changed since its allocation. */
static inline uint32_t space_edit_commit(const struct space_attributes *attributes)
{
	return space_edit_accessible(attributes) ? COMMIT_WITH_ALLOCATION : COMMIT_NONE;
}

/* Insert `interval`, whose range must be free, without calling the observer. False: out of memory. */
bool space_edit_put(struct space *space, const struct space_interval *interval);

/* The same, but call allocated(). */
bool space_edit_allocate(struct space *space, const struct space_interval *interval);

/* Remove [start, end) and append the pieces to `taken`, without calling the observer. */
bool space_edit_take(struct space *space, uint64_t start, uint64_t end, pieces *taken);

/* Remove [start, end) and report it as released by `by`. */
bool space_edit_release(struct space *space, uint64_t start, uint64_t end, const struct space_call *by);

void space_edit_notify_released(struct space *space, const struct space_interval *interval,
				const struct space_call *by);

/* Apply `change` to every interval in [start, end), cut to that range. */
bool space_edit_change(struct space *space, uint64_t start, uint64_t end,
		       void (*change)(void *context, struct space_interval *interval), void *context);

/* A call has determined these pages: they are known, and earlier snapshots no longer apply. */
bool space_edit_touch_some(struct space *space, uint64_t start, uint64_t end);

static inline bool space_edit_touch(struct space *space, uint64_t start, uint64_t end)
{
	/* Fast path: long after a snapshot nothing is left to resolve. */
	return !(space->unknown.count | space->snapshot_races.count | space->found.count | space->finding.count |
		 space->snapshot.open) ||
	       space_edit_touch_some(space, start, end);
}

#endif
