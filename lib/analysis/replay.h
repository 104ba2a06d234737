/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * One pass over a recording: events in time order go into the model, creating calls get their stacks, the ledger keeps
 * the accounts. What is left at the end is what a report is made of.
 */
#ifndef ANALYSIS_REPLAY_H
#define ANALYSIS_REPLAY_H

#include <mmtrace/report.h>

#include "analysis/code-view.h"
#include "analysis/effect-order.h"
#include "analysis/holdings.h"
#include "analysis/ledger.h"
#include "analysis/notes.h"
#include "analysis/losses.h"
#include "analysis/unwatched.h"
#include "analysis/window.h"
#include "base/arena.h"
#include "base/map.h"
#include "base/vector.h"
#include "model/processes.h"
#include "trace/reader.h"

struct replay;

struct replay_thread {
	int32_t tid;
	uint32_t process;	     /* index */
	const struct thread *thread; /* for its latest name */
};

/* Whoever wants to look at the model in the middle. */
struct replay_watch {
	/* After each call has been applied. */
	void (*call)(void *context, struct replay *replay, struct process *process, const struct event *event);
	/* The stack of a call is known by now: `sequence` is that of its event. */
	struct mmt_error *(*stack)(void *context, uint64_t sequence, uint32_t stack);
	/* Before the first event that is not before `moment_ns`; it sets that anew. 0, as at first: before any. */
	struct mmt_error *(*moment)(void *context, struct replay *replay, uint64_t time_ns);
	uint64_t moment_ns;
	void *context;
};

struct kept_sample;
struct thread_state;

struct replay_options {
	const struct mmt_report_options *report; /* input, window, demangling */
	/* See struct ledger_options; may be NULL. Called during the pass. */
	struct mmt_error *(*find_row)(void *context, const struct account *account, uint32_t *row_ret);
	void *context;
};

struct replay {
	struct reader *reader;
	const struct reader_metadata *metadata;
	struct processes *processes;
	struct code_view *code;
	struct ledger ledger;
	struct notes notes;
	struct window window;			     /* to_ns UINT64_MAX: to the end of the recording */
	uint32_t classes;			     /* of struct mmt_report_options */
	uint32_t lost_stack;			     /* stands for the stacks of lost calls, see ledger_found() */
	struct effect_order *order;		     /* NULL: the recording has no lock events */
	bool input_ended;			     /* `order` has received all events */
	uint32_t applying_thread;		     /* number of the thread whose call the model is working on */
	struct mmt_error *observer_error;	     /* the first: observers cannot return errors */
	VECTOR(struct replay_thread) threads;	     /* birth.thread counts them */
	VECTOR(struct thread_state *) thread_states; /* of those alive */
	VECTOR(uint32_t) witness_counts;	     /* by process: MMAP2 records that wait for their call */
	struct map early_samples; /* process whose code is not known yet -> the last of its calls, struct early_sample */
	size_t early_count, early_bytes; /* of all processes together, and of their stack dumps */

	uint64_t first_ns, last_ns;
	uint64_t call_counts[MMT_COUNT_KINDS]; /* of the window and of the processes asked for */
	struct losses lost_calls, lost_dumps;
	uint64_t lost_events;	      /* LOST records; the recorder's own count is in the metadata */
	uint64_t losses;	      /* how often calls were lost, of no matter which process */
	uint64_t faked_calls;	      /* calls with a result that the kernel never returns: a seccomp filter or a tracer answered them */
	uint64_t calls_without_entry; /* exits whose arguments nothing recorded */
	struct unwatched unwatched;   /* programs */
	struct replay_watch watch;
	const struct mmt_progress *progress; /* NULL: nobody waits */
	bool has_dumps;			     /* stack dumps come in records of their own */
	bool large_dumps;		     /* large stack dumps are on */
	bool has_snapshots;
	bool has_survivors; /* after the pass: some process has lived to its end */
	/*
	 * Processes (pid) whose pages were looked at when recording stopped. If there are any, and nobody asks for the
	 * others by number, a process that ends is released at that moment, and its space is not kept.
	 */
	struct map survivors;
	bool releases_ended;
	VECTOR(struct kept_holdings) holdings; /* by process; those of which nothing is known may be missing */
	struct arena arena;
};

/* Opens the file; on error the value is deinitialised. */
struct mmt_error *replay_init(struct replay *replay, const struct replay_options *options) MMT_MUST_CHECK;
void replay_deinit(struct replay *replay);

/* The whole pass. */
struct mmt_error *replay_run(struct replay *replay) MMT_MUST_CHECK;

/* What observers could not return since the last time. */
struct mmt_error *replay_take_error(struct replay *replay) MMT_MUST_CHECK;

#endif
