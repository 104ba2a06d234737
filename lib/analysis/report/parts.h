/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The parts of a report's groups (process, thread, class and file) and the lifetimes of their mappings. */
#ifndef ANALYSIS_REPORT_PARTS_H
#define ANALYSIS_REPORT_PARTS_H

#include <mmtrace/report.h>

#include "analysis/replay/replay.h"
#include "analysis/report/rows.h"
#include "base/arena.h"

/* Call this after groups and processes are complete. Does nothing if lifetimes are not kept. */
struct mmt_error *parts_build(struct replay *replay, const struct rows *rows, struct arena *arena,
			      struct mmt_report *report) MMT_MUST_CHECK;

#endif
