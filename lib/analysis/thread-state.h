/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What the replay remembers of a thread between two events: half of something whose other half is still to come. */
#ifndef ANALYSIS_THREAD_STATE_H
#define ANALYSIS_THREAD_STATE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "base/vector.h"
#include "model/space.h"
#include "trace/event.h"

/* A sample kept beyond its event. */
struct kept_sample {
	bool present;
	enum call call;
	int64_t result;
	uint64_t arguments[6];
	uint32_t birth;
	struct event_stack stack; /* points into the buffers below */
	VECTOR(uint64_t) callchain;
	VECTOR(uint8_t) bytes;
};

/* A call made before the first snapshot told what is mapped where: unwound when it has. */
struct early_sample {
	uint32_t process, birth;
	struct kept_sample sample;
};

struct thread_state {
	uint32_t number; /* in replay.threads */
	/* MMAP2 records since the last call: they come before the exit of the call that made them. */
	VECTOR(struct space_witness) witnesses;
	struct kept_sample call;  /* created something, waits for its stack dump */
	struct kept_sample dump;  /* came before its call */
	struct kept_sample enter; /* plain perf: arguments wait for the exit */
};

struct mmt_error *kept_sample_set(struct kept_sample *kept, const struct event *event) MMT_MUST_CHECK;
struct mmt_error *kept_sample_set_stack(struct kept_sample *kept, const struct event_stack *stack) MMT_MUST_CHECK;
void kept_sample_deinit(struct kept_sample *kept);

/* Nothing is remembered any more; `number` stays. */
void thread_state_deinit(struct thread_state *state);

#endif
