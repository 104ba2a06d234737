/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * One pass over a recording: events in time order go into the model, creating calls get their stacks, the ledger keeps
 * the accounts. What is left at the end is what a report is made of.
 */
#ifndef ANALYSIS_REPLAY_H
#define ANALYSIS_REPLAY_H

#include "analysis/code-view.h"
#include "analysis/ledger.h"
#include "base/vector.h"
#include "model/processes.h"
#include "trace/reader.h"

struct replay_thread {
	int32_t tid;
	uint32_t process;	     /* index */
	const struct thread *thread; /* for its latest name */
};

struct replay;

typedef struct mmt_error *replay_watch(void *context, struct replay *replay, const struct process *process,
				       const struct thread *thread, const struct event *event);

struct replay {
	struct reader *reader;
	const struct reader_metadata *metadata;
	struct processes *processes;
	struct code_view *code;
	struct ledger ledger;
	VECTOR(struct replay_thread) threads; /* birth.thread counts them */
	VECTOR(void *) thread_states;
	VECTOR(uint32_t) witness_counts; /* by process: MMAP2 records that wait for their call */
	VECTOR(void *) early_samples;	 /* calls of processes whose code is not known yet */

	uint64_t first_ns, last_ns;
	uint64_t events[MMT_COUNT_KINDS];
	uint64_t failed_calls;
	uint64_t lost_events;	      /* LOST records; the recorder's own count is in the metadata */
	uint64_t calls_without_entry; /* exits whose arguments nothing recorded */
	bool has_dumps;		      /* stack dumps come in records of their own */
	bool has_snapshots;
	bool has_survivors; /* after the pass: some process has lived to its end */

	/* For tests, set before the pass: called after each EVENT_CALL has been applied to the space of its process. */
	replay_watch *watch;
	void *watch_context;
};

/* Opens the file; on error the value is deinitialised. */
struct mmt_error *replay_init(struct replay *replay, const char *input, bool demangle) MMT_MUST_CHECK;
void replay_deinit(struct replay *replay);

/* After the pass: what a process held when it ended is released with it, at that time. Bytes of this recording's
 * births. */
uint64_t replay_end_process(struct replay *replay, const struct process *process);

/* The whole pass. */
struct mmt_error *replay_run(struct replay *replay) MMT_MUST_CHECK;

#endif
