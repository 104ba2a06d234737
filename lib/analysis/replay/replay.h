/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* One pass over a recording. It applies events in time order to the model, assigns stacks to calls and keeps the
 * accounts in the ledger. The final state is the input of a report. */
#ifndef ANALYSIS_REPLAY_REPLAY_H
#define ANALYSIS_REPLAY_REPLAY_H

#include <stdbool.h>
#include <stdint.h>

#include <mmtrace/report.h>

#include "analysis/replay/ledger.h"
#include "analysis/replay/lost-events.h"
#include "analysis/replay/process-totals.h"
#include "analysis/replay/recording-notes.h"
#include "analysis/resolver/resolver.h"
#include "base/arena.h"
#include "base/errors.h"
#include "base/map.h"
#include "base/vector.h"
#include "model/processes.h"
#include "model/space/space.h"
#include "trace/format/event.h"
#include "trace/read/reader.h"

struct replay;

struct replay_thread {
	int32_t tid;
	uint32_t process;	     /* index */
	const struct thread *thread; /* for its current name */
};

/* Callbacks for inspecting the model during the pass. */
struct replay_watch {
	/* Called after each call has been applied. */
	void (*call)(void *context, struct replay *replay, struct process *process, const struct event *event);
	/* Called after a call has been applied that needs no stack. */
	struct mmt_error *(*no_stack)(void *context, struct replay *replay, const struct process *process,
				      const struct event *event);
	/* Called once the stack of a call is known; `sequence` is that of the call's event, `delay` the turns that it
	 * has waited for its stack. */
	struct mmt_error *(*stack)(void *context, uint64_t sequence, uint32_t stack, uint32_t delay);
	/* Called before the first event at or after `timestamp_ns`, which it sets again. 0, the initial value: before
	 * any event. */
	struct mmt_error *(*timestamp)(void *context, struct replay *replay, uint64_t time_ns);
	uint64_t timestamp_ns;
	void *context;
	/* Called for each EVENT_RESIDENT_PAGES, when everything before it has been applied. */
	struct mmt_error *(*pages)(void *context, struct replay *replay, const struct event *event);
	/* Called after each mremap(2) that moved memory to another address. */
	struct mmt_error *(*moved)(void *pages_context, const struct replay *replay, const struct process *process,
				   const struct event *event);
	void *pages_context;
	/* Called when the first snapshot of a process, which the recorder read when it began, is complete. */
	struct mmt_error *(*started)(void *started_context, const struct replay *replay, const struct process *process);
	void *started_context;
};

struct kept_sample;

struct thread_state;

struct replay_options {
	const struct mmt_report_options *report; /* input, window, demangling */
	const struct reader *recording;		 /* read this recording from its start; NULL: open the input */
	/* See struct ledger_options; may be NULL. Called during the pass. */
	struct mmt_error *(*find_row)(void *context, struct account *account);
	void *context;
	bool by_thread; /* see struct ledger_options */
};

/* The size of a process at one of the latest calls that the kernel refused. */
struct process_refusals {
	uint64_t measurable; /* mappings that may be walked over, by the calls since then */
	struct space_size size;
};

struct replay {
	struct reader *reader;
	const struct reader_metadata *metadata;
	struct processes *processes;
	struct resolver *code;
	struct ledger ledger;
	struct notes notes;
	struct window window; /* to_ns UINT64_MAX: to the end of the recording */
	uint32_t classes;     /* of struct mmt_report_options */
	uint32_t lost_stack;  /* number of the stack of lost calls, see ledger_found() */
	uint32_t no_stack;
	uint64_t stacks_max, stacks_left_out;	     /* calls with a later stack count as without one; how many */
	uint32_t applying_thread;		     /* number of the thread whose call is being applied */
	struct mmt_error *observer_error;	     /* the first error: observers cannot return errors */
	VECTOR(struct replay_thread) threads;	     /* indexed by allocation.thread */
	VECTOR(struct thread_state *) thread_states; /* of live threads */
	VECTOR(uint32_t) mmap2_counts;		     /* by process: pending MMAP2 records */
	struct map early_samples;	 /* process whose code is not known yet -> its last call, struct early_sample */
	size_t early_count, early_bytes; /* totals: samples, and bytes of their stack dumps */
	/*
	 * Events and the stacks that calls get take turns, in the order of the replay: a stack dump that arrives later
	 * gives its call a stack then, and is no event itself. Packed recordings have no dumps but the turns that each
	 * call waits for its stack, so that their replay goes through the same states.
	 */
	uint64_t turn;		  /* number of turns so far */
	struct map waiting_calls; /* packed recordings: turn -> the call that then gets its stack, struct outcome */

