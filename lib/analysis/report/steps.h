/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* report --every: totals at equal time steps, taken during the one replay. */
#ifndef ANALYSIS_REPORT_STEPS_H
#define ANALYSIS_REPORT_STEPS_H

#include "analysis/replay/replay.h"
#include "analysis/report/growth-parts.h"
#include "analysis/report/rows.h"
#include "base/arena.h"
#include "base/vector.h"

#define STEPS_MAX 10000

struct step_range {
	size_t start, end;
};

struct steps {
	uint64_t every_ns;	 /* 0: not requested */
	uint32_t lifetime_steps; /* as requested */
	const struct rows *rows;
	const struct page_readings *readings;
	VECTOR(struct mmt_step) items;
	VECTOR(struct step_range) others_live; /* ascending; ended processes do not count at these steps */
};

void steps_init(struct steps *steps, const struct mmt_report_options *options, const struct rows *rows);
void steps_deinit(struct steps *steps);

/* Make the replay call at the end of each step. */
void steps_watch(struct steps *steps, const struct page_readings *readings, struct replay *replay);

/* Call this after the pass: adds the steps after the last event, and sets their number in the report. */
struct mmt_error *steps_end(struct steps *steps, struct replay *replay, struct mmt_report *report) MMT_MUST_CHECK;

/* Call this after the report has its sums, which are those of the last step. */
struct mmt_error *steps_publish(const struct steps *steps, const struct replay *replay, struct arena *arena,
				struct mmt_report *report) MMT_MUST_CHECK;

#endif
