/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Whether a process grows: the rule that turns a series of resident sizes into a verdict. mmtrace-report(1), GROWTH. */
#ifndef ANALYSIS_REPORT_GROWTH_H
#define ANALYSIS_REPORT_GROWTH_H

#include <mmtrace/report.h>

/* Pure: the same readings give the same result. They are in time order; none is MMT_VERDICT_UNKNOWN. */
struct mmt_growth growth_judge(const struct mmt_resident_reading *readings, size_t count);

#endif
