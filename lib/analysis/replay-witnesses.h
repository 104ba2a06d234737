/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* MMAP2 records on their way to the model. */
#ifndef ANALYSIS_REPLAY_WITNESSES_H
#define ANALYSIS_REPLAY_WITNESSES_H

#include "analysis/replay.h"
#include "analysis/thread-state.h"
#include "trace/event.h"

/* What a mapping record says, in the model's terms. */
struct mmt_error *replay_witnesses_describe(struct replay *replay, const struct event_mapping *mapping,
					    struct space_attributes *attributes_ret) MMT_MUST_CHECK;

/* Keep a record for the thread's next call, unless it shows at once whose it is. */
struct mmt_error *replay_witnesses_keep(struct replay *replay, struct thread_state *state,
					const struct event_mapping *mapping, uint64_t time_ns) MMT_MUST_CHECK;
void replay_witnesses_forget(struct replay *replay, struct thread_state *state);

/* What no call of the thread has claimed the kernel did by itself. */
struct mmt_error *replay_witnesses_flush(struct replay *replay, struct thread_state *state) MMT_MUST_CHECK;

/* What the process's threads have not claimed yet is in the kernel's maps all the same: it goes into the model, and
 * still belongs to the call that may be in flight. */
struct mmt_error *replay_witnesses_tell_process(struct replay *replay, uint32_t process) MMT_MUST_CHECK;

#endif
