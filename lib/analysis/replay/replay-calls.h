/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Matches syscall events with their MMAP2 records and stack dumps, and applies them to the model and the ledger. */
#ifndef ANALYSIS_REPLAY_REPLAY_CALLS_H
#define ANALYSIS_REPLAY_REPLAY_CALLS_H

#include "analysis/replay/replay.h"
#include "trace/format/event.h"

/* A call returned. The event may be completed with what was kept of its entry. */
struct mmt_error *replay_calls_exit(struct replay *replay, struct thread_state *state,
				    struct event *event) MMT_MUST_CHECK;

/* The deep stack of a call, before or after its exit. */
struct mmt_error *replay_calls_dump(struct replay *replay, struct thread_state *state,
				    const struct event *event) MMT_MUST_CHECK;

/* A call whose dump never came: lost, and the thread has gone on. */
struct mmt_error *replay_calls_resolve_waiting(struct replay *replay, struct thread_state *state) MMT_MUST_CHECK;

/* The code of the process is known now, or never will be: calls made before are credited. */
struct mmt_error *replay_calls_credit_early(struct replay *replay, uint32_t process) MMT_MUST_CHECK;
/* They are not credited. */
void replay_calls_forget_early(struct replay *replay, uint32_t process);

/* Class and file of an interval, as the ledger counts kinds. */
uint32_t replay_calls_kind(const struct replay *replay, const struct space_interval *interval);

#endif