	uint64_t first_ns, last_ns;
	uint64_t call_counts[MMT_COUNT_KINDS]; /* in the window, of the selected processes */
	struct lost_events lost_calls, lost_dumps;
	uint64_t lost_events;	      /* LOST records; the recorder's own count is in the metadata */
	uint64_t losses;	      /* how often calls were lost, in any process */
	uint64_t faked_calls;	      /* calls with a result that the kernel never returns: answered by a seccomp filter
					 or a tracer */
	uint64_t made_writable_bytes; /* sizes of the calls of mprotect that did that to readable private memory */
	uint64_t calls_without_entry; /* exits without recorded arguments */
	struct setuid_execs setuid_execs; /* set-user-ID programs */
	VECTOR(struct process_refusals) refusals;
	struct map refusal_places; /* process -> its place in `refusals` */
	struct replay_watch watch;
	const struct mmt_progress *progress; /* NULL: do not report progress */
	bool has_dumps;			     /* stack dumps are separate records */
	bool without_dumps;		     /* calls say when they get their stack: see packed_stacks */
	bool large_dumps;		     /* large stack dumps are on */
	bool has_snapshots;
	bool has_survivors; /* after the pass: some process is still alive */
	/* Processes (PID) whose pages were read when recording stopped. If there are any, and the user selects no
	 * others by PID, a process is released as soon as it ends, and its space is not kept. */
	struct map survivors;
	bool releases_ended;
	VECTOR(struct kept_process_totals)
	process_totals; /* by process; may end before processes that hold nothing */
	struct arena arena;
};

/* Opens the file; on error the value is deinitialised. */
struct mmt_error *replay_init(struct replay *replay, const struct replay_options *options) MMT_MUST_CHECK;

void replay_deinit(struct replay *replay);

/* Run the pass. */
struct mmt_error *replay_run(struct replay *replay) MMT_MUST_CHECK;

/* Return the first error of the observers since the last call. */
struct mmt_error *replay_take_error(struct replay *replay) MMT_MUST_CHECK;

/* State of a thread between two events: samples that wait for their other half. */

/* The effects of a call that need its stack. */
struct outcome {
	uint32_t process;	      /* index */
	uint32_t holder;	      /* index of the process that holds the memory, see struct process */
	uint32_t thread;	      /* number in replay.threads */
	uint32_t allocation;	      /* ALLOCATION_BEFORE: created nothing */
	uint32_t commit, commit_kind; /* COMMIT_NONE: no commit needs its stack */
	struct failure failure;	      /* count 0: none */
	uint64_t sequence;	      /* of the call's event */
	uint64_t turn;		      /* the last one before the call was applied */
	bool unwound;		      /* `stack` is known and was reported */
	uint32_t stack;
};

/* A sample kept beyond its event. */
struct kept_sample {
	bool present;
	int32_t cpu;
	uint64_t sequence; /* of its event */
	enum call call;
	int64_t result;
	uint64_t arguments[6];
	struct outcome outcome;
	struct event_stack stack; /* points into the buffers below */
	VECTOR(uint64_t) callchain;
	VECTOR(uint8_t) bytes;
};

/* A call of a process whose code is not known yet. */
struct early_sample {
	struct kept_sample sample;
	struct early_sample *next; /* next sample of the same process; the list is circular */
};

struct thread_state {
	uint32_t number; /* in replay.threads */
	size_t place;	 /* in replay.thread_states */
	/* MMAP2 records since the last call: they precede the exit of the call that made them. */
	VECTOR(struct space_mmap2) mmap2_records;
	struct kept_sample call;  /* has an outcome and waits for its stack dump */
	struct kept_sample dump;  /* arrived before its call */
	struct kept_sample enter; /* plain perf: arguments wait for the exit */
};

/* Join the callchain of the syscall event with the registers and bytes of the dump, if there is one. */
struct event_stack event_stack_join(const struct event_stack *syscall_event, const struct event_stack *dump);

struct mmt_error *kept_sample_set(struct kept_sample *kept, const struct event *event) MMT_MUST_CHECK;

/* Uses the stack of another dump of the same call if it is larger. */
struct mmt_error *kept_sample_extend(struct kept_sample *kept, const struct event_stack *dump) MMT_MUST_CHECK;

/* Drop the stack; frees its buffer if that is large. */
void kept_sample_release(struct kept_sample *kept);

struct mmt_error *kept_sample_set_stack(struct kept_sample *kept, const struct event_stack *stack) MMT_MUST_CHECK;

/* Slow path of kept_sample_is_of(). */
bool kept_sample_is_of_present(const struct kept_sample *kept, const struct event *event,
			       const struct lost_events *lost);

/*
 * Whether the event is the other sample of the same call: both are taken at the same return, on the same CPU. `lost`:
 * losses of the ring buffer that the event is from. If two consecutive calls have identical records, each may have lost
 * one sample: return false where that is possible.
 */
static inline bool kept_sample_is_of(const struct kept_sample *kept, const struct event *event,
				     const struct lost_events *lost)
{
	return kept->present && kept_sample_is_of_present(kept, event, lost);
}

void kept_sample_deinit(struct kept_sample *kept);

/* MMAP2 records on their way to the model. */

/* Keep a record for the thread's next call, unless the record shows which call it belongs to. */
struct mmt_error *replay_mmap2_keep(struct replay *replay, struct thread_state *state,
				    const struct event_mapping *mapping, uint64_t time_ns) MMT_MUST_CHECK;

void replay_mmap2_forget(struct replay *replay, struct thread_state *state);

/* Apply the records that no call of the thread claimed as the kernel's own mappings. */
struct mmt_error *replay_mmap2_flush(struct replay *replay, struct thread_state *state) MMT_MUST_CHECK;

/* Apply the pending records of the process's threads to the model: the kernel's maps already contain them. They stay
 * pending for the calls in flight. */
struct mmt_error *replay_mmap2_apply_to_process(struct replay *replay, uint32_t process) MMT_MUST_CHECK;

#endif
