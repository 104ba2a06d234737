/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Bytes that each process holds of the reported memory, now and when it ended. Bytes belong to the process that mapped
 * them, in whatever space they are: processes may share a space, and a space may outlive the process that created it.
 */
#pragma once

#include "base/errors.h"
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

/* A list of ended processes (index + 1), children and theirs, and the sizes of all that ever were in it. */
struct followed_children {
	uint32_t first, last, largest_mebibytes, second_mebibytes;
};

/* Compact storage, for each process of the recording. NULL: all zero. */
struct kept_process_totals {
	struct held_bytes *now, *ended;
	const struct space_facts *facts; /* set when its space leaves the ledger, or at the end; shared if all are 0 */
	uint32_t next;		 /* in a list of followed_children: index + 1 */
	uint32_t mebibytes : 28; /* at its end */
	uint32_t listed : 1, followed : 1, released : 1;
};

/* The account that an interval's bytes belong to; NULL: no row counts them. */
const struct account *process_totals_owner(const struct replay *replay, const struct space_interval *interval);

/* The process has ended: release its own space at that time, without a releaser, and keep the figures. */
struct mmt_error *process_totals_release(struct replay *replay, const struct process *process) MMT_MUST_CHECK;

/*
 * No process may be alive at the end, so that each counts as just before its end. That is right for a command and for
 * the program that a shell ran, but not for one of many compilers or test cases: a process is released when its parent
 * forks another and had one of at least half its size beside it. Call these after an end, before a fork, and, if no
 * process is alive, after the pass (`all`): what seemed alone may have been followed by others of its size.
 */
struct mmt_error *process_totals_note_end(struct replay *replay, const struct process *process) MMT_MUST_CHECK;
struct mmt_error *process_totals_release_followed(struct replay *replay, const struct process *parent,
						  bool all) MMT_MUST_CHECK;

bool process_totals_are_released(const struct replay *replay, const struct process *process);

/* Call this once after the pass: computes the totals for process_totals_of(). */
struct mmt_error *process_totals_sum(struct replay *replay) MMT_MUST_CHECK;

struct process_totals process_totals_of(const struct replay *replay, const struct process *process);
