/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Builds the groups of a report from the rows of the ledger and the mappings that exist at the end. */
#ifndef ANALYSIS_REPORT_GROUPS_H
#define ANALYSIS_REPORT_GROUPS_H

#include <mmtrace/report.h>

#include "analysis/replay/replay.h"
#include "analysis/report/rows.h"
#include "base/arena.h"

/* Fill in groups, their sums in the report and the counts of stacks and frames in its completeness. Everything is
 * allocated in `arena`. Fails if allocated, freed and unfreed bytes do not agree. */
struct mmt_error *groups_build(struct replay *replay, struct rows *rows, struct arena *arena,
			       struct mmt_report *report) MMT_MUST_CHECK;

/* Fails unless allocated - freed = unfreed in this group. */
struct mmt_error *groups_verify(const struct mmt_group *group) MMT_MUST_CHECK;

#endif
