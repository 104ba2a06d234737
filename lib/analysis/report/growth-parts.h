/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Where RSS grew: the pages that became resident during the recording, by the mapping that they belong to. */
#ifndef ANALYSIS_REPORT_GROWTH_PARTS_H
#define ANALYSIS_REPORT_GROWTH_PARTS_H

#include <mmtrace/report.h>

#include "analysis/replay/replay.h"
#include "analysis/report/rows.h"

/* Fill in report->growth. There are no parts if residency of the start or the end is missing, if a target has ended, or
 * if the report is about a window. */
struct mmt_error *growth_parts_build(const struct replay *replay, const struct rows *rows, struct arena *arena,
				     struct mmt_report *report) MMT_MUST_CHECK;

#endif
