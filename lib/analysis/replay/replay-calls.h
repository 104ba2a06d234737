/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Matches syscall events with their MMAP2 records, and applies them to the model and the ledger. */
#ifndef ANALYSIS_REPLAY_REPLAY_CALLS_H
#define ANALYSIS_REPLAY_REPLAY_CALLS_H

#include <stdint.h>

#include "analysis/replay/replay.h"
#include "base/errors.h"
#include "trace/format/event.h"

/* Apply a call that has returned, with the arguments of its sys_enter event if one was recorded. */
struct mmt_error *replay_calls_exit(struct replay *replay, struct thread_state *state,
				    struct event *event) MMT_MUST_CHECK;

/* Class and file of an interval: the ledger's `kind`. */
uint32_t replay_calls_kind(const struct replay *replay, const struct space_interval *interval);

#endif
