/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What a report says beside its groups: threads, who released whose memory, calls that failed. */
#ifndef ANALYSIS_TOTALS_H
#define ANALYSIS_TOTALS_H

#include <mmtrace/report.h>

#include "analysis/replay.h"
#include "analysis/rows.h"
#include "base/arena.h"

struct mmt_error *totals_of_threads(const struct replay *replay, const struct rows *rows, struct arena *arena,
				    struct mmt_report *report) MMT_MUST_CHECK;

struct mmt_error *totals_of_failures(const struct replay *replay, struct rows *rows, struct arena *arena,
				     struct mmt_report *report) MMT_MUST_CHECK;

#endif
