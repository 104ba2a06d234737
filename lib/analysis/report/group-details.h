/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The unfreed mappings of each group: class and file, when they were mapped, and the verdict on their lifetimes. */
#ifndef ANALYSIS_REPORT_GROUP_DETAILS_H
#define ANALYSIS_REPORT_GROUP_DETAILS_H

#include <mmtrace/report.h>

#include "analysis/replay/replay.h"
#include "analysis/report/rows.h"
#include "base/arena.h"

/* Whether the kernel counts `right`, the next interval after `left`, as a part of the same mapping. */
bool continues_mapping(const struct space_interval *left, const struct space_interval *right);

/* Call this after the unfreed bytes have been added to `groups`, which is indexed by row number - 1. */
struct mmt_error *group_details_add(const struct replay *replay, const struct rows *rows, struct arena *arena,
				    const struct mmt_report *report, struct mmt_group *groups) MMT_MUST_CHECK;

#define GROUP_DETAILS_NO_SET UINT32_MAX

/*
 * Judges the lifetimes of the mappings of all rows of a set together. `sets` has the set of each row, by row number - 1,
 * or GROUP_DETAILS_NO_SET; `verdicts_ret` has room for `set_count`.
 */
struct mmt_error *group_details_judge_sets(const struct ledger *ledger, const struct rows *rows,
					   const struct mmt_report *report, const uint32_t *sets, size_t set_count,
					   enum mmt_lifetime_verdict *verdicts_ret) MMT_MUST_CHECK;

#endif
