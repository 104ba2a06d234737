/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Warnings of a report: what the recording does not contain, and why. */
#ifndef ANALYSIS_REPORT_WARNINGS_H
#define ANALYSIS_REPORT_WARNINGS_H

#include "analysis/replay/replay.h"
#include "base/arena.h"

/* Call this last, when the rest of the report is complete. */
struct mmt_error *warnings_describe(const struct replay *replay, struct arena *arena,
				    struct mmt_report *report) MMT_MUST_CHECK;

#endif
