/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Hints: for memory of a known cause, one sentence that says what it is, whether it is likely a leak, and which command
 * or setting helps. A hint that is wrong costs more than none, so small amounts and single mappings get none. Pure; all
 * texts are static.
 */
#ifndef ANALYSIS_REPORT_HINTS_H
#define ANALYSIS_REPORT_HINTS_H

#include <mmtrace/report.h>

/* Of a group whose figures are complete; NULL: none. `live_threads`: of its processes, at the end. */
const char *hints_of_group(const struct mmt_group *group, uint64_t live_threads);

/* Of memory that was mapped before the recording; NULL: none. */
const char *hints_of_growth(const struct mmt_growth_part *part);

#endif
