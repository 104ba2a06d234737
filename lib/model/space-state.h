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
	int32_t thread; /* who mapped the range */
	pieces saved;	/* what the release in flight took, ascending */
};

/* An aio context: the kernel unmaps as many bytes as it mapped, from where a piece of the ring was moved last. */
struct ring {
	uint64_t start, bytes;
	uint64_t inode;
	uint64_t made_ns;
	int32_t maker; /* thread */
};

#define RINGS_MAXIMUM 1024

struct snapshot {
	bool open;
	enum space_snapshot_mode mode;
	uint32_t birth;
	uint64_t position; /* everything below has been described */
	uint64_t line_time_ns;
	struct space_check check; /* being made */
};

struct space {
	struct space_observer observer;
	uint64_t page_bytes;
	struct intervals mapped;
	struct intervals unknown; /* pages of which nothing is known, mapped or not */
	struct space_counts counts;
	uint64_t code_generation;

	bool break_known;
	uint64_t program_break; /* page aligned */
	bool read_implies_exec; /* the process's personality, learnt from witnesses */

	VECTOR(struct ring) rings; /* from old to new */
	uint32_t attachments;	   /* how many segments were attached */

	VECTOR(struct guard) guards;
	struct map last_exits; /* thread -> time of its last call, kept only while there are guards */

	struct snapshot snapshot;
	bool described;		  /* a DEFINE, or an exec, has told everything once */
	uint64_t described_ns;	  /* time of the last line of a DEFINE */
	struct intervals touched; /* ranges changed by calls during a DEFINE, and when */
	struct intervals
	    differing;		 /* see space-repair.h: ranges found wrong by the last CHECK, and when they were read */
	struct intervals unsaid; /* the same of what the model could not know */
	bool repair_due;	 /* the CHECK was read to its end */
	uint64_t repaired_ns;	 /* when the last repair's pages were read */
	struct space_check check;
	uint64_t now_ns; /* time of the call being applied; 0: none is */
};

#endif
