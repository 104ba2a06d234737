/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A pass over a recording. It applies events in time order to the model, and counts what calls do in the ledger, by
 * their stacks, which an earlier pass has found. The final state is the input of a report. */
#pragma once

#include "analysis/replay/ledger.h"
#include "analysis/replay/recording-notes.h"
#include "analysis/resolver/resolver.h"
#include "model/page-faults.h"

struct replay;
struct thread_state;

/* Bytes that each process holds of the reported memory, now and when it ended. Bytes belong to the process that mapped
 * them, in whatever space they are: processes may share a space, and a space may outlive the process that created it.
 */

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
	uint32_t mebibytes : 30;	 /* at its end */
	uint32_t followed : 1, released : 1;
};

/* The account that an interval's bytes belong to; NULL: no row counts them. */
const struct account *process_totals_owner(const struct replay *replay, const struct space_interval *interval);

/* The process has ended: release its own space at that time, without a releaser, and keep the figures. */
struct mmt_error *process_totals_release(struct replay *replay, const struct process *process) MMT_MUST_CHECK;

/* Add an interval of the owner's space to what its process holds: now, or as it ended if `replay->ending`. */
struct mmt_error *process_totals_add(struct replay *replay, const struct process *owner,
				     const struct space_interval *interval) MMT_MUST_CHECK;

/* The process has ended. If another is alive at the end, or the parent forked another after it (or the parent's parent
 * did, once the parent ended), and one of at least half its size ended too, it is released. So a process that a shell
 * ran last, or the one that is much larger than the others, counts as just before its end; one of many compilers or
 * test cases does not. Nor does a copy of its parent, of any size, if the parent lived on for a second and for longer
 * than the copy: that is one for a request. The first pass finds out which those are (from time to time, to save
 * memory, and at its end). */
struct mmt_error *process_totals_end(struct replay *replay, struct process *process) MMT_MUST_CHECK;
struct mmt_error *process_totals_find_followed(struct replay *replay, bool last) MMT_MUST_CHECK;
/* The same in a recording that grows, where some are followed only after their end was applied. */
struct mmt_error *process_totals_release_followed(struct replay *replay) MMT_MUST_CHECK;

/* Whether half of the data that an ended process mapped in the recording, and 1 MiB of it, lives on in a copy: it is
 * not released. */
bool process_totals_have_heir(const struct replay *replay, const struct process *process);
bool process_totals_are_released(const struct replay *replay, const struct process *process);

/* Call this once after the pass: computes the totals for process_totals_of(). */
struct mmt_error *process_totals_sum(struct replay *replay) MMT_MUST_CHECK;

struct process_totals process_totals_of(const struct replay *replay, const struct process *process);

/* The first pass over a recording finds the stack of each call, so that the second knows it with the call. A stack dump
 * arrives later than its call, or earlier, and the code of a process may be known only with its first snapshot. The
 * first pass joins each call with its dump and unwinds the stack once the code is known. Packed recordings have the
 * stacks already and need no first pass. */

/* Lost events. The recorder reads the kernel's counts at the end (PERF_FORMAT_LOST; lib/capture/session.c) and writes
 * them into a section of the file. During the recording, a ring buffer that was full reports the loss in a
 * PERF_RECORD_LOST before the next record that fits: each CPU has its own buffer, so the records of other CPUs are not
 * affected. Reports warn of lost events in lib/output/text/text-header.c. */

/* The PERF_RECORD_LOST of one kind of ring buffer. Zero-initialise an empty one. */
struct lost_events {
	VECTOR(uint64_t) latest; /* by CPU: sequence of the event that reported the loss; 0: none */
	uint64_t anywhere;	 /* latest loss on any CPU */
	uint64_t everywhere;	 /* latest loss on an unknown CPU */
};

/* cpu -1: unknown. False: out of memory. */
bool lost_events_note(struct lost_events *lost, int32_t cpu, uint64_t sequence);

#define CALL_STACKS_CHUNK 4096

/* All-zero: no call has a stack. */
struct call_stacks {
	VECTOR(uint32_t *) chunks;	 /* by call, in the order of the recording: number plus 1; NULL: all 0, none */
	struct intern *callchains;	 /* the numbers are those of resolver_keep_callchains(); NULL: of stacks */
	struct map early_samples;	 /* process whose code is not known yet -> its last call, struct early_sample */
	size_t early_count, early_bytes; /* totals: samples, and bytes of their stack dumps */
	VECTOR(bool) goes;		 /* found by the same pass, by process: see process_totals_end() */
};

/* A sample kept beyond its event. */
struct kept_sample {
	bool present;
	int32_t cpu;
	uint64_t sequence; /* of its event */
	enum call call;
	int64_t result;
	uint64_t arguments[6];
	uint32_t process;	  /* index */
	uint64_t number;	  /* of the call, from 1 */
	struct event_stack stack; /* points into the buffers below */
	VECTOR(uint64_t) callchain;
	VECTOR(uint8_t) bytes;
};

