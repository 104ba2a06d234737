/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What one process holds of the memory that a report is about, and what it held when it ended. */
#ifndef ANALYSIS_HOLDINGS_H
#define ANALYSIS_HOLDINGS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "model/processes.h"

struct account;
struct replay;

struct holdings {
	bool released; /* its memory has left the ledger: what follows is that of just before */
	struct space_counts counts;
	struct space_check check;
	/* Of births in the window, in classes asked for. */
	uint64_t unfreed_bytes, committed_bytes, reserved_bytes;
	uint64_t inherited_bytes; /* mapped before the recording, or by the parent before the fork */
	uint64_t older_bytes;	  /* mapped by calls before the window */
	uint64_t younger_bytes;	  /* and by calls after the births that count */
};

/* The account that an interval's bytes belong to; NULL: they are in no row. */
const struct account *holdings_owner(const struct replay *replay, const struct process *process,
				     const struct space_interval *interval);

/* Nothing for a process that borrows its space, the kept figures for one that was released. */
struct holdings holdings_of(const struct replay *replay, const struct process *process);

/* The process has ended, and what it held is released with it, at that time: nobody's release. Its figures are kept. */
struct mmt_error *holdings_release(struct replay *replay, const struct process *process) MMT_MUST_CHECK;

#endif
