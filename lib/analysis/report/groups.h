/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Builds the groups of a report from the rows of the ledger and the mappings that exist at the end. */
#ifndef ANALYSIS_REPORT_GROUPS_H
#define ANALYSIS_REPORT_GROUPS_H

#include <mmtrace/report.h>

#include "analysis/replay/replay.h"
#include "analysis/report/rows.h"
#include "base/arena.h"
#include "base/map.h"
#include "trace/sections/sections.h"

/* What is resident of the memory of a report's rows, added up. Zero-initialise it. */
struct resident_sums {
	/* account << 32 | thread, or LEDGER_NO_THREAD, -> bytes. `before`: in memory that belongs to no row. */
	struct map owned, before;
	struct map unsettled; /* allocation whose stack was not known yet -> bytes */
	uint64_t owned_bytes; /* sum of `owned` */
	uint64_t pages_bytes; /* of the processes, in any memory */
	uint64_t time_ns;     /* when the pages were read; 0: not known */
};

void resident_sums_deinit(struct resident_sums *sums);

/* Add the resident pages (`runs`, ascending) of a process, as the model has its mappings now. */
struct mmt_error *resident_sums_add(struct resident_sums *sums, const struct replay *replay, const struct rows *rows,
				    const struct process *process, const struct resident_run *runs,
				    size_t run_count) MMT_MUST_CHECK;

/* What the rows have of it, as far as the stacks are known now. */
uint64_t resident_sums_bytes(const struct resident_sums *sums, const struct replay *replay, const struct rows *rows);

/* Add other sums, of the same replay. The time is the earlier one. */
struct mmt_error *resident_sums_merge(struct resident_sums *sums, const struct resident_sums *other) MMT_MUST_CHECK;

/*
 * Fill in groups, their sums in the report and the counts of stacks and frames in its completeness. Everything is
 * allocated in `arena`. Fails if allocated, freed and unfreed bytes do not agree. `resident`: NULL if unknown.
 */
struct mmt_error *groups_build(struct replay *replay, struct rows *rows, const struct resident_sums *resident,
			       struct arena *arena, struct mmt_report *report) MMT_MUST_CHECK;

/* Fails unless allocated - freed = unfreed in this group. */
struct mmt_error *groups_verify(const struct mmt_group *group) MMT_MUST_CHECK;

#endif