void call_stacks_deinit(struct call_stacks *stacks);

/* Whether the event is one of the calls and page faults that are counted, because they may need a stack. */
static inline bool call_stacks_counts(const struct event *event)
{
	return event->kind == EVENT_FAULT || event->kind == EVENT_RECLAIM ||
	       (event->kind == EVENT_CALL && (call_has_stack(event->call.call) || event->call.result));
}

/* Number of the stack or callchain of the call that was counted last, plus 1; 0: none. `count`: of all so far. */
static inline uint32_t call_stacks_get(const struct call_stacks *stacks, uint64_t count)
{
	uint64_t chunk = (count - 1) / CALL_STACKS_CHUNK;

	return chunk < stacks->chunks.count && stacks->chunks.items[chunk]
		   ? stacks->chunks.items[chunk][(count - 1) % CALL_STACKS_CHUNK]
		   : 0;
}

/* The functions below are for the first pass. */

/* The call that returned last has been applied. `needed`: it did something that is reported with a stack. */
struct mmt_error *call_stacks_applied(struct replay *replay, struct thread_state *state, const struct process *process,
				      const struct event *event, bool needed) MMT_MUST_CHECK;

/* A page fault, whose stack is complete. */
struct mmt_error *call_stacks_fault(struct replay *replay, const struct process *process,
				    const struct event *event) MMT_MUST_CHECK;

/* The stack dump of a call, before or after its exit. */
struct mmt_error *call_stacks_dump(struct replay *replay, struct thread_state *state,
				   const struct event *event) MMT_MUST_CHECK;

/* The dump of a call was lost: the thread has continued without it. */
struct mmt_error *call_stacks_give_up(struct replay *replay, struct thread_state *state) MMT_MUST_CHECK;

/* The code of the process is known, or will never be: unwind the calls that waited for it. */
struct mmt_error *call_stacks_unwind_early(struct replay *replay, uint32_t process) MMT_MUST_CHECK;

/* The calls up to this one have their stacks: neither a dump nor the code of their process is awaited. */
uint64_t call_stacks_settled(const struct replay *replay);

/* Forget the numbers of the calls before this one, as far as they fill chunks. */
void call_stacks_forget(struct call_stacks *stacks, uint64_t call);

struct mmt_error *kept_sample_set(struct kept_sample *kept, const struct event *event) MMT_MUST_CHECK;

/* Whether the event is the other sample of the same call: both are taken at the same return, on the same CPU. `lost`:
 * losses of the ring buffer that the event is from. If two consecutive calls have identical records, each may have lost
 * one sample: return false where that is possible. */
bool kept_sample_is_of(const struct kept_sample *kept, const struct event *event, const struct lost_events *lost);

void kept_sample_deinit(struct kept_sample *kept);

/* What a call does to an interval. */
enum replay_change { REPLAY_MAPPED, REPLAY_RELEASED, REPLAY_PROTECTED };

/* Callbacks for inspecting the model during the pass. */
struct replay_watch {
	/* Called after each call has been applied, and before that for each change that it makes. */
	struct mmt_error *(*call)(void *context, struct replay *replay, const struct process *process,
				  const struct event *event);
	void (*change)(void *context, const struct replay *replay, enum replay_change change,
		       const struct space_interval *interval, uint64_t bytes);
	/* Called before the first event at or after `timestamp_ns`, which it sets again; at first 0, for any event. */
	struct mmt_error *(*timestamp)(void *context, struct replay *replay, uint64_t time_ns);
	uint64_t timestamp_ns;
	void *context;
	/* Called for each EVENT_RESIDENT_PAGES, when everything before it has been applied. */
	struct mmt_error *(*pages)(void *pages_context, struct replay *replay, const struct event *event);
	/* Called after each mremap(2) that moved memory to another address. */
	struct mmt_error *(*moved)(void *pages_context, const struct replay *replay, const struct process *process,
				   const struct event *event);
	/* Called when the first snapshot of a process, which the recorder read when it began, is complete. */
	struct mmt_error *(*started)(void *pages_context, const struct replay *replay, const struct process *process);
	void *pages_context;
};

struct replay_options {
	const struct mmt_report_options *report; /* input, window, demangling */
	/* See struct ledger_options; may be NULL. Called during the pass. */
	struct mmt_error *(*find_row)(void *context, struct account *account);
	void *context;
	bool by_thread; /* see struct ledger_options */
};

/* touched-pages.c: the page faults of a recording: which stack brought in the pages of each address space. All-zero:
 * no page faults. */
