/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Matches syscall events with their MMAP2 records and stack dumps, and applies them to the model and the ledger. */
#ifndef ANALYSIS_REPLAY_REPLAY_CALLS_H
#define ANALYSIS_REPLAY_REPLAY_CALLS_H

#include "analysis/replay/replay.h"
#include "trace/format/event.h"

/* A call returned. The entry kept for it may complete the event. */
struct mmt_error *replay_calls_exit(struct replay *replay, struct thread_state *state,
				    struct event *event) MMT_MUST_CHECK;

/* The large stack dump of a call, before or after its exit. */
struct mmt_error *replay_calls_dump(struct replay *replay, struct thread_state *state,
				    const struct event *event) MMT_MUST_CHECK;

/* The dump of a call was lost: the thread has continued without it. */
struct mmt_error *replay_calls_resolve_waiting(struct replay *replay, struct thread_state *state) MMT_MUST_CHECK;

/* The code of the process is known, or will never be: credit the calls that waited for it. */
struct mmt_error *replay_calls_credit_early(struct replay *replay, uint32_t process) MMT_MUST_CHECK;
/* Drop them without crediting them. */
void replay_calls_forget_early(struct replay *replay, uint32_t process);

/* Class and file of an interval: the ledger's `kind`. */
uint32_t replay_calls_kind(const struct replay *replay, const struct space_interval *interval);

#endif
