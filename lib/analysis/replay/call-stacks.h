/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The first pass over a recording finds the stack of each call, so that the second knows it with the call. A stack dump
 * arrives later than its call, or earlier, and the code of a process may be known only with its first snapshot. The
 * first pass joins each call with its dump and unwinds the stack once the code is known. Packed recordings have the
 * stacks already and need no first pass.
 */
#pragma once

#include "base/map.h"
#include "base/vector.h"
#include "model/processes.h"
#include "trace/format/event.h"

struct replay;
struct thread_state;

/*
 * Lost events. The recorder reads the kernel's counts at the end (PERF_FORMAT_LOST; lib/capture/session.c) and writes
 * them into a section of the file. During the recording, a ring buffer that was full reports the loss in a
 * PERF_RECORD_LOST before the next record that fits: each CPU has its own buffer, so the records of other CPUs are not
 * affected. Reports warn of lost events in lib/output/text/text-header.c.
 */

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
	VECTOR(bool) goes; /* found by the same pass, by process: see process_totals_end() */
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
	return event->kind == EVENT_FAULT ||
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

/*
 * Whether the event is the other sample of the same call: both are taken at the same return, on the same CPU. `lost`:
 * losses of the ring buffer that the event is from. If two consecutive calls have identical records, each may have lost
 * one sample: return false where that is possible.
 */
bool kept_sample_is_of(const struct kept_sample *kept, const struct event *event, const struct lost_events *lost);

void kept_sample_deinit(struct kept_sample *kept);
