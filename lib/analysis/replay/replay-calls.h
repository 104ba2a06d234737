/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Matches syscall events with their MMAP2 records and stack dumps, and applies them to the model and the ledger. */
#ifndef ANALYSIS_REPLAY_REPLAY_CALLS_H
#define ANALYSIS_REPLAY_REPLAY_CALLS_H

#include <stdint.h>
#include <stdio.h>

#include "analysis/replay/replay.h"
#include "base/errors.h"
#include "trace/format/event.h"

/* Apply a call that has returned, with the arguments of its sys_enter event if one was recorded. */
struct mmt_error *replay_calls_exit(struct replay *replay, struct thread_state *state,
				    struct event *event) MMT_MUST_CHECK;

/* The large stack dump of a call, before or after its exit. */
struct mmt_error *replay_calls_dump(struct replay *replay, struct thread_state *state,
				    const struct event *event) MMT_MUST_CHECK;

/* The dump of a call was lost: the thread has continued without it. */
struct mmt_error *replay_calls_resolve_waiting(struct replay *replay, struct thread_state *state) MMT_MUST_CHECK;

/* The code of the process is known, or will never be: credit the calls that waited for it. */
struct mmt_error *replay_calls_credit_early(struct replay *replay, uint32_t process) MMT_MUST_CHECK;
/* Drop the calls that wait for the code of the process, without crediting them. */
void replay_calls_forget_early(struct replay *replay, uint32_t process);

/* In a packed recording, give their stacks to the calls whose turn it is. */
struct mmt_error *replay_calls_credit_due(struct replay *replay) MMT_MUST_CHECK;

/* At the end of a truncated or damaged packed recording: give their stacks to the calls that still wait. */
struct mmt_error *replay_calls_credit_rest(struct replay *replay) MMT_MUST_CHECK;

/* Class and file of an interval: the ledger's `kind`. */
uint32_t replay_calls_kind(const struct replay *replay, const struct space_interval *interval);

/*
 * Stack numbers by event. The stack of a call becomes known after the call, so a consumer that needs stacks in order
 * makes two passes. The numbers are in a temporary file, so memory use depends only on the number of distinct stacks.
 */

/* What a call got. */
struct stack_number {
	uint32_t number; /* 0: nothing */
	uint32_t delay;	 /* turns: see struct replay */
};

struct stack_numbers_page;

struct stack_numbers {
	FILE *file;			  /* NULL: not created */
	struct stack_numbers_page *pages; /* the parts in use, by number modulo their count */
};

/* `directory`: for the file; -1, or if that is impossible: in the system's directory for such files. */
struct mmt_error *stack_numbers_create(struct stack_numbers *numbers, int directory) MMT_MUST_CHECK;

/* Accepts an uncreated value. */
void stack_numbers_deinit(struct stack_numbers *numbers);

struct mmt_error *stack_numbers_put(struct stack_numbers *numbers, uint64_t sequence,
				    struct stack_number number) MMT_MUST_CHECK;

struct mmt_error *stack_numbers_get(struct stack_numbers *numbers, uint64_t sequence,
				    struct stack_number *number_ret) MMT_MUST_CHECK;

#endif
