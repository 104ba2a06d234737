/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Bytes that each process holds of the reported memory, now and when it ended. Bytes belong to the process that mapped
 * them, in whatever space they are: processes may share a space, and a space may outlive the process that created it.
 */
#pragma once

#include "base/vector.h"
#include "model/processes.h"

struct account;

struct replay;

struct held_bytes {
	/* Bytes of allocations in the window, in the requested classes. */
	uint64_t unfreed, committed, reserved;
	uint64_t inherited; /* mapped before the recording, or by the parent before the fork */
	uint64_t kernel;    /* mapped by the kernel itself: executed programs, stack growth, vdso */
	uint64_t older;	    /* mapped by calls before the window */
	uint64_t younger;   /* mapped by calls after allocations_to_ns */
};

/* Reliability of a space's model, kept for the owner of the space. */
struct space_facts {
	uint64_t unknown_bytes, reconciled_bytes, given_back_bytes, ambiguous; /* as in struct space_counts */
	struct space_check check;
};

struct process_totals {
	struct held_bytes now;
	struct held_bytes ended; /* in spaces that were released when their last process ended */
	struct space_facts facts;
};

/* Compact storage, for each process of the recording. NULL: all zero. */
struct kept_process_totals {
	struct held_bytes *now, *ended;
	const struct space_facts *facts; /* set when its space leaves the ledger, or at the end */
	uint32_t mebibytes : 30; /* at its end */
	uint32_t followed : 1, released : 1;
};

/* The account that an interval's bytes belong to; NULL: no row counts them. */
const struct account *process_totals_owner(const struct replay *replay, const struct space_interval *interval);

/* The process has ended: release its own space at that time, without a releaser, and keep the figures. */
struct mmt_error *process_totals_release(struct replay *replay, const struct process *process) MMT_MUST_CHECK;

/* Add an interval that is being released to what `replay->ending` held when it ended. */
struct mmt_error *process_totals_take(struct replay *replay, const struct space_interval *interval) MMT_MUST_CHECK;

/*
 * The process has ended. If another is alive at the end, or the parent forked another after it (or the parent's parent
 * did, once the parent ended), and one of at least half its size ended too, it is released. So a process that a shell
 * ran last, or the one that is much larger than the others, counts as just before its end; one of many compilers or
 * test cases does not. The first pass finds out which those are (from time to time, to save memory, and at its end).
 */
struct mmt_error *process_totals_end(struct replay *replay, struct process *process) MMT_MUST_CHECK;
struct mmt_error *process_totals_find_followed(struct replay *replay, bool last) MMT_MUST_CHECK;
/* The same in a recording that grows, where some are followed only after their end was applied. */
struct mmt_error *process_totals_release_followed(struct replay *replay) MMT_MUST_CHECK;

bool process_totals_are_released(const struct replay *replay, const struct process *process);

/* Call this once after the pass: computes the totals for process_totals_of(). */
struct mmt_error *process_totals_sum(struct replay *replay) MMT_MUST_CHECK;

struct process_totals process_totals_of(const struct replay *replay, const struct process *process);
