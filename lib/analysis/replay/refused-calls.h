/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Which limit made a memory call fail, and how near it was. */
#ifndef ANALYSIS_REPLAY_REFUSED_CALLS_H
#define ANALYSIS_REPLAY_REFUSED_CALLS_H

#include <mmtrace/report.h>

#include "analysis/replay/replay.h"
#include "base/errors.h"
#include "trace/format/event.h"

/* Describes what a call that has failed would have added to the space, which it has not changed. */
struct mmt_error *refused_calls_describe(struct replay *replay, const struct process *process,
					 const struct event *event, struct refused_call *refused_ret) MMT_MUST_CHECK;

/* Finds the limit that the failed calls met; MMT_LIMIT_NONE: none that is known. `mappings_at_end`: how many the
 * process had then by the kernel's count, which may be larger than that of the model; 0: not known. */
struct mmt_limit refused_calls_limit(const struct replay *replay, const struct failure *failure,
				     uint64_t mappings_at_end);

#endif
