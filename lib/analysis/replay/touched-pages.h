/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The page faults of a recording: which stack brought in the pages of each address space. */
#pragma once

#include "base/map.h"
#include "model/page-faults.h"
#include "model/processes.h"
#include "trace/format/event.h"

struct replay;

/* All-zero: no page faults. */
struct touched_pages {
	struct map spaces;   /* address space -> struct page_faults, owned */
	uint64_t run_count;  /* at most, in all of them */
	uint64_t left_out;   /* faults that the limit left out */
	bool recorded;	     /* the recording has page faults, perhaps none of them */
	bool sampled;	     /* but not every one */
	uint64_t move_steps; /* runs that mremap moved */
};

void touched_pages_deinit(struct touched_pages *touched);

/* `stack`: number of the stack of the fault. */
struct mmt_error *touched_pages_note(struct replay *replay, const struct process *process, const struct event *event,
				     uint32_t stack) MMT_MUST_CHECK;

/* [start, end) was unmapped. */
bool touched_pages_forget(struct touched_pages *touched, const struct process *process, uint64_t start, uint64_t end);

/* The call has been applied: what it gave back is gone, what it moved is elsewhere. */
bool touched_pages_apply(struct replay *replay, const struct process *process, const struct event *event);

/* NULL: none. */
struct page_faults *touched_pages_of(const struct touched_pages *touched, const struct process *process);
