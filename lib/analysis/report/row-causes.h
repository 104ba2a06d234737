/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The causes of a report: each combines the rows of one function or one pattern. A row that only committed what another
 * row reserved has the cause of that row. */
#ifndef ANALYSIS_REPORT_ROW_CAUSES_H
#define ANALYSIS_REPORT_ROW_CAUSES_H

#include <mmtrace/report.h>

#include "analysis/report/rows.h"
#include "base/arena.h"
#include "base/errors.h"

/* Call this after sorting. `groups` are those of the report; this sets their joined_to. Without stacks there are no
 * causes. */
struct mmt_error *row_causes_build(struct mmt_report *report, struct mmt_group *groups, const struct ledger *ledger,
				   const struct rows *rows, struct arena *arena) MMT_MUST_CHECK;

#endif
