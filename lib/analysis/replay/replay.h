/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * One pass over a recording: events in time order go into the model, creating calls get their stacks, the ledger keeps
 * the accounts. What is left at the end is what a report is made of.
 */
#ifndef ANALYSIS_REPLAY_REPLAY_H
#define ANALYSIS_REPLAY_REPLAY_H

#include <stdbool.h>
#include <stdint.h>

#include <mmtrace/report.h>

#include "analysis/replay/effect-order.h"
#include "analysis/replay/ledger.h"
#include "analysis/replay/process-totals.h"
#include "analysis/replay/recording-notes.h"
#include "analysis/replay/window.h"
#include "analysis/resolver/code-view.h"
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
	const struct thread *thread; /* for its latest name */
};

/* Whoever wants to look at the model in the middle. */
struct replay_watch {
	/* After each call has been applied. */
	void (*call)(void *context, struct replay *replay, struct process *process, const struct event *event);
	/* The stack of a call is known by now: `sequence` is that of its event. */
	struct mmt_error *(*stack)(void *context, uint64_t sequence, uint32_t stack);
	/* Before the first event that is not before `timestamp_ns`; it sets that again. 0, as at first: before any. */
	struct mmt_error *(*timestamp)(void *context, struct replay *replay, uint64_t time_ns);
	uint64_t timestamp_ns;
	void *context;
};

struct kept_sample;

struct thread_state;

struct replay_options {
	const struct mmt_report_options *report; /* input, window, demangling */
	const struct reader *recording;		 /* read this one from its start; NULL: open the input */
	/* See struct ledger_options; may be NULL. Called during the pass. */
	struct mmt_error *(*find_row)(void *context, const struct account *account, uint32_t *row_ret);
	void *context;
	bool by_thread; /* see struct ledger_options */
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
	VECTOR(struct replay_thread) threads;	     /* allocation.thread counts them */
	VECTOR(struct thread_state *) thread_states; /* of those alive */
	VECTOR(uint32_t) mmap2_counts;		     /* by process: MMAP2 records that wait for their call */
	struct map
	    early_samples; /* process whose code is not known yet -> the last of its calls, struct early_sample */
	size_t early_count, early_bytes; /* of all processes together, and of their stack dumps */

	uint64_t first_ns, last_ns;
	uint64_t call_counts[MMT_COUNT_KINDS]; /* of the window and of the processes asked for */
	struct losses lost_calls, lost_dumps;
	uint64_t lost_events;	      /* LOST records; the recorder's own count is in the metadata */
	uint64_t losses;	      /* how often calls were lost, of any process */
	uint64_t faked_calls;	      /* calls with a result that the kernel never returns: a seccomp filter or a tracer
					 answered them */
	uint64_t calls_without_entry; /* exits whose arguments nothing recorded */
	struct setuid_execs setuid_execs; /* programs */
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
	VECTOR(struct kept_process_totals)
	process_totals; /* by process; those of which nothing is known may be missing */
	struct arena arena;
};

/* Opens the file; on error the value is deinitialised. */
struct mmt_error *replay_init(struct replay *replay, const struct replay_options *options) MMT_MUST_CHECK;

void replay_deinit(struct replay *replay);

/* The whole pass. */
struct mmt_error *replay_run(struct replay *replay) MMT_MUST_CHECK;

/* What observers could not return since the last time. */
struct mmt_error *replay_take_error(struct replay *replay) MMT_MUST_CHECK;

/* What the replay remembers of a thread between two events: half of something whose other half is still to come. */

/* What a call has done, which its stack is wanted for. */
struct outcome {
	uint32_t process;	      /* index */
	uint32_t holder;	      /* index of the process whose memory it is, see struct process */
	uint32_t thread;	      /* number in replay.threads */
	uint32_t allocation;	      /* ALLOCATION_BEFORE: created nothing */
	uint32_t commit, commit_kind; /* COMMIT_NONE: its stack is not wanted for that */
	struct failure failure;	      /* count 0: none */
	uint64_t sequence;	      /* of the call's event */
	bool unwound;		      /* `stack` is known already, and told */
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
	struct early_sample *next; /* of the same process; behind the last comes the first */
};

struct thread_state {
	uint32_t number; /* in replay.threads */
	size_t place;	 /* in replay.thread_states */
	/* MMAP2 records since the last call: they come before the exit of the call that made them. */
	VECTOR(struct space_mmap2) mmap2_records;
	struct kept_sample call;  /* has an outcome, waits for its stack dump */
	struct kept_sample dump;  /* came before its call */
	struct kept_sample enter; /* plain perf: arguments wait for the exit */
};

/* The syscall event sample's callchain, and the dump's registers and bytes if there is a dump. */
struct event_stack event_stack_join(const struct event_stack *syscall_event, const struct event_stack *dump);

struct mmt_error *kept_sample_set(struct kept_sample *kept, const struct event *event) MMT_MUST_CHECK;

/* Uses the stack of another dump of the same call if it is larger. */
struct mmt_error *kept_sample_extend(struct kept_sample *kept, const struct event_stack *dump) MMT_MUST_CHECK;

/* The stack is no longer needed; frees its buffer if that is large. */
void kept_sample_release(struct kept_sample *kept);

struct mmt_error *kept_sample_set_stack(struct kept_sample *kept, const struct event_stack *stack) MMT_MUST_CHECK;

/* For kept_sample_is_of(). */
bool kept_sample_is_of_present(const struct kept_sample *kept, const struct event *event, const struct losses *lost);

/*
 * Whether the event is the other sample of the same call, taken by the same return and so on the same CPU. `lost`:
 * losses where the event comes from. Of two calls in a row that are alike in everything recorded one sample each may be
 * lost: where that is possible, it is not.
 */
static inline bool kept_sample_is_of(const struct kept_sample *kept, const struct event *event,
				     const struct losses *lost)
{
	return kept->present && kept_sample_is_of_present(kept, event, lost);
}

void kept_sample_deinit(struct kept_sample *kept);

/* Nothing is remembered any more; `number` stays. */
void thread_state_deinit(struct thread_state *state);

/* MMAP2 records on their way to the model. */

/* What a mapping record says, in the model's terms. */
struct mmt_error *replay_mmap2_describe(struct replay *replay, const struct event_mapping *mapping,
					struct space_attributes *attributes_ret) MMT_MUST_CHECK;

/* Keep a record for the thread's next call, unless it shows at once whose it is. */
struct mmt_error *replay_mmap2_keep(struct replay *replay, struct thread_state *state,
				    const struct event_mapping *mapping, uint64_t time_ns) MMT_MUST_CHECK;

void replay_mmap2_forget(struct replay *replay, struct thread_state *state);

/* What no call of the thread has claimed the kernel did by itself. */
struct mmt_error *replay_mmap2_flush(struct replay *replay, struct thread_state *state) MMT_MUST_CHECK;

/* What the process's threads have not claimed yet is in the kernel's maps all the same: it goes into the model, and
 * still belongs to the call that may be in flight. */
struct mmt_error *replay_mmap2_apply_to_process(struct replay *replay, uint32_t process) MMT_MUST_CHECK;

#endif