struct touched_pages {
	struct map spaces;   /* address space -> struct page_faults, owned */
	uint64_t run_count;  /* at most, in all of them */
	uint64_t left_out;   /* faults that the limit left out */
	bool recorded;	     /* the recording has page faults, perhaps none of them */
	bool sampled;	     /* but not every one */
	uint64_t move_steps; /* runs that mremap moved */
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
	uint64_t stacks_max, stacks_left_out; /* calls with a later stack count as without one; how many */
	bool applying;			      /* a call; the next three are of the last one */
	uint32_t applying_thread;	      /* its number */
	uint32_t applying_stack;
	struct failure failure;			     /* if it has failed */
	struct mmt_error *observer_error;	     /* the first error: observers cannot return errors */
	VECTOR(const struct thread *) threads;	     /* indexed by allocation.thread; ended ones, too */
	VECTOR(struct thread_state *) thread_states; /* of live threads */
	VECTOR(uint32_t) mmap2_counts;		     /* by process: pending MMAP2 records */
	struct touched_pages touched;
	struct call_stacks stacks;
	uint64_t calls;	   /* see call_stacks_counts() */
	bool finds_stacks; /* this is the first of two passes */
	bool waits;	   /* `event` has been read, and is not applied yet */
	struct event event;

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
	bool reclaim_recorded;
	struct map reclaims;	    /* thread (TID) that frees memory -> since when */
	struct map refusal_places;  /* owner of a space -> its place in `refusals` */
	uint64_t measured_mappings; /* for `refusals` */
	struct replay_watch watch;
	const struct mmt_progress *progress; /* NULL: do not report progress */
	unsigned pass, passes;		     /* for progress: number of this one, from 0, and of all */
	bool has_dumps;			     /* stack dumps are separate records */
	bool large_dumps;		     /* large stack dumps are on */
	bool has_snapshots;
	bool has_survivors; /* after the pass: some process is still alive */
	/* Processes (PID) whose pages were read when recording stopped. If there are any, and replay_keeps_ended() is
	 * false, a process is released as soon as it ends, and its space is not kept. */
	struct map survivors;
	bool releases_ended;
	bool keep_ended, command_ended; /* the option, and whether the recording ended with its command */
	bool two_passes;		/* the first one finds stacks, and which processes that ended are released */
	VECTOR(struct kept_process_totals)
	process_totals;		      /* by process; may end before processes that hold nothing */
	uint64_t undecided;	      /* intervals: see process_totals_end() */
	const struct process *ending; /* its space is being released */
	struct arena arena;
};

/* Opens the file; on error the value is deinitialised. */
struct mmt_error *replay_init(struct replay *replay, const struct replay_options *options) MMT_MUST_CHECK;

void replay_deinit(struct replay *replay);

/* Run the pass, after one that finds the stacks if they are not in the recording. */
struct mmt_error *replay_run(struct replay *replay) MMT_MUST_CHECK;

/* The same for a recording that still grows: see struct mmt_report_options. */
struct mmt_error *replay_follow(struct replay *replay, bool (*follow)(void *context, bool new_names),
				void *context) MMT_MUST_CHECK;

/* Run only a pass that finds the stacks. */
struct mmt_error *replay_find_stacks(struct replay *replay) MMT_MUST_CHECK;

/* Whether it lived to the end of the recording. The record of its end may be lost. */
bool replay_is_alive(const struct replay *replay, const struct process *process);

/* Whether each process that ended counts as just before its end: if it is selected by PID, or the option says so. */
bool replay_keeps_ended(const struct replay *replay);

/* Return the first error of the observers since the last call. */
struct mmt_error *replay_take_error(struct replay *replay) MMT_MUST_CHECK;

/* State of a thread between two events: samples that wait for their other half. */
struct thread_state {
	uint32_t number; /* in replay.threads */
	size_t place;	 /* in replay.thread_states */
	/* MMAP2 records since the last call: they precede the exit of the call that made them. */
	VECTOR(struct space_mmap2) mmap2_records;
	struct kept_sample call;  /* has an outcome and waits for its stack dump */
	struct kept_sample dump;  /* arrived before its call */
	struct kept_sample enter; /* plain perf: arguments wait for the exit */
};

/* Drop the MMAP2 records that wait for a call of the thread. */
void replay_mmap2_forget(struct replay *replay, struct thread_state *state);

/* Apply a call that has returned, with the arguments of its sys_enter event if one was recorded. */
struct mmt_error *replay_calls_exit(struct replay *replay, struct thread_state *state,
				    struct event *event) MMT_MUST_CHECK;

/* The stack of a call or page fault. */
struct mmt_error *replay_calls_stack(struct replay *replay, const struct event *event,
				     uint32_t *stack_ret) MMT_MUST_CHECK;

/* Class and file of an interval: the ledger's `kind`. */
uint32_t replay_calls_kind(const struct replay *replay, const struct space_interval *interval);

/* Describe what a call that has failed would have added to the space, which it has not changed. */
struct mmt_error *refused_calls_describe(struct replay *replay, const struct process *process,
					 const struct event *event, struct refused_call *refused_ret) MMT_MUST_CHECK;

/* Find the limit that the failed calls met; MMT_LIMIT_NONE: none that is known. `mappings_at_end`: how many the
 * process had then by the kernel's count, which may be larger than that of the model; 0: not known. */
struct mmt_limit refused_calls_limit(const struct replay *replay, const struct failure *failure,
				     uint64_t mappings_at_end);

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
