/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What each process holds of the memory that a report is about, and what it held when it ended. Bytes are those of the
 * process that mapped them, in whatever space they lie: processes may share one, and it may outlive who made it.
 */
#ifndef ANALYSIS_REPLAY_PROCESS_TOTALS_H
#define ANALYSIS_REPLAY_PROCESS_TOTALS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/errors.h"
#include "base/vector.h"
#include "model/processes.h"

struct account;

struct replay;

struct held_bytes {
	/* Of allocations in the window, in classes asked for. */
	uint64_t unfreed, committed, reserved;
	uint64_t inherited; /* mapped before the recording, or by the parent before the fork */
	uint64_t kernel;    /* mapped by the kernel itself: executed programs, stack growth, vdso */
	uint64_t older;	    /* mapped by calls before the window */
	uint64_t younger;   /* and by calls after the allocations that count */
};

/* What is known of a space, of its owner's. */
struct space_facts {
	uint64_t unknown_bytes, reconciled_bytes, given_back_bytes, ambiguous; /* as in struct space_counts */
	struct space_check check;
};

struct process_totals {
	struct held_bytes now;
	struct held_bytes ended; /* in spaces that were released when their last process ended */
	struct space_facts facts;
};

/* The same as it is kept, for each process that ever was. NULL: all zero. */
struct kept_process_totals {
	struct held_bytes *now, *ended;
	struct space_facts *facts;
	bool released; /* the space of this process has left the ledger: the facts are those of just before */
};

/* The account that an interval's bytes belong to; NULL: they are in no row. */
const struct account *process_totals_owner(const struct replay *replay, const struct space_interval *interval);

/* The process has ended, and what its space held is released with it, at that time: nobody's release. The figures are
 * kept. Nothing happens when it borrows the space. */
struct mmt_error *process_totals_release(struct replay *replay, const struct process *process) MMT_MUST_CHECK;

/* After the pass, once: add up what is there, so that process_totals_of() can tell. */
struct mmt_error *process_totals_sum(struct replay *replay) MMT_MUST_CHECK;

struct process_totals process_totals_of(const struct replay *replay, const struct process *process);

/*
 * Where records of one kind of ring were lost: each CPU has its own, and a loss is told by the next record that finds
 * room in it. What happened on other CPUs is not in doubt. Pure.
 */

/* Zero initialisation makes an empty one. */
struct losses {
	VECTOR(uint64_t) latest; /* by CPU: sequence of the event that told it; 0: none */
	uint64_t anywhere;	 /* of the latest on any CPU */
	uint64_t everywhere;	 /* of the latest on a CPU that is not known */
};

void losses_deinit(struct losses *losses);

/* cpu -1: not known. False: out of memory. */
bool losses_note(struct losses *losses, int32_t cpu, uint64_t sequence);

/* Whether records of this CPU (-1: any) were lost after the event with this sequence. */
bool losses_since(const struct losses *losses, int32_t cpu, uint64_t sequence);

#endif
