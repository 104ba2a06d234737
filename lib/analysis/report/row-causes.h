/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The causes of a report: rows of one function, or of one pattern, together. A row that only made accessible what
 * another one reserved has the cause of that one.
 */
#ifndef ANALYSIS_REPORT_ROW_CAUSES_H
#define ANALYSIS_REPORT_ROW_CAUSES_H

#include <mmtrace/report.h>

#include "analysis/report/rows.h"
#include "base/arena.h"
#include "base/errors.h"

/*
 * When the groups are sorted: `groups` are those of the report, of which joined_to is set. No causes where groups are
 * no stacks.
 */
struct mmt_error *row_causes_build(struct mmt_report *report, struct mmt_group *groups, const struct ledger *ledger,
				   const struct rows *rows, struct arena *arena) MMT_MUST_CHECK;

#endif
