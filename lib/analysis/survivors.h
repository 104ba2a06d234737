/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What is mapped at the end, added up by row: who mapped it, who made it accessible, what of it is resident. */
#ifndef ANALYSIS_SURVIVORS_H
#define ANALYSIS_SURVIVORS_H

#include <mmtrace/report.h>

#include "analysis/replay.h"
#include "analysis/rows.h"
#include "base/map.h"

struct survivor_sums {
	struct mmt_group *groups; /* by row number - 1; figures are added */
	bool *resident_known;	  /* likewise */
	struct map reservers;	  /* (row of who made accessible) << 32 | row of who had reserved -> bytes */
};

/* `sums` has room for every row. */
struct mmt_error *survivors_add(const struct replay *replay, const struct rows *rows,
				struct survivor_sums *sums) MMT_MUST_CHECK;

#endif
