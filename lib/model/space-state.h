/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Inside of struct space, shared by the files space*.c alone. */
#ifndef MODEL_SPACE_STATE_H
#define MODEL_SPACE_STATE_H

#include "base/map.h"
#include "base/vector.h"
#include "model/intervals.h"
#include "model/space.h"

struct range {
	uint64_t start, end;
};

typedef VECTOR(struct range) ranges;
typedef VECTOR(struct space_interval) pieces;

/* See space-guards.h. */
struct guard {
	struct range range;
	uint64_t time_ns;
	int32_t thread;		/* who mapped the range */
	struct intervals saved; /* what the release in flight took */
};

/* An aio context: the kernel unmaps as many bytes as it mapped, from where a piece of the ring was moved last. */
struct ring {
	uint64_t start, bytes;
	uint64_t inode;
	uint64_t made_ns;
	int32_t maker; /* thread */
	bool settled;  /* its io_setup has returned */
};

#define RINGS_MAXIMUM 1024

/* See space-repair.h: ranges where the model is not what the kernel's maps say, and when they were first read so. */
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
	uint32_t birth;
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

	uint64_t losses;			  /* told by space_lost() */
	const uint64_t *common_losses;		  /* counted by the caller; NULL: not */
	uint64_t losses_at_exec, losses_at_break; /* how many there had been, of both */
	bool break_known;
	uint64_t program_break; /* page aligned */
	bool read_implies_exec; /* the process's personality, learnt from witnesses */
	struct kernel_rules rules;

	VECTOR(struct ring) rings; /* from old to new */
	uint32_t parts;		   /* how many parts of attachments were numbered */
	uint32_t attachments;	   /* how many segments were attached */

	VECTOR(struct guard) guards;
	struct map last_exits; /* thread -> time of its last call, kept while it matters who was in flight when */

	struct snapshot snapshot;
	bool described; /* a DEFINE, or an exec, has told everything once */

	struct intervals doubts; /* see space-doubt.h */
	uint64_t doubts_ns;	 /* when the last read had ended that left any */

	struct findings found, finding; /* see space-repair.h: of the last snapshot, of the open one */
	bool last_snapshot;		/* has begun: nothing is repaired before the end */
	uint64_t repair_ns;		/* when the first of `found` was read; UINT64_MAX: there is none */
	uint64_t repaired_ns;		/* when something was repaired last */
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

#endif
