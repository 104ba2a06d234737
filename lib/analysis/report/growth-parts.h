/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Where RSS grew: the pages that are resident at the end and were not at the start, by what they belong to. */
#ifndef ANALYSIS_REPORT_GROWTH_PARTS_H
#define ANALYSIS_REPORT_GROWTH_PARTS_H

#include <mmtrace/report.h>

#include "analysis/replay/replay.h"
#include "analysis/report/rows.h"

/*
 * Into report->growth. No parts where the recording has no residency of both times, where a target has ended, or where
 * the report is about a window.
 */
struct mmt_error *growth_parts_build(const struct replay *replay, const struct rows *rows, struct arena *arena,
				     struct mmt_report *report) MMT_MUST_CHECK;

#endif
