/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* From accounts to what a report shows: stacks with equal names are one group, whatever their addresses. */
#ifndef ANALYSIS_GROUPS_H
#define ANALYSIS_GROUPS_H

#include <mmtrace/report.h>

#include "analysis/replay.h"
#include "base/arena.h"

/*
 * Fill groups, their sums in the report and the counts of stacks and frames in its completeness. `selected`: by process
 * index, which ones count. Everything is allocated in `arena`.
 */
struct mmt_error *groups_build(struct replay *replay, const bool *selected, struct arena *arena,
			       struct mmt_report *report) MMT_MUST_CHECK;

#endif
