/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What the replay remembers of a thread between two events: half of something whose other half is still to come. */
#ifndef ANALYSIS_THREAD_STATE_H
#define ANALYSIS_THREAD_STATE_H

#include <stdbool.h>
#include <stdint.h>

#include "analysis/ledger.h"
#include "analysis/losses.h"
#include "base/error.h"
#include "base/vector.h"
#include "model/space.h"
#include "trace/event.h"

/* What a call has done, which its stack is wanted for. */
struct outcome {
	uint32_t process;	      /* index */
	uint32_t holder;	      /* index of the process whose memory it is, see struct process */
	uint32_t birth;		      /* BIRTH_BEFORE: created nothing */
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
	VECTOR(struct space_witness) witnesses;
	struct kept_sample call;  /* has an outcome, waits for its stack dump */
	struct kept_sample dump;  /* came before its call */
	struct kept_sample enter; /* plain perf: arguments wait for the exit */
};

/* The truth sample's callchain, and the dump's registers and bytes if there is a dump. */
struct event_stack event_stack_join(const struct event_stack *truth, const struct event_stack *dump);

struct mmt_error *kept_sample_set(struct kept_sample *kept, const struct event *event) MMT_MUST_CHECK;
/* Uses the stack of another dump of the same call if it is larger. */
struct mmt_error *kept_sample_deepen(struct kept_sample *kept, const struct event_stack *dump) MMT_MUST_CHECK;
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

#endif
