/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* report --every: totals at equal time steps, taken during the one replay. */
#ifndef ANALYSIS_REPORT_STEPS_H
#define ANALYSIS_REPORT_STEPS_H

#include "analysis/replay/replay.h"
#include "analysis/report/rows.h"
#include "base/arena.h"
#include "base/vector.h"

#define STEPS_MAX 10000

struct step_range {
	size_t start, end;
};

struct steps {
	uint64_t every_ns;	 /* 0: nobody asks */
	uint32_t lifetime_steps; /* as asked for */
	const struct rows *rows;
	VECTOR(struct mmt_step) items;
	VECTOR(struct step_range) others_live; /* ascending: what had ended does not count then */
};

void steps_init(struct steps *steps, const struct mmt_report_options *options, const struct rows *rows);
void steps_deinit(struct steps *steps);

/* Have the replay tell when a step is over. */
void steps_watch(struct steps *steps, struct replay *replay);

/* After the pass: quiet time at the end has its moments too, and the report knows how many there are. */
struct mmt_error *steps_end(struct steps *steps, struct replay *replay, struct mmt_report *report) MMT_MUST_CHECK;

/* When the report has its sums, which are those of the last step. */
struct mmt_error *steps_publish(const struct steps *steps, const struct replay *replay, struct arena *arena,
				struct mmt_report *report) MMT_MUST_CHECK;

#endif
